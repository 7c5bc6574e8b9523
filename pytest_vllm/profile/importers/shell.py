"""Scripts and single lines: `vllm serve …`, `docker run …`, `podman run …`, with what stands around them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import container, containerline
from pytest_vllm.profile.importers.draft import Draft
from pytest_vllm.profile.importers.pick import Candidate, pick
from pytest_vllm.profile.importers.shellwords import Word, commands, resolved
from pytest_vllm.profile.importers.variables import Variables
from pytest_vllm.profile.importers.vllmline import USUAL, program_length
from pytest_vllm.profile.secrets import secret_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.profile.importers.origin import Origin

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
#: Commands that start nothing; said of none that it is left behind.
_QUIET = (
    "set",
    "cd",
    "echo",
    "export",
    "source",
    ".",
    "curl",
    "true",
    "mkdir",
    "exit",
    "if",
    "then",
    "fi",
    "done",
)


@dataclass(frozen=True)
class _Command:
    words: list[Word]
    env: dict[str, Word]
    values: dict[str, str]


def read_shell(origin: Origin, service: str | None) -> Draft:
    """The one command of a script that starts vLLM. Raises ImportProblem when there is none, or a choice."""
    found, others, exported = _commands(origin)
    candidates = [Candidate(_name(one, found), one.words[0].line) for one in found]
    chosen = found[pick(origin, candidates, service, "command")]
    draft = read_command(origin, chosen.words, _variables(origin, chosen.values))
    for name, word in {**(exported if draft.server["launcher"] == "process" else {}), **chosen.env}.items():
        names = _variables(origin, chosen.values)(draft)
        draft.set_env(
            name, names.text(word.text, word.line, secret=secret_name(name), lenient=True), word.line
        )
    for words in others:
        if words[0].text not in _QUIET:
            draft.lost(words[0].line, f"`{' '.join(word.text for word in words[:4])}`")
    return draft


def read_command(origin: Origin, words: list[Word], variables: Callable[[Draft], Variables]) -> Draft:
    """One command that starts vLLM, in a container or not."""
    if containerline.is_run([word.text for word in words]):
        return containerline.read_run(origin, words, variables)
    draft = Draft(origin, "process", "shell")
    names = variables(draft)
    known = [Word(_home(word.text, origin), word.line) for word in resolved(words, names)]
    container.read_start(draft, [], known, names)
    if draft.server.get("command") == USUAL:
        del draft.server["command"]
    return draft


def _home(text: str, origin: Origin) -> str:
    return origin.home + text[1:] if text.startswith("~/") else text


def _variables(origin: Origin, values: dict[str, str]) -> Callable[[Draft], Variables]:
    known = {"PWD": str(origin.folder), "HOME": origin.home, **values}
    return lambda draft: Variables(origin, draft.note, known, origin.environ)


def _commands(origin: Origin) -> tuple[list[_Command], list[list[Word]], dict[str, Word]]:
    """Those that start vLLM, the others, and what was exported."""
    found: list[_Command] = []
    others: list[list[Word]] = []
    values: dict[str, str] = {}
    exported: dict[str, Word] = {}
    quiet = Variables(origin, lambda *_: None, values, origin.environ, lenient=True)
    for words in commands(origin.text, origin):
        export = words[0].text == "export"
        env, rest = _assignments(words[1:] if export else words)
        rest = container.without_prefix(rest)
        more, rest = _assignments(rest)
        texts = [word.text for word in rest]
        if not rest:
            for name, word in env.items():
                values[name] = quiet.text(word.text, word.line)
            exported |= env if export else {}
        elif containerline.is_run(texts) or program_length(texts):
            found.append(_Command(rest, env | more, dict(values)))
        else:
            others.append(words)
    runs = [one for one in found if _is_vllm([word.text for word in one.words])]
    return runs, others + [one.words for one in found if one not in runs], exported


def _is_vllm(texts: list[str]) -> bool:
    if not containerline.is_run(texts):
        return True
    return any(container.runs_vllm(text, [text]) for text in texts[2:]) or bool(program_length(texts[2:]))


def _assignments(words: list[Word]) -> tuple[dict[str, Word], list[Word]]:
    env: dict[str, Word] = {}
    for at, word in enumerate(words):
        match = _ASSIGNMENT.fullmatch(word.text)
        if match is None:
            return env, words[at:]
        env[match[1]] = Word(match[2], word.line, word.bare)
    return env, []


def _name(command: _Command, among: list[_Command]) -> str:
    texts = [word.text for word in command.words]
    for at, text in enumerate(texts):
        if text == "--name" and at + 1 < len(texts):
            return texts[at + 1]
        if text.startswith("--name="):
            return text.removeprefix("--name=")
    return str(1 + among.index(command))
