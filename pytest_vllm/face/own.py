"""Tests of the person's own that are not checks: what became of each, for the verdict and the reports."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_vllm.face import selection
from pytest_vllm.face.collection import in_suites
from pytest_vllm.face.items import exchanges_of, spec_of
from pytest_vllm.report.record import OwnTest

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

#: The attribute under which a report carries what only its item knows, from xdist workers too.
CARRIED = "vllm_own"
FAILING = ("failed", "error")


def is_bundled(item: pytest.Item) -> bool:
    """Whether an item is a check that comes with pytest-vllm."""
    return spec_of(item) is not None and in_suites(item.path)


def carried(item: pytest.Item, default: str) -> dict[str, Any]:
    """What a report says of its own test beside what pytest puts there: plain values."""
    asks = selection.needs_server(item)
    keys = list(exchanges_of(item, None)) if asks else []
    return {"profile": selection.profile_of(item, default) if asks else "", "keys": keys}


class OwnBook:
    """What became of every own test, by node id: the last attempt counts."""

    def __init__(self) -> None:
        """No test has run."""
        self._tests: dict[str, OwnTest] = {}

    def __iter__(self) -> Iterator[OwnTest]:
        """Every own test that has run, in order of its first report."""
        return iter(self._tests.values())

    def add(self, report: pytest.TestReport) -> None:
        """Take in a report of a set-up, a call or a teardown."""
        if report.outcome == "rerun":  # type: ignore[comparison-overlap] - pytest-rerunfailures' word
            self._tests.pop(report.nodeid, None)
            return
        outcome = _outcome(report)
        known = self._tests.get(report.nodeid)
        if known is None:
            about = getattr(report, CARRIED, {})
            known = OwnTest(
                nodeid=report.nodeid,
                profile=about.get("profile", ""),
                keys=tuple(about.get("keys", ())),
            )
        known = replace(known, seconds=round(known.seconds + report.duration, 6))
        if outcome in FAILING and known.outcome not in FAILING:
            known = replace(
                known, outcome=outcome, message=_message(report), traceback=report.longreprtext.rstrip()
            )
        elif outcome and known.outcome not in FAILING:
            known = replace(known, outcome=outcome)
        self._tests[report.nodeid] = known


def _outcome(report: pytest.TestReport) -> str:
    """What one phase says of the whole test; empty where a later one does."""
    if report.failed:
        return "failed" if report.when == "call" else "error"
    if report.skipped:
        return "skipped"
    return "passed" if report.when == "call" else ""


def _message(report: pytest.TestReport) -> str:
    """The first line of what went wrong, and where."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else report.longreprtext).strip().splitlines()
    if crash is None and getattr(report.longrepr, "errorstring", None):
        lines = report.longrepr.errorstring.strip().splitlines()  # type: ignore[union-attr]
    return lines[0] if lines else "pytest gives no reason"
