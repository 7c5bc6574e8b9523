"""Runs of the gate as a person starts them: a process of its own in an empty folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from tests.real.server import OWNERS

if TYPE_CHECKING:
    from pathlib import Path

#: Beyond this a run hangs: the longest on two cores takes a third of it.
LONGEST_S = 900.0


@dataclass(frozen=True)
class GateRun:
    """A finished run.

    Args:
        exit: the process exit status; None when only its report is known.
        text: what it printed.
        report: its report.json; empty when there is none.
        folder: where its reports lie.
    """

    exit: int | None
    text: str
    report: dict[str, Any]
    folder: Path

    @classmethod
    def of_folder(cls, folder: Path, exit_status: int | None = None, text: str = "") -> GateRun:
        """The newest run under a report folder."""
        reports = sorted(folder.glob("runs/*/report.json"))
        report = json.loads(reports[-1].read_text("utf-8")) if reports else {}
        return cls(exit_status, text, report, folder)

    @property
    def answer(self) -> str:
        """GO, NO-GO, UNDECIDED, DID NOT BOOT."""
        return str(self.report["answer"]["answer"])

    @property
    def verdicts(self) -> dict[str, str]:
        """Verdict by check id, with its case."""
        return {row["check"]: row["verdict"] for row in self.report["results"]}

    def reasons(self, *verdicts: str) -> dict[str, str]:
        """Check id -> reason, of the MUST checks with one of these verdicts."""
        rows = [
            row for row in self.report["results"] if row["level"] == "MUST" and row["verdict"] in verdicts
        ]
        return {row["check"]: row["reason"] for row in rows}


#: Why a check is not run on a server that somebody else started.
ELSEWHERE = "not started here"


#: Within the reason of a long exchange that the measured speed leaves no time for.
TOO_SLOW = " s a token: "
#: Checks that one of two runs may have left undecided, which then is no contradiction; none of MUST.
OPEN = 8
#: Why what is asked while a stream goes on is not judged: the stream was over, or was asked for once more.
UNMET = "while the stream went on"
#: Why a prompt that happened to be asked twice is not judged: it was not, or both at once.
UNREPEATED = ("repeated in two ways", "after it was known")


def otherwise(one: GateRun, other: GateRun, for_a_reason: str = "(?!)") -> dict[str, str]:
    """What the other run says otherwise, except what it did not ask for one of these reasons.

    Speeds left out: one near what is usual is decided in one run and not in the next; so is what either run
    found too slow to ask, what was to meet a stream and came after it, whether a prompt happened to be asked
    again, and what is no MUST and could not be decided in one of them: how far an answer came within its
    limit, and which streams met, depends on the batch and on the moment. That is so of few.
    """
    rows = (*one.report["results"], *other.report["results"])
    unmet = (TOO_SLOW, UNMET, *UNREPEATED)
    left = [row for row in rows if row["verdict"] == "not-run"]
    slow = {row["check"] for row in left if any(words in row["reason"] for words in unmet)}
    undecided = {row["check"] for row in rows if row["level"] != "MUST" and row["verdict"] == "undecided"}
    assert len(undecided) <= OPEN, undecided
    slow |= undecided
    asked = {
        row["check"]: row
        for row in other.report["results"]
        if row["family"] != "performance"
        and not row["check"].startswith("throughput.")
        and row["check"] not in slow
    }
    return {
        check: f"{one.verdicts.get(check)} -> {row['verdict']}: {row['reason']}"
        for check, row in asked.items()
        if one.verdicts.get(check) != row["verdict"]
        and not (row["verdict"] == "not-run" and re.search(for_a_reason, row["reason"]))
    }


#: Whether also is asked for what takes long and has been shown by another run, or by other versions.
EVERYTHING = os.environ.get("PYTEST_VLLM_REAL") == "all"


#: Areas in which it would show that another way to the server gives other verdicts.
TELLING = (
    "cache",
    "chat",
    "completions",
    "health",
    "metrics",
    "models",
    "profile",
    "startup",
    "stream",
    "usage",
)
#: And those in which it would show that another launcher does.
LAUNCHED = ("chat", "health", "metrics", "models", "profile", "startup")


def once_more(areas: tuple[str, ...] = TELLING) -> list[str]:
    """Options that ask for a part of what another run has shown; with `PYTEST_VLLM_REAL=all` none."""
    return [] if EVERYTHING else [f"--vllm-check={area}" for area in areas]


def gate_command(*options: str) -> list[str]:
    """The command line of a gate run by the Python that runs the tests."""
    return [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]


def begun(folder: Path, output: IO[str] | int, *options: str, **env: str) -> subprocess.Popen[str]:
    """A gate that was started in a folder and writes there; its containers are counted as ours."""
    gate = subprocess.Popen(
        gate_command(*options),
        cwd=folder,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        text=True,
    )
    OWNERS.add(str(gate.pid))
    return gate


def run_gate(folder: Path, *options: str, **env: str) -> GateRun:
    """Run the gate in a folder and wait for its end. Raises TimeoutExpired."""
    return run_gate_within(LONGEST_S, folder, *options, **env)


def run_gate_within(limit: float, folder: Path, *options: str, **env: str) -> GateRun:
    """As `run_gate`, waiting so many seconds."""
    with begun(folder, subprocess.PIPE, *options, **env) as gate:
        try:
            text, _ = gate.communicate(timeout=limit)
        except BaseException:
            gate.kill()
            raise
    print(text)
    return GateRun.of_folder(folder / ".vllm", gate.returncode, text)
