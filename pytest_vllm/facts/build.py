"""Write pytest_vllm/facts/data: `python -m pytest_vllm.facts.build --from DIR [--to DIR]`.

DIR holds either the whole record (`flags.json`, `parsers.json`, … with `added` and `removed` per entry:
everything is written anew), or snapshots of single versions (`*.snapshot.json`, see snapshot.py: the present
facts are extended by them). data/README.md tells which to use when.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts.extend import extend
from pytest_vllm.facts.timeline import DATA, release_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
#: What `changes.json` says in words about batch sizes, as rules; the last one that matches wins.
BATCH_RULES: list[dict[str, Any]] = [
    {"since": "0.6.4.post1", "tokens": 2048, "seqs": 256},
    {"since": "0.7.3", "names": ["h100", "h200"], "tokens": 8192, "seqs": 256},
    {"since": "0.8.5.post1", "min_gib": 70, "not": ["a100"], "tokens": 8192, "seqs": 256},
    {"since": "0.9.2", "min_gib": 70, "not": ["a100"], "tokens": 8192, "seqs": 1024},
    {"since": "0.28.0", "min_gib": 160, "tokens": 16384, "seqs": 1024},
    {"since": "0.33.0", "names": ["gb10"], "tokens": 2048, "seqs": 256},
    {"since": "0.10.0", "names": ["cpu"], "tokens": 2048, "seqs": 128},
]


def build(source: Path) -> dict[str, dict[str, Any]]:
    """All fact files of a whole record, by topic. Raises OSError, KeyError or ValueError on a bad one."""
    record = {name: json.loads((source / f"{name}.json").read_text("utf-8")) for name in _RECORD}
    dates = record["versions"]["versions"]
    order = sorted(dates, key=lambda version: release_key(version) or ((), 0))
    shape = _Shape(order)
    metrics, fields, parsers = record["metrics"], record["fields"], record["parsers"]["parsers"]
    return {
        "versions": {"entries": {version: {"date": dates[version]["date"]} for version in order}},
        "flags": {"entries": shape.flags(record["flags"]["flags"])},
        "parsers": {
            "entries": {
                f"{kind}/{name}": shape.parser(entry)
                for kind in parsers
                for name, entry in parsers[kind].items()
            }
        },
        "metrics": {"entries": shape.table(metrics["metrics"]), "notes": metrics["notes"]},
        "cache-config": {"entries": shape.table(metrics["cache_config_info_fields"])},
        "routes": {
            "entries": shape.table(record["routes"]["routes"]),
            "guarded_prefixes": shape.value(record["routes"]["api_key_guarded_prefixes"]),
        },
        "fields": {"entries": shape.fields(fields["classes"]), "notes": fields["notes"]},
        "logs": {"entries": shape.ranged(record["logs"]["lines"])},
        "startup-errors": {"entries": shape.ranged(record["startup_errors"]["errors"])},
        "batch-defaults": {"rules": BATCH_RULES},
    }


_RECORD = ("versions", "flags", "parsers", "metrics", "routes", "fields", "logs", "startup_errors")


class _Shape:
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


def snapshots(folder: Path) -> list[dict[str, Any]]:
    """Snapshots of single versions in a folder, oldest version first."""
    found = [json.loads(path.read_text("utf-8")) for path in folder.glob("*.snapshot.json")]
    return sorted(found, key=lambda snapshot: release_key(snapshot["version"]) or ((), 0))


def write(topics: dict[str, dict[str, Any]], folder: Path) -> None:
    """One file per topic, one line per entry, so that a new version reads well as a diff."""
    folder.mkdir(parents=True, exist_ok=True)
    for topic, content in topics.items():
        (folder / f"{topic}.json").write_text(_lines(content), "utf-8")


def _lines(content: dict[str, Any]) -> str:
    parts = []
    for key, value in content.items():
        opening, closing, rows = (
            ("{", "}", _rows(value)) if isinstance(value, dict) else ("[", "]", map(_dump, value))
        )
        parts.append(f"{_dump(key)}: {opening}\n  " + ",\n  ".join(rows) + f"\n{closing}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _rows(table: dict[str, Any]) -> Iterable[str]:
    return (f"{_dump(key)}: {_dump(value)}" for key, value in table.items())


_dump: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False, separators=(", ", ": ")).encode


def main(argv: list[str] | None = None) -> int:
    """The command line; exit status 0, or 4 with one line on what is wrong with DIR."""
    parser = argparse.ArgumentParser(prog="python -m pytest_vllm.facts.build", description=__doc__)
    parser.add_argument("--from", dest="source", type=Path, required=True, metavar="DIR")
    parser.add_argument("--to", dest="target", type=Path, default=DATA, metavar="DIR")
    options = parser.parse_args(argv)
    try:
        found = snapshots(options.source)
        topics = extend(_present(options.target), found) if found else build(options.source)
    except ValueError as fault:
        sys.stderr.write(f"{options.source}: {fault}\n")
        return 4
    except (OSError, KeyError) as fault:
        sys.stderr.write(f"{options.source}: no record of vLLM's versions and no snapshot of one: {fault}\n")
        return 4
    write(topics, options.target)
    sys.stdout.write(
        f"{options.target}: {len(topics)} topics, newest version {list(topics['versions']['entries'])[-1]}\n"
    )
    return 0


def _present(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}


if __name__ == "__main__":
    sys.exit(main())
