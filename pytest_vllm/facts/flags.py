"""The flags of `vllm serve`, per version."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from pytest_vllm.facts.timeline import at, entries, lives, nearest, read, versions

if TYPE_CHECKING:
    from collections.abc import Mapping

State = Literal["known", "deprecated", "removed", "not-yet", "unknown"]


@dataclass(frozen=True)
class Flag:
    """One flag in one version.

    Args:
        name: without dashes, words joined by hyphens: `max-model-len`.
        type: bool, int, float, str, choice, list, json, …
        default: `@x` is computed at start-up, not a literal; None is unset.
        choices: values that the argument parser accepts; empty when it does not check.
        suggested: values that are checked later than the argument parser.
        negatable: whether `--no-NAME` exists.
        aliases: other spellings, with their dashes.
        group: the configuration class it belongs to.
        note: what else is worth knowing.
    """

    name: str
    type: str
    default: Any = None
    choices: tuple[str, ...] = ()
    suggested: tuple[str, ...] = ()
    negatable: bool = False
    aliases: tuple[str, ...] = ()
    group: str = ""
    note: str = ""


@dataclass(frozen=True)
class FlagStatus:
    """What became of a flag by a version.

    Args:
        flag: the canonical name.
        version: the sampled version that was looked at.
        state: known, deprecated, removed, not-yet (added later) or unknown (to every version).
        added: first sampled version that has it; the first one of all may be later than the true one.
        removed: first sampled version that lacks it again, None while it lives.
        returns: the version that accepts it again, None mostly.
        replaced_by: what to write instead, empty when nothing is.
        deprecated_since: first version that warns about it.
        removal_announced_for: the version that vLLM says it will go in.
        note: what else is worth knowing.
        similar: known flags of like spelling, best first, for unknown ones.
    """

    flag: str
    version: str
    state: State
    added: str | None = None
    removed: str | None = None
    returns: str | None = None
    replaced_by: str = ""
    deprecated_since: str | None = None
    removal_announced_for: str | None = None
    note: str = ""
    similar: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether that version's argument parser takes the flag."""
        return self.state in ("known", "deprecated")


@cache
def flags(version: str = "") -> Mapping[str, Flag]:
    """Every flag of a version by name."""
    here = nearest(version)
    found = {
        name: Flag(
            name,
            entry["type"],
            entry.get("default"),
            tuple(entry.get("choices") or ()),
            tuple(entry.get("suggested") or ()),
            "negatable" in entry and versions().index(entry["negatable"]) <= versions().index(here),
            tuple(entry.get("aliases", ())),
            entry.get("group", ""),
            entry.get("note", ""),
        )
        for name, entry in entries("flags", here).items()
    }
    return MappingProxyType(found)


@cache
def _aliases() -> dict[str, str]:
    short = {
        alias.lstrip("-"): name
        for name, entry in read("flags")["entries"].items()
        for alias in entry.get("aliases", ())
    }
    return short | {f"O{level}": "optimization-level" for level in ("", "0", "1", "2", "3")}


def canonical(flag: str) -> str:
    """The name facts are kept under: no dashes in front, hyphens, aliases and `no-` resolved.

    `--tensor_parallel_size` and `-tp` give `tensor-parallel-size`; `--speculative-config.method` gives the
    flag before the dot.
    """
    name = flag.lstrip("-")
    name = _aliases().get(name, name)
    name = re.sub("_", "-", name.partition(".")[0])
    known = read("flags")["entries"]
    positive = name.removeprefix("no-")
    return positive if name not in known and "negatable" in known.get(positive, {}) else name


@cache
def flag_status(flag: str, version: str = "") -> FlagStatus:
    """What a version makes of a flag, and what to write instead."""
    name, here = canonical(flag), nearest(version)
    entry = read("flags")["entries"].get(name)
    if entry is None:
        return FlagStatus(name, here, "unknown", similar=_similar(name))
    position = versions().index(here)
    added = entry.get("added", versions()[0])
    returns = [
        until for start, until in entry.get("absent", ()) if _before(start, here) and not _before(until, here)
    ]
    gone = [start for start, until in entry.get("absent", ()) if until in returns]
    deprecated = entry.get("deprecated")
    if lives(entry, here):
        state: State = "deprecated" if deprecated and _before(deprecated, here) else "known"
    else:
        state = "not-yet" if position < versions().index(added) else "removed"
    return FlagStatus(
        name,
        here,
        state,
        added,
        gone[0] if gone else entry.get("removed"),
        returns[0] if returns else None,
        at(entry.get("replaced", ""), here) or "",
        deprecated,
        entry.get("removal"),
        entry.get("note", ""),
    )


def _before(one: str, other: str) -> bool:
    return versions().index(one) <= versions().index(other)


def _similar(name: str) -> tuple[str, ...]:
    return tuple(difflib.get_close_matches(name, read("flags")["entries"], n=3, cutoff=0.7))
