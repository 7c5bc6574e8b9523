"""Adds one version to the facts: what it has new, lacks, and has changed against the version before it."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts.version import Version

if TYPE_CHECKING:
    from collections.abc import Iterable

Topics = dict[str, dict[str, Any]]


def extend(topics: Topics, snapshots: Iterable[dict[str, Any]]) -> Topics:
    """The facts with these snapshots behind them.

    Args:
        topics: fact files by topic.
        snapshots: `{"version", "date", "topics": {topic: {"complete", "entries"}}}`, oldest first.
            `complete` means that what a snapshot leaves out is gone; otherwise it only adds.

    Raises ValueError for a version that is not newer than all known ones.
    """
    topics = deepcopy(topics)
    for snapshot in snapshots:
        known = topics["versions"]["entries"]
        version, newest = snapshot["version"], list(known)[-1]
        if Version(version) <= Version(newest):
            raise ValueError(
                f"snapshot of {version}: the facts already reach {newest}, only newer versions can be added"
            )
        for topic, seen in snapshot["topics"].items():
            fold = _Fold(topics[topic]["entries"], version, next(iter(known)))
            fold.add(seen["entries"], complete=seen["complete"])
        known[version] = {"date": snapshot["date"]}
    return topics


class _Fold:
    """One topic's entries, taking in one version."""

    def __init__(self, known: dict[str, Any], version: str, first: str) -> None:
        self.known, self.version, self.first = known, version, first

    def add(self, seen: dict[str, Any], *, complete: bool) -> None:
        """Take in what the version has; what is complete and lacks an entry ends it."""
        for name, attributes in seen.items():
            entry = self.known.setdefault(name, {"added": self.version})
            if "removed" in entry:
                entry["absent"] = [*entry.get("absent", ()), [entry.pop("removed"), self.version]]
            for key, value in attributes.items():
                entry[key] = self._since(entry, key, value)
        if complete:
            for name in self.known.keys() - seen.keys():
                self.known[name].setdefault("removed", self.version)

    def _since(self, entry: dict[str, Any], key: str, value: Any) -> Any:
        before = entry.get(key)
        start = entry.get("added", self.first)
        if start == self.version:
            return value
        steps = before["@"] if isinstance(before, dict) and "@" in before else [[start, before]]
        return before if _same(steps[-1][1], value) else {"@": [*steps, [self.version, value]]}


def _same(known: Any, seen: Any) -> bool:
    """Whether a running vLLM shows what its source says.

    `@x` is computed at start-up, so that any value fits it; `json(X)` shows as `json`.
    """
    if isinstance(known, str) and (known.startswith("@") or known.partition("(")[0] == seen):
        return True
    if isinstance(known, list) and isinstance(seen, list):
        return sorted(map(str, known)) == sorted(map(str, seen))
    return bool(known == seen)
