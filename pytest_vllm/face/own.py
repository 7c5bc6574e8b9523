"""Tests of the person's own that are not checks: what became of each, for the verdict and the reports."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.face import selection
from pytest_vllm.face.again import reaching
from pytest_vllm.face.collection import in_suites
from pytest_vllm.face.items import exchanges_of, spec_of
from pytest_vllm.report.evidence import Exhibit, exhibit_of
from pytest_vllm.report.excerpt import Line
from pytest_vllm.report.record import OwnTest

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from pytest_vllm.face.session import GateSession

#: The attribute under which a report carries what only its item knows, from xdist workers too.
CARRIED = "vllm_own"
MOST_EXHIBITS = 5
FAILING = ("failed", "error")


def is_bundled(item: pytest.Item) -> bool:
    """Whether an item is a check that comes with pytest-vllm."""
    return spec_of(item) is not None and in_suites(item.path)


def own_file(item: pytest.Item) -> str:
    """The file of an own test as the command line takes it, from where this run was started."""
    return Path(os.path.relpath(item.path, item.config.invocation_params.dir)).as_posix()


def carried(item: pytest.Item, session: GateSession, *, failed: bool) -> dict[str, Any]:
    """What a report says of its own test beside what pytest puts there: plain values."""
    asks = selection.needs_server(item)
    name = selection.profile_of(item, session.default_profile)
    _, sep, rest = item.nodeid.partition("::")
    return {
        "profile": name if asks else "",
        "rerun": f"pytest {reaching(session.options)} {shlex.quote(f'{own_file(item)}{sep}{rest}')}",
        "exhibits": _evidence(item, session, name) if failed else [],
    }


def _evidence(item: pytest.Item, session: GateSession, name: str) -> list[dict[str, Any]]:
    """The exchanges that a failing test used, as plain values: its recordings, then what it sent itself."""
    used = session.traffic.recordings()[-MOST_EXHIBITS:]
    keys = exchanges_of(item, None)
    if keys:
        store = session.state(name).store
        used = [*(store.get(key) for key in keys if key in store), *used][:MOST_EXHIBITS]
    return [asdict(exhibit_of(one, "", session.redactor)) for one in used]


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
        if str(report.outcome) == "rerun":  # pytest-rerunfailures' word
            self._tests.pop(report.nodeid, None)
            return
        outcome = _outcome(report)
        known = self._tests.get(report.nodeid)
        if known is None:
            about = getattr(report, CARRIED, {})
            known = OwnTest(
                nodeid=report.nodeid,
                profile=about.get("profile", ""),
                rerun=about.get("rerun", ""),
            )
        known = replace(known, seconds=round(known.seconds + report.duration, 6))
        if outcome in FAILING and known.outcome not in FAILING:
            known = replace(
                known,
                outcome=outcome,
                message=_message(report),
                traceback=report.longreprtext.rstrip(),
                exhibits=tuple(map(_exhibit, getattr(report, CARRIED, {}).get("exhibits", ()))),
            )
        elif outcome and known.outcome not in FAILING:
            known = replace(known, outcome=outcome)
        self._tests[report.nodeid] = known


def _exhibit(values: dict[str, Any]) -> Exhibit:
    lines = tuple(Line(**line) for line in values["lines"])
    return Exhibit(**{**values, "lines": lines, "headers": tuple(values["headers"])})


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
