"""The words of known causes in a log's lines, and which lines can tell something at all."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_vllm.launch.causes import Cause, shapes
from pytest_vllm.launch.logtext import unprefixed
from pytest_vllm.launch.remembered import remembered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_WORD = re.compile(r"[\w.-]+")
#: An error that hands another's words on, behind some of its own: `Error: it did not go: CUDA out of memory`.
_HANDS_ON = re.compile(r"(?:Error|Exception): [A-Z][\w '\"/.,()-]{2,80}: (?=[A-Z])")
_PLACE = re.compile(r"\{(\w+)\}")

_CALM = re.compile(r"^(?:\([^)]*\)\s*)*(?:INFO|DEBUG|TRACE)\b")
#: A warning that says what is done instead: nothing failed.
_HEALED = re.compile(
    r"\b(?:[Ff]all(?:ing|s)?[ -]?back|fallback)\b|[;:,] (?:using|disabling|setting|ignoring)\b"
    r"|will be (?:used|ignored|disabled)|extreme caution|\bretrying \d+ of \d+|Error retrieving safetensors"
)
_WARNING = re.compile(
    r"^(?:\([^)]*\)\s*)*WARN(?:ING)?\b"
    r"|^Failed to import from |Warning: "
    r"|No CUDA runtime is found, using |thrown while requesting|\bRetrying in \d|\bretrying \d+ of \d+"
    r"|Error retrieving safetensors|\bThis container was built for NVIDIA Driver Release\b"
)


#: What glog writes before one.
_OF_GLOG = re.compile(r"(?:\S+ ){0,3}\s*\[?W\d{3,4} \d\d:\d\d:\d\d\.\d+ ")


@dataclass(frozen=True)
class Found:
    """A cause with the line that shows it.

    Args:
        cause: what it is.
        number: the line, counted from 1; 0 when no log line shows it.
        line: its words.
        means: what it means, one sentence.
        tries: the next steps.
        mentioned: whether the line only speaks of an error, and no line is one: a single witness.
    """

    cause: Cause
    number: int
    line: str
    means: str
    tries: tuple[str, ...]
    mentioned: bool = False


@remembered
def only_warns(line: str) -> bool:
    """Whether a line warns of something, and says nothing of a failure."""
    return bool(_WARNING.search(line) or _OF_GLOG.match(line))


def telling(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Numbered lines that can tell a cause: no INFO, no usage text, no source quoted in a traceback."""
    source = usage = False
    for number, line in enumerate(lines, 1):
        text = unprefixed(line)
        usage = text.startswith("usage: ") or (usage and text.startswith(" "))
        quoted = source and text.startswith("    ")
        source = quoted or text.lstrip().startswith('File "')
        healed = only_warns(line) and _HEALED.search(text)
        if not (usage or quoted or source or healed or _CALM.match(line)):
            yield number, line


def cause_in(number: int, text: str) -> Found | None:
    """The cause whose words a text of the server's holds; no symptom."""
    found = next(matches(number, text, ran=True), None)
    return None if found is None or found.cause.symptom else found


def matches(number: int, line: str, *, ran: bool) -> Iterator[Found]:
    """The first cause whose words a line holds, if any; where a server ran, none of what starts one."""
    if first := _first(line, ran=ran):
        cause, match = first
        groups = _groups(match)
        known = _WORD.findall(groups.get("known", ""))
        near = difflib.get_close_matches(groups.get("value", ""), known, 1)
        groups["near"] = near[0] if near else ""
        # a step that hangs on a figure which the line does not give is left out
        tries = tuple(_filled(one, groups) for one in cause.tries if all(_named(one, groups)))
        yield Found(cause, number, line, _filled(cause.means, groups), tries)
        return
    if handed := _HANDS_ON.search(line):
        inner = f"RuntimeError: {line[handed.end() :]}"
        yield from (replace(found, line=line) for found in matches(number, inner, ran=ran))


@remembered
def _first(line: str, *, ran: bool) -> tuple[Cause, re.Match[str]] | None:
    known, patterns = shapes(ran=ran)
    return next(((known[n], match) for n, match in patterns.fitting(line)), None)


def _groups(match: re.Match[str]) -> dict[str, str]:
    """Named groups, `name2` and `name3` standing in for an empty `name`."""
    found: dict[str, str] = {}
    for name, text in match.groupdict().items():
        plain = name.rstrip("23")
        found[plain] = found.get(plain) or (text or "").strip()
    return found


def _named(text: str, groups: Mapping[str, str]) -> list[str]:
    return [groups[name] for name in _PLACE.findall(text) if name in groups]


def _filled(text: str, groups: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda place: groups.get(place[1], place[0]), text)
