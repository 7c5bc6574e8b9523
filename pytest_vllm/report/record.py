"""Everything a report may print about a run. Reports read these records and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_vllm.decide.noworse import worsened
from pytest_vllm.decide.verdict import EXIT_NO_BOOT, Answer, OwnTests, decide, qualified
from pytest_vllm.report.causes import causes_of

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pytest_vllm.decide.baseline import Comparison
    from pytest_vllm.decide.causes import Cause
    from pytest_vllm.decide.verdict import Decision, Result
    from pytest_vllm.profile.model import Waiver
    from pytest_vllm.report.evidence import Exhibit
    from pytest_vllm.wire.recording import Recording
    from pytest_vllm.wire.server import Server

#: The answer of a run (or of one of its profiles) whose server could not be started.
DID_NOT_BOOT = "DID NOT BOOT"


@dataclass(frozen=True)
class Phase:
    """A part of the run that took time: boot, probe, record, judge.

    Args:
        name: boot, probe, record or judge.
        seconds: how long it took.
        detail: what else is known. `profile` names whose server it was; the record phase carries
            `exchanges`, `concurrency` and what `wire.pace.RecordingReport.as_detail` tells.
    """

    name: str
    seconds: float
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ServerRun:
    """One profile's server in this run.

    Args:
        server: what was probed.
        facts: what the launcher recorded (image digest, container id, command, …).
        boot_phases: (phase, seconds since start) as read from the log.
        log: the server's log lines with the wall-clock second of their arrival.
        recordings: by key.
        died: how the server ended while it was being tested, in words; empty when it did not.
        waivers: the profile's.
        origin: where the profile came from: `built in`, or the file.
        options: the pytest options that reach such a server again (`--vllm-profile=sim`); empty: derived.
        files: recording key -> its file, relative to the run folder.
        log_file: where the whole log lies, relative to the run folder.
        key_env: the environment variable that holds the API key.
        plots: readings and measured loads as plain values; empty when there are none.
    """

    server: Server
    facts: Mapping[str, Any] = field(default_factory=dict)
    boot_phases: tuple[tuple[str, float], ...] = ()
    log: tuple[tuple[float, str], ...] = ()
    recordings: Mapping[str, Recording] = field(default_factory=dict)
    died: str = ""
    waivers: tuple[Waiver, ...] = ()
    origin: str = ""
    options: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    log_file: str = "server.log"
    key_env: str = "VLLM_API_KEY"
    plots: Mapping[str, Any] = field(default_factory=dict)

    @property
    def selection(self) -> str:
        """The pytest options that reach this server, or one booted like it, again."""
        if self.options:
            return self.options
        if not self.server.kind.starts:
            return f"--vllm-url={self.server.url}"
        return f"--vllm-profile={self.server.profile}"


@dataclass(frozen=True)
class BootFailure:
    """A profile whose server could not be started.

    Args:
        profile: its name.
        what: what happened, one sentence; it may tell the time and the phase itself.
        evidence: lines that show it.
        means: what it means, empty when unknown.
        try_: the next steps.
        phase: what the server was doing, in words that follow "while", where `what` does not tell.
        seconds: from start to failure.
        kept: files that were kept, and what became of the server.
        simulated: whether the simulator was booted.
    """

    profile: str
    what: str
    evidence: tuple[str, ...] = ()
    means: str = ""
    try_: tuple[str, ...] = ()
    phase: str = ""
    seconds: float = 0.0
    kept: tuple[str, ...] = ()
    simulated: bool = False


@dataclass(frozen=True)
class OwnTest:
    """A test of the person's own that is not a check.

    Args:
        nodeid: what pytest calls it.
        profile: the profile of the server that it uses; empty when it uses none.
        outcome: passed, failed, error (in set-up or teardown) or skipped; empty when it was stopped before.
        seconds: set-up, call and teardown.
        message: the first line of what went wrong.
        traceback: what pytest prints of it.
        exhibits: the exchanges that a failing one used.
        rerun: the command that runs it alone.
    """

    nodeid: str
    profile: str = ""
    outcome: str = ""
    seconds: float = 0.0
    message: str = ""
    traceback: str = ""
    exhibits: tuple[Exhibit, ...] = ()
    rerun: str = ""

    @property
    def failing(self) -> bool:
        """Whether it failed, or its set-up or teardown did."""
        return self.outcome in ("failed", "error")


def counted(tests: Iterable[OwnTest], *, counting: bool = False, alone: bool = False) -> OwnTests:
    """Own tests as the decision takes them."""
    rows = list(tests)
    passed = [one for one in rows if one.outcome == "passed"]
    return OwnTests(
        failed=sum(one.failing for one in rows),
        passed=len(passed),
        asking=sum(bool(one.profile) for one in passed),
        idle=sum(one.outcome == "skipped" for one in rows),
        counting=counting,
        alone=alone,
    )


@dataclass(frozen=True)
class RunRecord:
    """One run of the gate.

    Args:
        run_id: also the run folder's name.
        started: wall-clock, with zone.
        seconds: from start to decision.
        folder: the run folder.
        servers: by profile name, in order.
        results: every selected check, in order.
        decision: the answer.
        phases: where the time went.
        command: the command line that repeats the run, secrets redacted.
        versions: of pytest-vllm, python, pytest.
        by: `user@host` that made the run.
        commit: what is checked out in the project that the run is of; empty where that is not known.
        replayed: the folder of recordings that was judged again, if any.
        boot_failures: profiles whose server could not be started.
        own: tests of the person's own that are not checks.
        own_counting: whether passing ones make a GO without any check.
        alone: whether no bundled check was asked for.
        strict: whether advisory and undecided SHOULD checks count like MUST checks.
        comparisons: how the run differs from the baseline, for each profile that has one.
        doubts: why the run itself may have missed a failure, in words.
        against: the comparison with an older server of the same run (`compare.comparison`); None without one.
        against_why: why there is none although one was asked for, in words.
        worse: what is worse than with the older server beside the checks, where that decides the answer.
    """

    run_id: str
    started: dt.datetime
    seconds: float
    folder: Path
    servers: Mapping[str, ServerRun]
    results: tuple[Result, ...]
    decision: Decision
    phases: tuple[Phase, ...] = ()
    command: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    by: str = ""
    commit: str = ""
    replayed: str = ""
    boot_failures: tuple[BootFailure, ...] = ()
    own: tuple[OwnTest, ...] = ()
    own_counting: bool = False
    alone: bool = False
    strict: bool = False
    comparisons: tuple[Comparison, ...] = ()
    doubts: tuple[str, ...] = ()
    against: Mapping[str, Any] | None = None
    against_why: str = ""
    worse: tuple[str, ...] = ()

    @property
    def simulated(self) -> bool:
        """Whether any server of this run was the simulator."""
        booted = any(run.server.simulated for run in self.servers.values())
        return booted or any(failure.simulated for failure in self.boot_failures)

    @property
    def own_failures(self) -> int:
        """How many own tests failed."""
        return sum(one.failing for one in self.own)

    @property
    def answer(self) -> str:
        """GO, NO-GO, UNDECIDED, NOTHING RAN, NO VERDICT or DID NOT BOOT."""
        return DID_NOT_BOOT if self.boot_failures else str(self.decision.answer)

    @property
    def exit_code(self) -> int:
        """The process exit status that carries the answer."""
        return EXIT_NO_BOOT if self.boot_failures else self.decision.exit_code

    @property
    def why(self) -> str:
        """The reason of the answer, in words."""
        if not self.boot_failures:
            return self.decision.why
        names = ", ".join(failure.profile for failure in self.boot_failures)
        rest = "" if self.decision.answer is Answer.NOTHING_RAN else f"; the rest: {self.decision.why}"
        return f"{names} did not boot{rest}"

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        """What lies behind the failing checks, the likeliest first."""
        return causes_of(self.decision.failed, self.results, self.servers)

    def decision_of(self, profile: str) -> Decision:
        """The answer for one of the run's profiles."""
        mine = (one for one in self.own if one.profile == profile)
        own = counted(mine, counting=self.own_counting, alone=self.alone)
        rows = [row for row in self.results if row.profile == profile]
        decision = decide(rows, own=own, strict=self.strict)
        return worsened(qualified(decision, doubts=self.doubts), self.worse)

    def seconds_of(self, *phases: str, profile: str | None = None) -> float:
        """Seconds spent in the named phases (all of them when none is named), of one profile or of all."""
        return sum(
            phase.seconds
            for phase in self.phases
            if (not phases or phase.name in phases) and profile in (None, phase.detail.get("profile"))
        )
