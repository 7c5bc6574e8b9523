"""Takes what changed in a version into the facts, preflight's tables and the simulator's."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from pytest_vllm.facts.version import Version
from tools.new_version.reading import Change

Topics = dict[str, dict[str, Any]]
Changes = dict[str, Change]

#: Attributes of which a version that still has the entry has some value.
LOST = ("choices", "suggested", "group", "class", "methods")


def lacking(topics: Topics, changes: Changes, version: str) -> Changes:
    """What of the changes the facts do not say yet of this version: all of it for a new one.

    What they say otherwise than the sources is left as it is: a person wrote it.
    """
    found = {}
    for topic, change in changes.items():
        known = topics[topic]["entries"]
        found[topic] = Change(
            {name: entry for name, entry in change.added.items() if not _begins(known.get(name), version)},
            [name for name in change.removed if name in known and "removed" not in known[name]],
            {
                name: steps
                for name, values in change.changed.items()
                if (steps := _steps(known.get(name, {"added": version}), values, version))
            },
        )
    return found


def doubtful(key: str, values: dict[str, Any]) -> bool:
    """Whether an attribute was perhaps only read otherwise: it is computed now, or not seen any more.

    Choices that became mere suggestions are not seen for that reason.
    """
    value = values[key]
    if isinstance(value, str) and value.startswith("@") and value != "@required":
        return True
    moved = {"choices": "suggested", "suggested": "choices"}.get(key, "")
    return key in LOST and value is None and values.get(moved) is None


def fold(topics: Topics, changes: Changes, version: str, date: str) -> Topics:
    """The topics with these changes; `versions` gets the version where it is new.

    Raises ValueError for a version that is older than the newest known one and not among the known.
    """
    topics = deepcopy(topics)
    known = topics["versions"]["entries"]
    if version not in known and Version(version) < Version(list(known)[-1]):
        raise ValueError(f"{version} is older than {list(known)[-1]}, and the facts do not sample it")
    known.setdefault(version, {"date": date})
    for topic, change in changes.items():
        entries = topics[topic]["entries"]
        for name, entry in change.added.items():
            whole = entry | {"guarded": _guarded(topics, name)} if topic == "routes" else entry
            _add(entries, name, whole, version)
        for name in change.removed:
            entries[name]["removed"] = version
        for name, values in change.changed.items():
            for key, value in values.items():
                entries[name][key] = _step(entries[name], key, value, version, next(iter(known)))
        topics[topic]["entries"] = dict(sorted(entries.items()))
    return topics


def _add(entries: dict[str, Any], name: str, entry: dict[str, Any], version: str) -> None:
    before = entries.get(name)
    if before is not None and "removed" in before:
        before["absent"] = [*before.get("absent", ()), [before.pop("removed"), version]]
        return
    fresh = {
        key: version if key == "negatable" else value for key, value in entry.items() if value is not None
    }
    entries[name] = {"added": version, **dict(sorted(fresh.items()))}


def _guarded(topics: Topics, path: str) -> bool:
    """Whether a path lies below one that the API key guards."""
    prefixes = topics["routes"].get("guarded_prefixes", [])
    newest = prefixes["@"][-1][1] if isinstance(prefixes, dict) else prefixes
    return any(path == one or path.startswith(f"{one}/") for one in newest)


def _begins(entry: dict[str, Any] | None, version: str) -> bool:
    """Whether an entry is known to live in a version."""
    if entry is None:
        return False
    return "removed" not in entry or Version(entry["removed"]) > Version(version)


def _steps(entry: dict[str, Any], values: dict[str, Any], version: str) -> dict[str, Any]:
    """The attributes whose known value is not the new one, and was not settled for this version."""
    if entry.get("added") == version:
        return {}
    found = {}
    for key, value in values.items():
        steps = entry[key]["@"] if isinstance(entry.get(key), dict) and "@" in entry[key] else None
        settled = steps is not None and steps[-1][0] == version
        same = (steps[-1][1] if steps else entry.get(key)) == value
        if not settled and not same and not doubtful(key, values):
            found[key] = value
    return found


def _step(entry: dict[str, Any], key: str, value: Any, version: str, first: str) -> Any:
    before = entry.get(key)
    if isinstance(before, dict) and "@" in before:
        return {"@": [*before["@"], [version, value]]}
    return {"@": [[entry.get("added", first), before], [version, value]]}
