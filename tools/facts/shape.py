"""Entries of a whole record in the form that timeline.py reads."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

Entries = dict[str, dict[str, Any]]

_DROPPED = (
    "last_seen",
    "absent_between",
    "choices_changes",
    "suggested_changes",
    "type_changes",
    "reappears",
    "use_instead",
)
_RENAMED = {
    "negatable_since": "negatable",
    "deprecated_since": "deprecated",
    "removal_announced_for": "removal",
    "replaced_by": "replaced",
    "renamed_to": "renamed",
    "when_identifiers": "when",
    "api_key_guarded": "guarded",
    "same_class_as": "same",
}


class Shape:
    """Turns the record's entries into ours, given the order of versions."""

    def __init__(self, order: list[str]) -> None:
        self.order = order

    def value(self, value: Any) -> Any:
        """An attribute: a list of [version, value] pairs becomes `{"@": …}`."""
        pairs = isinstance(value, list) and value and all(self._pair(item) for item in value)
        return {"@": value} if pairs else value

    def _pair(self, item: object) -> bool:
        return isinstance(item, list) and len(item) == 2 and item[0] in self.order

    def entry(self, entry: dict[str, Any]) -> dict[str, Any]:
        """One entry without what the file's rules already say."""
        shaped = {
            _RENAMED.get(key, key): self.value(value)
            for key, value in entry.items()
            if key not in _DROPPED and value not in (None, "", [])
        }
        if str(shaped.get("added", "")).startswith("<="):
            del shaped["added"]
        if "type_changes" in entry:
            shaped["type"] = {"@": entry["type_changes"]}
        if "absent_between" in entry:
            missing = entry["absent_between"]
            shaped["absent"] = [[missing[0], self.order[self.order.index(missing[-1]) + 1]]]
        if "reappears" in entry:
            shaped["absent"] = [[shaped.pop("removed"), entry["reappears"].split()[0]]]
        return shaped

    def table(self, entries: Entries) -> Entries:
        """Entries by name."""
        return {name: self.entry(entry) for name, entry in entries.items()}

    def flags(self, entries: Entries) -> Entries:
        """Flags without their dashes, choices written out per version."""
        shaped = {}
        for name, entry in entries.items():
            flag = self.entry(entry)
            for key in ("choices", "suggested"):
                if f"{key}_changes" in entry:
                    flag[key] = {"@": self._unfold(entry.get(key), entry[f"{key}_changes"])}
            shaped[name.lstrip("-")] = flag
        return shaped

    def _unfold(self, newest: list[Any] | None, changes: list[Any]) -> list[list[Any]]:
        """The list at every change and before the first, from the newest and the changes that led to it."""
        names, unfolded = set(newest or ()), []
        for version, change in reversed(changes):
            unfolded.append([version, sorted(names, key=str)])
            names = (names - set(change["+"])) | set(change["-"])
        if changes[0][0] != self.order[0]:
            unfolded.append([self.order[0], sorted(names, key=str)])
        return unfolded[::-1]

    def parser(self, entry: dict[str, Any]) -> dict[str, Any]:
        """A parser with all model ids that name it in one list."""
        models = {
            m for key, ids in entry.items() if key.startswith(("doc_models", "recipe_models")) for m in ids
        }
        rest = {
            key: value for key, value in entry.items() if not key.startswith(("doc_models", "recipe_models"))
        }
        return self.entry(rest) | ({"models": sorted(models)} if models else {})

    def fields(self, classes: Entries) -> Entries:
        """Fields as `Class.field`, alive only while their class is."""
        shaped: Entries = {}
        for owner, entry in classes.items():
            life = {
                key: value
                for key, value in self.entry(entry).items()
                if key in ("added", "removed", "absent")
            }
            for name, field in entry["fields"].items():
                shaped[f"{owner}.{name}"] = life | self.entry(field)
        return shaped

    def ranged(self, entries: Entries) -> Entries:
        """Entries whose life is a list of [first, last] ranges; an empty last is still alive."""
        return {name: self._ranged(entry) for name, entry in entries.items()}

    def _ranged(self, entry: dict[str, Any]) -> dict[str, Any]:
        shaped = {
            key: value for key, value in entry.items() if key != "versions" and value not in (None, "", [])
        }
        ranges = entry["versions"]
        if ranges[0][0] != self.order[0]:
            shaped["added"] = ranges[0][0]
        gaps = [[self._after(one[1]), two[0]] for one, two in pairwise(ranges)]
        if gaps:
            shaped["absent"] = gaps
        if ranges[-1][1] and ranges[-1][1] != self.order[-1]:
            shaped["removed"] = self._after(ranges[-1][1])
        return shaped

    def _after(self, version: str) -> str:
        return self.order[self.order.index(version) + 1]
