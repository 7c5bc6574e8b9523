"""cloud-init's user data: the commands of a first start, and the files that are written for them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import KINDS
from pytest_vllm.profile.importers.embedded import Part, is_block, read_part, script_of, serving
from pytest_vllm.profile.importers.origin import ImportProblem, Origin
from pytest_vllm.profile.importers.recognised import kind_of
from pytest_vllm.profile.importers.yamlnodes import NOTHING, Node, documents

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.draft import Draft

_COMMANDS = "runcmd"
_VLLM = ("vllm", "api_server")


def read_cloud_init(origin: Origin, service: str | None) -> Draft:
    """The vLLM server of user data: in its commands, or in a file that it writes.

    Raises ImportProblem for none, and for a choice nobody made.
    """
    document = (documents(origin) or [NOTHING])[0]
    found, faults = serving(_parts(origin, document))
    if not found and faults:
        raise faults[0][1]
    draft, part = read_part(origin, [(one, "") for one, _ in found], service, "part of the user data")
    for key, node in document.pairs:
        if key == "write_files":
            others = [one for one in node.items if one.get("path").text != part.name]
            _lost(draft, [(one.line, f"the file {one.get('path').text}") for one in others])
        elif key not in (_COMMANDS, "bootcmd") or part.name != _COMMANDS:
            _lost(draft, [(node.line, key)])
    return draft


def _lost(draft: Draft, left: list[tuple[int, str]]) -> None:
    for line, what in left:
        draft.lost(line, what)


def _parts(origin: Origin, document: Node) -> list[Part]:
    """What may start vLLM: name, line, its text at the lines of the file, and its kind."""
    commands = [one for key in ("bootcmd", _COMMANDS) for one in document.get(key).items]
    found = []
    text = script_of(origin, commands)
    if any(word in text for word in _VLLM):
        found.append(Part(_COMMANDS, document.get(_COMMANDS).line, replace(origin, text=text), "shell"))
    for one in document.get("write_files").items:
        path, content = one.get("path").text, one.get("content")
        if not any(word in content.text for word in _VLLM):
            continue
        lines = "\n" * (content.line if is_block(origin, content) else content.line - 1)
        shown = f"{origin.shown} ({path})"
        part = Origin(content.text, path, Path(path).parent, origin.environ)
        try:
            kind = kind_of(part, ", ".join(KINDS.values()))
        except ImportProblem:
            continue
        found.append(Part(path, one.line, replace(part, text=lines + content.text, shown=shown), kind))
    return found
