"""Today's failures as waivers for a profile: each with an issue, a version range and an end. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_vllm.decide.verdict import Verdict
from pytest_vllm.facts.faults import faults_of_check
from pytest_vllm.facts.version import version_of
from pytest_vllm.report.compare.extract import spread

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Mapping

#: Results about waivers themselves: those are mended in the profile, not waived.
STALE = "waiver."


class UntrackedError(ValueError):
    """Failures that no thread is known for; `checks` names them."""

    def __init__(self, checks: list[str]) -> None:
        """Name the checks."""
        super().__init__(", ".join(checks))
        self.checks = checks


@dataclass(frozen=True)
class Proposal:
    """One waiver, as a profile writes it."""

    check: str
    reason: str
    issue: str
    versions: str
    until: dt.date

    @property
    def toml(self) -> str:
        """As TOML."""
        values = {"check": self.check, "reason": self.reason, "issue": self.issue, "versions": self.versions}
        lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
        return "\n".join(["[[waive]]", *lines, f"until = {self.until.isoformat()}"])


def proposals(part: Mapping[str, Any], *, issue: str, versions: str, until: dt.date) -> list[Proposal]:
    """A waiver for each check that failed; one for all cases of a check where all of them did.

    Args:
        part: a profile's part of an extract.
        issue: where failures are tracked that no known fault explains; may be empty.
        versions: the versions they hold for; empty: the one that was tested.
        until: the last day.

    Raises UntrackedError where a failure has no thread, ValueError where the version is not known.
    """
    version = str(part["identity"]["version"])
    tested = version_of(version)
    if not versions and tested is None:
        raise ValueError(f"the run does not know its vLLM version ({version!r}): give --versions")
    found, untracked = [], []
    for check, first in _failed(part):
        known = faults_of_check(first, version)
        thread = known[0].thread if known and not issue else issue
        if not thread:
            untracked.append(check)
            continue
        fact = part["facts"].get(first, "").rstrip(".")
        reason = f"does not hold on vLLM {version}: {fact}" if fact else f"fails on vLLM {version}"
        found.append(Proposal(check, reason, thread, versions or f"=={version.partition('+')[0]}", until))
    if untracked:
        raise UntrackedError(untracked)
    return found


def _failed(part: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(what a waiver names, one check that it covers) of everything that failed."""
    verdicts = {check: verdict for check, (verdict, _) in spread(part).items()}
    cases: dict[str, list[str]] = {}
    for check in verdicts:
        cases.setdefault(check.partition("[")[0], []).append(check)
    for base, checks in sorted(cases.items()):
        failing = sorted(check for check in checks if verdicts[check] == Verdict.FAIL)
        if not failing or base.startswith(STALE):
            continue
        if len(failing) == len(checks):
            yield base, failing[0]
        else:
            yield from ((check, check) for check in failing)


def undecided(part: Mapping[str, Any]) -> list[str]:
    """MUST checks that no waiver covers, since they were not decided."""
    return sorted(
        check
        for check, (verdict, level) in spread(part).items()
        if verdict == Verdict.UNDECIDED and level == "MUST"
    )
