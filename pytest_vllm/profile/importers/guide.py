"""Guides in Markdown: the blocks of code in them that start vLLM."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import KINDS
from pytest_vllm.profile.importers.embedded import Part, read_part, serving
from pytest_vllm.profile.importers.looks import OTHERS
from pytest_vllm.profile.importers.origin import ImportProblem
from pytest_vllm.profile.importers.pick import runs_none
from pytest_vllm.profile.importers.recognised import kind_of

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.origin import Origin

_FENCE = re.compile(r"^([ \t]*(?:>[ \t]*|[-*+][ \t]+|\d+[.)][ \t]+)*)(`{3,}|~{3,})[ \t]*([^`\n]*)$")
#: What may start vLLM, in any kind of block.
_STARTS = re.compile(
    r"\bvllm(?:[\s\"',]|\\\n)+serve\b|\bapi_server\b|\bimage[\"']?\s*[:=].*vllm"
    r"|\b(?:docker|podman|nerdctl)\b.*\brun\b|^FROM .*vllm|^Exec\w*=.*vllm",
    re.IGNORECASE | re.MULTILINE,
)
#: What a block's language is called -> the ending that a file of it has.
_ENDINGS = {
    "": "",
    **dict.fromkeys(("bash", "sh", "shell", "zsh", "console", "shell-session", "shellscript"), "sh"),
    **dict.fromkeys(("text", "txt", "plaintext", "none", "commandline"), ""),
    **dict.fromkeys(("yaml", "yml", "docker-compose", "compose"), "yaml"),
    **dict.fromkeys(("dockerfile", "docker", "containerfile"), "dockerfile"),
    **dict.fromkeys(("ini", "systemd", "service", "toml", "conf", "properties"), ""),
    **dict.fromkeys(("powershell", "ps1", "pwsh"), "ps1"),
    **dict.fromkeys(("bat", "batch", "cmd", "dos"), "bat"),
    **dict.fromkeys(("make", "makefile"), "makefile"),
    "json": "json",
}


def read_guide(origin: Origin, service: str | None) -> Draft:
    """The server of the block that starts vLLM. Raises ImportProblem for none, and for a choice."""
    parts = _blocks(origin)
    found, faults = serving(parts)
    telling = [(part, problem) for part, problem in faults if not runs_none(problem)]
    if not found and telling:
        raise telling[0][1]
    if not found:
        what, fix = OTHERS["markdown"]
        raise origin.problem(0, f"it looks like {what}, of which no block of code starts vLLM", fix)
    asked = (service or "").partition("/")[0]
    for part, problem in faults:
        if part.name == asked:
            raise problem
    draft, chosen = read_part(origin, found, service, "block")
    draft.note(
        chosen.line, "of the guide this block alone is read: what it says in words, or sets before, is not"
    )
    for part, problem in telling:
        draft.note(part.line, f"block {part.name} is not read: {problem.what}")
    for part, _ in found:
        if part is not chosen:
            draft.lost(part.line, f"block {part.name}, which starts vLLM too,")
    return draft


def _blocks(origin: Origin) -> list[Part]:
    """The blocks that name vLLM and are of a kind that is read, by their number."""
    found: list[Part] = []
    for line, language, text in _fenced(origin.text):
        if language not in _ENDINGS or not _STARTS.search(text):
            continue
        ending = _ENDINGS[language]
        within = replace(origin, text=text, shown=f"block.{ending}" if ending else "the text")
        try:
            kind = kind_of(within, ", ".join(KINDS.values()))
        except ImportProblem:
            continue
        name = str(len(found) + 1)
        found.append(Part(name, line, replace(origin, text="\n" * line + text), kind))
    return found


def _fenced(text: str) -> list[tuple[int, str, str]]:
    """Line of the fence, language in small letters, and what stands between, its own indent taken away."""
    found: list[tuple[int, str, str]] = []
    fence, indent, line, language, body = "", 0, 0, "", [""]
    for number, one in enumerate(text.splitlines(), 1):
        known = _FENCE.match(one)
        if not fence and known:
            fence, indent, line, body = known[2], len(known[1]), number, []
            language = re.split(r"[\s{:,]", known[3].strip().lstrip("{."), maxsplit=1)[0].lower()
        elif fence and re.fullmatch(rf"[ \t>]*{fence[0]}{{{len(fence)},}}[ \t]*", one):
            found.append((line, language, _typed("\n".join(body) + "\n")))
            fence = ""
        elif fence:
            bare = re.match(r"[ \t>]*", one)
            body.append(one[min(indent, len(bare[0]) if bare else 0) :])
    return found


def _typed(text: str) -> str:
    """What is typed of a session: behind its prompts, where it has any; answers are left empty."""
    lines = text.splitlines()
    if not any(re.match(r"[$#] \S", one) and not one.startswith("# ") for one in lines):
        return text
    typed, goes_on = [], False
    for one in lines:
        prompt = re.match(r"\$ ", one)
        typed.append(one[2:] if prompt else one if goes_on or one.startswith("#") else "")
        goes_on = (prompt is not None or goes_on) and one.endswith("\\")
    return "\n".join(typed) + "\n"
