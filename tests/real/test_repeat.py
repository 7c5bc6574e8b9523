"""What `python -m tests.real.repeat` calls a difference."""

from __future__ import annotations

from pathlib import Path

from tests.real.gate import GateRun
from tests.real.repeat import differing


def run(**verdicts: str) -> GateRun:
    rows = [{"check": check, "verdict": verdict} for check, verdict in verdicts.items()]
    return GateRun(0, "", {"results": rows}, Path())


def test_same_verdicts_differ_nowhere() -> None:
    assert differing([run(a="pass", b="not-run"), run(b="not-run", a="pass")]) == {}


def test_a_verdict_that_changes_or_goes_is_named() -> None:
    runs = [
        run(a="pass", b="pass", c="pass"),
        run(a="pass", b="undecided"),
        run(a="pass", b="pass", c="pass"),
    ]

    assert differing(runs) == {"b": ["pass", "undecided", "pass"], "c": ["pass", "absent", "pass"]}
