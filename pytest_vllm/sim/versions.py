"""vLLM versions, and facts that hold for some of them."""

from __future__ import annotations

import json
import re
from functools import cache, total_ordering
from typing import Any

import pytest_vllm.facts
from pytest_vllm.facts.timeline import DATA, read
from pytest_vllm.facts.version import Version as Release

#: The newest version of which real servers were recorded (tests/agree).
DEFAULT = "0.32.0"


@total_ordering
class Version:
    """A release such as 0.32.0 or 0.8.5.post1; compares with versions and with text."""

    def __init__(self, text: str) -> None:
        """Read it. Raises ValueError for a text that is no version."""
        self.text = text
        self.release = _release(text)

    def __eq__(self, other: object) -> bool:
        """Equal when what counts of them is."""
        return self.release == _release(str(other))

    def __lt__(self, other: object) -> bool:
        """Older."""
        return self.release < _release(str(other))

    def __hash__(self) -> int:
        """By what counts."""
        return hash(self.release)

    def __str__(self) -> str:
        """As written."""
        return self.text

    def within(self, span: list[str]) -> bool:
        """Whether this version lies in [first, first without); an empty end is open."""
        return self >= span[0] and (not span[1] or self < span[1])

    def pick(self, timeline: Any) -> Any:
        """The value in force: a plain value, or the last of [[from version, value], …] that applies."""
        if not is_timeline(timeline):
            return timeline
        value = timeline[0][1]
        for since, later in timeline:
            if self >= since:
                value = later
        return value


def is_timeline(value: Any) -> bool:
    """Whether a fact is given by version."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(step, list) and len(step) == 2 and re.match(r"\d+\.\d", str(step[0])) for step in value
        )
    )


@cache
def _release(text: str) -> Release:
    """What counts of a version; a post release is its release, published again: 0.6.4 is 0.6.4.post1."""
    written = Release(text)
    known = Release(pytest_vllm.facts.nearest(text))
    return known if known.numbers == written.numbers else written


@cache
def facts(name: str) -> Any:
    """One of the simulator's own fact tables, `facts/generated/sim-NAME.json`."""
    return json.loads((DATA / f"sim-{name}.json").read_text("utf-8"))


@cache
def parsers(kind: str) -> dict[str, list[str]]:
    """Names of `tool` or `reasoning` parsers, each with its span."""
    entries = read("parsers")["entries"].items()
    return {key.partition("/")[2]: _span(entry) for key, entry in entries if key.startswith(f"{kind}/")}


@cache
def routes() -> dict[str, dict[str, Any]]:
    """Routes by path: `span`, and whatever else is known of them."""
    return {
        path: {**{name: _steps(value) for name, value in entry.items()}, "span": _span(entry)}
        for path, entry in read("routes")["entries"].items()
    }


def guarded_prefixes() -> Any:
    """Beginnings of the paths that an API key guards, by version."""
    return _steps(read("routes")["guarded_prefixes"])


def _span(entry: dict[str, Any]) -> list[str]:
    return [entry.get("added") or pytest_vllm.facts.versions()[0], entry.get("removed", "")]


def _steps(value: Any) -> Any:
    """A value by version as `Version.pick` reads it."""
    return value["@"] if isinstance(value, dict) and set(value) == {"@"} else value
