"""Everything a report may print about a run. Reports read these records and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_vllm.target import Server
    from pytest_vllm.verdict import Decision, Result
    from pytest_vllm.wire.recording import Recording


@dataclass(frozen=True)
class Phase:
    """A part of the run that took time: boot, probe, record, judge."""

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
        waivers_used: check ids.
    """

    server: Server
    facts: Mapping[str, Any] = field(default_factory=dict)
    boot_phases: tuple[tuple[str, float], ...] = ()
    log: tuple[tuple[float, str], ...] = ()
    recordings: Mapping[str, Recording] = field(default_factory=dict)


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
        replayed: the folder of recordings that was judged again, if any.
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
    replayed: str = ""

    @property
    def simulated(self) -> bool:
        """Whether any server of this run was the simulator."""
        return any(run.server.simulated for run in self.servers.values())
