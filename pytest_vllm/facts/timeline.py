"""vLLM's versions, and values that change from one to the next.

A fact file holds `entries`: name -> attributes. `added` is the first sampled version with the entry (left
out when the first sampled version has it), `removed` the first one without it, `absent` a list of
[from, until) ranges in between. An attribute that changed is written `{"@": [[version, value], …]}`: the
value holds from that version on.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from pytest_vllm.facts.version import version_of

DATA = Path(__file__).parent / "generated"


@cache
def read(topic: str) -> dict[str, Any]:
    """The fact file of a topic, such as `flags`."""
    content: dict[str, Any] = json.loads((DATA / f"{topic}.json").read_text("utf-8"))
    return content


@cache
def versions() -> tuple[str, ...]:
    """Every sampled vLLM version, oldest first."""
    return tuple(read("versions")["entries"])


@cache
def nearest(version: str = "") -> str:
    """The sampled version whose facts hold for this one: itself, else the newest older one.

    Versions before the first sampled one get the first; empty or unreadable ones (`latest`, `nightly`) the
    newest.
    """
    asked = version_of(version)
    if asked is None:
        return versions()[-1]
    # a post release stands for its release: the facts of 0.8.5 are those of 0.8.5.post1
    older = [
        known
        for known in versions()
        if (of := version_of(known)) and (of <= asked or of.numbers == asked.numbers)
    ]
    return older[-1] if older else versions()[0]


@cache
def _position(version: str) -> int:
    return versions().index(version)


def lives(entry: dict[str, Any], version: str) -> bool:
    """Whether an entry exists in a sampled version."""
    here = _position(version)
    if here < _position(entry.get("added", versions()[0])):
        return False
    if "removed" in entry and here >= _position(entry["removed"]):
        return False
    return not any(_position(start) <= here < _position(end) for start, end in entry.get("absent", ()))


def at(value: Any, version: str) -> Any:
    """An attribute's value in a sampled version; None before its first one."""
    if not (isinstance(value, dict) and "@" in value):
        return value
    here = _position(version)
    known = [then for since, then in value["@"] if _position(since) <= here]
    return known[-1] if known else None


def entries(topic: str, version: str) -> dict[str, dict[str, Any]]:
    """What exists of a topic in a version, with the attributes it has there."""
    here = nearest(version)
    return {
        name: {key: at(value, here) for key, value in entry.items()}
        for name, entry in read(topic)["entries"].items()
        if lives(entry, here)
    }
