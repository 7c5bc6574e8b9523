"""cloud-init's user data: the commands of a first start, and the files that are written for them."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import KINDS, read_as
from pytest_vllm.profile.importers.origin import ImportProblem, Origin
from pytest_vllm.profile.importers.pick import Candidate, parted, pick
from pytest_vllm.profile.importers.recognised import kind_of
from pytest_vllm.profile.importers.shell import read_shell
from pytest_vllm.profile.importers.yamlnodes import NOTHING, Node, documents

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.draft import Draft

#: Name, line, the text at the lines of the file, and its kind.
_Part = tuple[str, int, Origin, str]
_COMMANDS = "runcmd"
_VLLM = ("vllm", "api_server")


def read_cloud_init(origin: Origin, service: str | None) -> Draft:
    """The vLLM server of user data: in its commands, or in a file that it writes.

    Raises ImportProblem for none, and for a choice nobody made.
    """
    document = (documents(origin) or [NOTHING])[0]
    parts = _parts(origin, document)
    found = _serving(parts)
    names = [name for name, *_ in found]
    wanted, inner = parted(names, service)
    at = pick(origin, [Candidate(name, line) for name, line, *_ in found], wanted, "part of the user data")
    name, _, part, kind = found[at]
    draft = _read(part, kind, inner or None)
    for key, node in document.pairs:
        if key == "write_files":
            others = [one for one in node.items if one.get("path").text != name]
            _lost(draft, [(one.line, f"the file {one.get('path').text}") for one in others])
        elif key not in (_COMMANDS, "bootcmd") or name != _COMMANDS:
            _lost(draft, [(node.line, key)])
    return draft


def _lost(draft: Draft, left: list[tuple[int, str]]) -> None:
    for line, what in left:
        draft.lost(line, what)


def _serving(parts: list[_Part]) -> list[_Part]:
    """The parts that start vLLM, once or more often. Raises the first's ImportProblem where none does."""
    found: list[_Part] = []
    faults: list[ImportProblem] = []
    for one in parts:
        try:
            _read(one[2], one[3], None)
        except ImportProblem as problem:
            faults.append(problem)
            if " run vLLM: " not in str(problem):
                continue
        found.append(one)
    if not found and faults:
        raise faults[0]
    return found


def _read(part: Origin, kind: str, service: str | None) -> Draft:
    return read_shell(part, service) if kind == "shell" else read_as(part, kind, service)


def _parts(origin: Origin, document: Node) -> list[_Part]:
    """What may start vLLM: name, line, its text at the lines of the file, and its kind."""
    commands = [one for key in ("bootcmd", _COMMANDS) for one in document.get(key).items]
    found = []
    text = _script(origin, commands)
    if any(word in text for word in _VLLM):
        found.append((_COMMANDS, document.get(_COMMANDS).line, replace(origin, text=text), "shell"))
    for one in document.get("write_files").items:
        path, content = one.get("path").text, one.get("content")
        if not any(word in content.text for word in _VLLM):
            continue
        lines = "\n" * (content.line if _block(origin, content) else content.line - 1)
        shown = f"{origin.shown} ({path})"
        part = Origin(content.text, path, Path(path).parent, origin.environ)
        try:
            kind = kind_of(part, ", ".join(KINDS.values()))
        except ImportProblem:
            continue
        found.append((path, one.line, replace(part, text=lines + content.text, shown=shown), kind))
    return found


def _script(origin: Origin, commands: list[Node]) -> str:
    """The commands as one script, as cloud-init makes it, each at its own line where that can be."""
    lines: list[str] = []
    for one in commands:
        text = shlex.join(each.text for each in one.items) if isinstance(one.value, list) else one.text
        first = one.line + _block(origin, one)
        lines += [""] * (first - 1 - len(lines))
        lines += text.rstrip("\n").split("\n")
    return "\n".join(lines) + "\n"


def _block(origin: Origin, node: Node) -> bool:
    """Whether a text stands below its key, behind a bar."""
    line = origin.text.split("\n")[node.line - 1] if node.line else ""
    return line.rstrip(" +-0123456789").endswith(("|", ">"))
