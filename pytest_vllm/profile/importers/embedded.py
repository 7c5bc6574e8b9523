"""Texts within a text, each of its own kind: files of user data, blocks of a guide, scripts in YAML."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import read_as
from pytest_vllm.profile.importers.origin import ImportProblem
from pytest_vllm.profile.importers.pick import SERVICE, Candidate, parted, pick, runs_several

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.origin import Origin
    from pytest_vllm.profile.importers.yamlnodes import Node


@dataclass(frozen=True)
class Part:
    """A text within another.

    Args:
        name: what it is called there.
        line: where it begins.
        origin: the text, at the lines that it has in the whole.
        kind: a key of KINDS.
    """

    name: str
    line: int
    origin: Origin
    kind: str


def serving(parts: Sequence[Part]) -> tuple[list[tuple[Part, str]], list[tuple[Part, ImportProblem]]]:
    """The parts that start vLLM, once or more often, each with its model; and why the others do not."""
    found: list[tuple[Part, str]] = []
    faults: list[tuple[Part, ImportProblem]] = []
    for one in parts:
        try:
            draft = read_as(one.origin, one.kind, None)
        except ImportProblem as problem:
            if runs_several(problem):
                found.append((one, ""))
            else:
                faults.append((one, problem))
        else:
            found.append((one, draft.server.get("model", "")))
    return found, faults


def read_part(
    origin: Origin, found: Sequence[tuple[Part, str]], service: str | None, what: str
) -> tuple[Draft, Part]:
    """The draft of the part that is meant, and which that is. Raises ImportProblem for a choice nobody made.

    Args:
        origin: the whole, which messages name.
        found: parts that start vLLM, each with its model.
        service: which of them, and behind a slash which server in it.
        what: what a part is called.
    """
    names = [one.name for one, _ in found]
    wanted, inner = parted(names, service)
    candidates = [Candidate(one.name, one.line, model) for one, model in found]
    part = found[pick(origin, candidates, wanted, what)][0]
    try:
        return read_as(part.origin, part.kind, inner or None), part
    except ImportProblem as problem:
        if inner or not runs_several(problem):
            raise
        text = problem.what.replace(f"{SERVICE}=NAME", f"{SERVICE}={part.name}/NAME")
        raise origin.problem(part.line, f"{what} {part.name}: {text}") from problem


def script_of(origin: Origin, commands: list[Node]) -> str:
    """The commands as one script, each at its own line where that can be."""
    lines: list[str] = []
    for one in commands:
        text = shlex.join(each.text for each in one.items) if isinstance(one.value, list) else one.text
        first = one.line + is_block(origin, one)
        lines += [""] * (first - 1 - len(lines))
        lines += text.rstrip("\n").split("\n")
    return "\n".join(lines) + "\n"


def is_block(origin: Origin, node: Node) -> bool:
    """Whether a text stands below its key, behind a bar."""
    line = origin.text.split("\n")[node.line - 1] if node.line else ""
    return line.rstrip(" +-0123456789").endswith(("|", ">"))
