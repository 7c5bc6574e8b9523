"""Write pytest_vllm/facts/generated: `python -m tools.facts.build --from DIR [--to DIR]`.

DIR holds either the whole record (`flags.json`, `parsers.json`, … with `added` and `removed` per entry:
everything is written anew), or snapshots of single versions (`*.snapshot.json`, see snapshot.py: the present
facts are extended by them). data/README.md tells which to use when.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts.timeline import DATA
from pytest_vllm.facts.version import Version
from tools.facts.extend import extend
from tools.facts.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
    order = sorted(dates, key=Version)
    shape = Shape(order)
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


def snapshots(folder: Path) -> list[dict[str, Any]]:
    """Snapshots of single versions in a folder, oldest version first."""
    found = [json.loads(path.read_text("utf-8")) for path in folder.glob("*.snapshot.json")]
    return sorted(found, key=lambda snapshot: Version(snapshot["version"]))


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
    parser = argparse.ArgumentParser(prog="python -m tools.facts.build", description=__doc__)
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
