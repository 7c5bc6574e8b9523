"""What a run says: at its beginning, for each failing check, and at its end."""

from __future__ import annotations

import platform
import shlex
import time
from typing import TYPE_CHECKING

import pytest

from pytest_vllm import __version__, judge
from pytest_vllm.profile.known import known_faults
from pytest_vllm.remembered import comparisons, save_baseline
from pytest_vllm.report import terminal
from pytest_vllm.report.write import write_all
from pytest_vllm.runrecord import BootFailure, RunRecord, ServerRun
from pytest_vllm.verdict import Verdict, decide
from pytest_vllm.waivers import stale_waivers
from pytest_vllm.wire.redact import Redactor
from pytest_vllm.wire.store import file_name

if TYPE_CHECKING:
    from pytest_vllm.launch.protocol import BootError
    from pytest_vllm.runstate import ServerState
    from pytest_vllm.session import GateSession
    from pytest_vllm.verdict import Result

#: pytest's own exit statuses after which a verdict still means something.
DECIDABLE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
EVIDENCE = (Verdict.FAIL, Verdict.UNDECIDED)


def header(session: GateSession) -> list[str]:
    """What is about to be verified."""
    return terminal.header_lines(session.profiles.values(), session.folder, session.options)


def show(report: pytest.TestReport, result: Result, session: GateSession, *, python: bool) -> None:
    """Let a test report carry a result and read as its verdict."""
    outcome, *_ = judge.SHOWN[result.verdict]
    report.outcome = outcome  # type: ignore[assignment]
    report.vllm_result = judge.to_wire(result)  # type: ignore[attr-defined]
    path, line, _ = report.location
    report.location = (path, line, result.check)
    if result.verdict is Verdict.NOT_RUN:
        report.longrepr = (path, line or 0, f"not run: {result.reason}")
    elif result.verdict in EVIDENCE:
        if not python:
            run = as_run(session.state(result.profile), only=result.exchanges)
            report.longrepr = terminal.failure_block(result, run, folder=session.folder)
    else:
        report.longrepr = None


def as_run(state: ServerState, only: tuple[str, ...] | None = None) -> ServerRun:
    """A server as reports want it, with all its recordings or only these."""
    keys = [key for key in state.store.keys() if only is None or key in only]  # noqa: SIM118
    files = {key: f"{state.folder.name}/recordings/{file_name(key)}" for key in keys}
    return ServerRun(
        server=state.server,
        facts=state.facts,
        boot_phases=state.boot_phases,
        log=state.log(),
        recordings={key: state.store.get(key) for key in keys},
        died=state.died,
        waivers=tuple(state.profile.waive),
        origin=str(state.profile.source or "built in"),
        files=files,
        log_file=f"{state.folder.name}/server.log",
    )


def decide_and_write(session: GateSession, config: pytest.Config) -> int:
    """The exit status of the run; the record and its reports are kept in the run folder."""
    results = list(session.results)
    for name, profile in session.profiles.items():
        if any(result.profile == name for result in results):
            version = session.state(name).server.version
            own = [waiver for waiver in profile.waive if waiver not in known_faults()]
            results += stale_waivers(results, own, version, name)
    decision = decide(results, own_failures=len(session.own_failures), strict=session.options.strict)
    record = RunRecord(
        run_id=session.run_id,
        started=session.started,
        seconds=round(time.monotonic() - session.clock, 3),
        folder=session.folder,
        servers={name: as_run(session.state(name)) for name in _opened(session)},
        results=tuple(results),
        decision=decision,
        phases=tuple(session.gate.phases) if session.gate else (),
        command=shlex.join(["pytest", *map(str, config.invocation_params.args)]),
        versions=_versions(),
        replayed=str(session.options.replay or ""),
        own_failures=len(session.own_failures),
        strict=session.options.strict,
        comparisons=comparisons(session, results),
    )
    save_baseline(session, results)
    session.record = record
    _write(record, session)
    return decision.exit_code


def summary(session: GateSession) -> list[str]:
    """The verdict as the terminal shows it."""
    lines = [f"vllm: {line}" for line in session.missed]
    if session.record is not None:
        lines += terminal.verdict_lines(session.record)
    return lines


def say_not_booted(session: GateSession, name: str, error: BootError, config: pytest.Config) -> None:
    """Print the one block that explains a failed boot, and keep it as a report."""
    failure = BootFailure(
        profile=name,
        what=error.what,
        evidence=error.evidence,
        means=error.means,
        try_=error.try_,
        seconds=round(time.monotonic() - session.clock, 3),
        simulated=session.profiles[name].server.launcher == "sim",
        kept=_kept(session, name),
    )
    record = RunRecord(
        run_id=session.run_id,
        started=session.started,
        seconds=failure.seconds,
        folder=session.folder,
        servers={},
        results=(),
        decision=decide(()),
        command=shlex.join(["pytest", *map(str, config.invocation_params.args)]),
        versions=_versions(),
        boot_failures=(failure,),
    )
    _write(record, session)
    writer = config.get_terminal_writer()
    writer.line()
    for line in terminal.did_not_boot_block(failure):
        writer.line(line)


def _kept(session: GateSession, name: str) -> tuple[str, ...]:
    folder = session.folder / name
    return tuple(str(path) for path in sorted(folder.glob("*")) if path.is_file()) if folder.is_dir() else ()


def _opened(session: GateSession) -> list[str]:
    if session.gate is not None:
        return list(session.gate.states)
    return list(session.profiles)


def _write(record: RunRecord, session: GateSession) -> None:
    redactor = session.gate.redactor if session.gate else Redactor(())
    write_all(record, redactor, session.folder)


def _versions() -> dict[str, str]:
    return {"pytest-vllm": __version__, "python": platform.python_version(), "pytest": pytest.__version__}
