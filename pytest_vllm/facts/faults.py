"""Faults of vLLM that hang on a version and a configuration: `faults.toml`, whose head explains every key.

One table for all who ask: preflight by version and configuration, a log by its lines, a waiver by its check.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pytest_vllm.facts.version import version_of

#: What a condition may be about, cheap questions first.
SUBJECTS = ("args", "env", "speculation", "expect", "image", "hardware", "model")
#: Those that can be asked for as a whole.
WHOLE = ("speculation", "expect")
#: The parts that these have; the others take the name of a flag, a variable or a key.
PARTS = {
    "image": ("name",),
    "hardware": ("capability", "unified"),
    "model": ("name", "hybrid", "vision", "experts", "quantization"),
}
_NUMBER = re.compile(r"(>=|<=|>|<)(\d+)")


@dataclass(frozen=True)
class Condition:
    """One of the things that must hold.

    Args:
        subject: one of SUBJECTS.
        path: what of it: a flag and keys inside it, a variable, a part.
        wanted: the value as the table has it.
    """

    subject: str
    path: tuple[str, ...]
    wanted: Any

    @property
    def name(self) -> str:
        """As the table writes it."""
        return ".".join((self.subject, *self.path))

    @property
    def bound(self) -> tuple[str, int] | None:
        """Operator and number where the value is a bound: `>=8`."""
        found = _NUMBER.fullmatch(self.wanted) if isinstance(self.wanted, str) else None
        return (found[1], int(found[2])) if found else None


@dataclass(frozen=True)
class Fault:
    """A row of the table; `faults.toml` says what each part means."""

    id: str
    versions: str
    when: tuple[Condition, ...]
    title: str
    effect: str
    way_round: str
    thread: str
    fixed: str
    severity: str
    log: re.Pattern[str] | None
    checks: tuple[str, ...]
    alone: str

    def in_version(self, version: str) -> bool:
        """Whether a version has it; False for a text that is no version."""
        known = version_of(version)
        return known is not None and known.within(self.versions)


@cache
def faults() -> tuple[Fault, ...]:
    """The table. Raises KeyError or ValueError for a row that is not as its head says."""
    table = tomllib.loads(Path(__file__).with_name("faults.toml").read_text("utf-8"))
    return tuple(_fault(row) for row in table["fault"])


def faults_of_line(line: str, version: str) -> tuple[Fault, ...]:
    """Those of a version that a line of the log shows."""
    return tuple(one for one in faults() if one.log and one.log.search(line) and one.in_version(version))


def faults_of_check(check: str, version: str) -> tuple[Fault, ...]:
    """Those of a version that make a check fail."""
    return tuple(one for one in faults() if check in one.checks and one.in_version(version))


def fields_sent_alone(version: str) -> frozenset[str]:
    """Fields of requests that show, in a version, in what is computed beside them."""
    return frozenset(one.alone for one in faults() if one.alone and one.in_version(version))


def _fault(row: dict[str, Any]) -> Fault:
    conditions = sorted(
        (_condition(name, wanted) for name, wanted in row["when"].items()),
        key=lambda one: SUBJECTS.index(one.subject),
    )
    return Fault(
        row["id"],
        row["versions"],
        tuple(conditions),
        row["title"],
        row["effect"],
        row["way-round"],
        row["thread"],
        row.get("fixed", ""),
        row.get("severity", "warning"),
        re.compile(row["log"]) if "log" in row else None,
        tuple(row.get("checks", ())),
        row.get("alone", ""),
    )


def _condition(name: str, wanted: Any) -> Condition:
    subject, _, rest = name.partition(".")
    path = tuple(rest.split(".")) if rest else ()
    whole = subject in WHOLE and not path
    if subject not in SUBJECTS or not (path or whole) or (path and subject == "expect"):
        raise ValueError(f"{name!r} is nothing that a condition can be about: {', '.join(SUBJECTS)}")
    if subject in PARTS and path[0] not in PARTS[subject]:
        raise ValueError(f"{name!r}: {subject} has {', '.join(PARTS[subject])}")
    return Condition(subject, path, wanted)
