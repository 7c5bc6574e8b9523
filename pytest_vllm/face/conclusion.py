"""What a run says: at its beginning, for each failing check, and at its end."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from _pytest._io import TerminalWriter
from _pytest.junitxml import xml_key

from pytest_vllm.decide.noworse import told, unneeded
from pytest_vllm.decide.verdict import Answer, Verdict, decide, qualified
from pytest_vllm.decide.waivers import holding, stale_waivers
from pytest_vllm.face import judgement as judge
from pytest_vllm.face.again import reaching
from pytest_vllm.face.baselines import comparisons, lost_checks, save_baseline
from pytest_vllm.face.ending import brief, width_of
from pytest_vllm.face.extracts import write_extract
from pytest_vllm.face.scope import narrowed_by
from pytest_vllm.face.whose import by_whom, commit_of
from pytest_vllm.launch.attach import proxy_in_front
from pytest_vllm.locate import own_version
from pytest_vllm.profile.known import known_faults, parser_faults
from pytest_vllm.report import terminal
from pytest_vllm.report.annotations import job_lines
from pytest_vllm.report.junit import suite_properties
from pytest_vllm.report.record import BootFailure, RunRecord, ServerRun, counted
from pytest_vllm.report.text import count
from pytest_vllm.report.write import write_all
from pytest_vllm.wire.store import file_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.decide.verdict import Result
    from pytest_vllm.face.session import GateSession
    from pytest_vllm.launch.protocol import BootError
    from pytest_vllm.profile.model import Profile

#: pytest's own exit statuses after which a verdict still means something.
DECIDABLE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
MOST_COLUMNS = 100
EVIDENCE = (Verdict.FAIL, Verdict.UNDECIDED)


def writer_of(config: pytest.Config) -> Any:
    """The terminal, also where pytest's own reporter is switched off (`-p no:terminal`)."""
    if config.pluginmanager.has_plugin("terminalreporter"):
        return config.get_terminal_writer()
    return TerminalWriter(sys.stdout)


def style_of(config: pytest.Config) -> terminal.Style:
    """Colour and width of this terminal."""
    writer = writer_of(config)
    return terminal.Style(color=writer.hasmarkup, width=min(MOST_COLUMNS, writer.fullwidth))


def header(session: GateSession, config: pytest.Config) -> list[str]:
    """What is about to be verified."""
    profiles = session.profiles.values()
    lines = terminal.header_lines(profiles, session.reports, session.options, style=style_of(config))
    notes = [f"vllm: {note}" for note in session.notes]
    if session.older is not None:
        how = "in turns" if session.older.together else "one after the other"
        older = terminal.origin_line(session.older.profile, style=style_of(config))
        notes.append(f"vllm: compared with {older}; speeds are measured {how}")
    return [*lines, *_proxies(session), *notes, *_preflight(session, config)]


def _proxies(session: GateSession) -> list[str]:
    """What lies between this machine and the server, since it is judged with it."""
    if session.replaying:
        return []
    found = {name: proxy_in_front(profile) for name, profile in session.profiles.items()}
    return [
        f"vllm: {name} is reached through the proxy {proxy}: its faults would look like the server's"
        for name, proxy in found.items()
        if proxy
    ]


def _preflight(session: GateSession, config: pytest.Config) -> list[str]:
    """Errors of the static rules: what will go wrong is reported before it takes ten minutes to go wrong."""
    from pytest_vllm import preflight  # noqa: PLC0415 - a replay or a listing does not pay for the rules

    found = {
        name: preflight.header(profile, config.rootpath)
        for name, profile in session.profiles.items()
        if not session.replaying
    }
    return [f"vllm: preflight  {line}" for rows in found.values() for line in rows]


def carry(report: pytest.TestReport, result: Result) -> None:
    """Let a test report carry a result and have its outcome, without anything to read."""
    outcome, *_ = judge.SHOWN[result.verdict]
    report.outcome = outcome  # type: ignore[assignment]
    report.vllm_result = judge.to_wire(result)  # type: ignore[attr-defined]


def show(
    report: pytest.TestReport, result: Result, session: GateSession, config: pytest.Config, *, python: bool
) -> None:
    """Let a test report carry a result and read as its verdict."""
    carry(report, result)
    path, line, _ = report.location
    report.location = (path, line, result.check)
    if result.verdict is Verdict.NOT_RUN:
        report.longrepr = (path, line or 0, f"not run: {result.reason}")
    elif result.verdict in EVIDENCE:
        if not python:
            run = as_run(session, result.profile, only=result.exchanges)
            report.longrepr = terminal.failure_block(
                result,
                run,
                folder=session.reports,
                redactor=session.redactor,
                before=_before(session, result),
                style=replace(terminal.PLAIN, width=min(MOST_COLUMNS, width_of(config))),
                brief=brief(config),
            )
    else:
        report.longrepr = None


def _before(session: GateSession, result: Result) -> str | None:
    baseline = session.baselines.get(result.profile)
    known = baseline.verdicts.get(result.check) if baseline else None
    return f"{known} on {baseline.taken} (vLLM {baseline.version})" if baseline and known else None


def as_run(session: GateSession, name: str, only: tuple[str, ...] | None = None) -> ServerRun:
    """A server as reports want it, with all its recordings or only these."""
    state = session.state(name)
    # every recording is a file: looking through all of them for each failure takes its time
    keys = state.store.keys() if only is None else sorted(key for key in set(only) if key in state.store)
    kept = os.path.relpath(state.folder, session.reports)
    files = {key: f"{kept}/recordings/{file_name(key)}" for key in keys}
    return ServerRun(
        server=state.server,
        facts=state.facts,
        boot_phases=state.boot_phases,
        log=state.log(),
        recordings={key: state.store.get(key) for key in keys},
        died=state.died,
        waivers=tuple(state.profile.waive),
        origin=terminal.origin_of(state.profile),
        options=reaching(session.options, name),
        key_env=_key_env(state.profile),
        files=files,
        log_file=f"{kept}/server.log",
    )


def _key_env(profile: Profile) -> str:
    key = profile.server.api_key
    return key.from_env if key else "VLLM_API_KEY"


def decide_and_write(session: GateSession, config: pytest.Config) -> int:
    """The exit status of the run; the record and its reports are kept in the run folder."""
    results = session.once()
    no_worse = session.options.no_worse
    for name, profile in session.profiles.items():
        rehearsed = session.options.launcher == "sim"  # which has none of a real server's faults
        if any(result.profile == name for result in results) and not rehearsed:
            server = session.state(name).server
            scripted = parser_faults(profile.server.args) if profile.server.scripted else []
            shared = [*known_faults(), *scripted]
            own = [waiver for waiver in holding(profile.waive, server) if waiver not in shared]
            stale = stale_waivers(results, own, server.version, name)
            results += [unneeded(one) if no_worse else one for one in stale]
    ran = sum(bool(one.profile and one.outcome) for one in session.own) if session.counting else None
    doubts = [
        *session.account.doubts(session.results, own=ran, faulty=len(session.faulty)),
        *lost_checks(session, results),
        *_told_to_end(session),
        *([_unread(session)] if session.unread else ()),
    ]
    how = {"counting": session.counting, "alone": session.account.alone}
    own_tests, strict = counted(session.own, **how), session.options.strict
    decided = decide(results, own=own_tests, strict=strict, deaths=_unsaid_deaths(session, results))
    partial = "; ".join(filter(None, [session.account.partial, told(results)]))
    if decided.answer is Answer.NOTHING_RAN and not results:
        decided = replace(decided, why=_nothing(session, config) or decided.why)
    decision = qualified(decided, doubts=doubts, partial=partial)
    accused = set(map(id, decision.failed))
    record = RunRecord(
        run_id=session.run_id,
        started=session.started,
        seconds=round(time.monotonic() - session.clock, 3),
        folder=session.reports,
        servers={
            name: replace(as_run(session, name), plots=_plots(session, name, config))
            for name in _opened(session)
        },
        results=(*decision.failed, *(one for one in results if id(one) not in accused)),
        decision=decision,
        phases=tuple(session.gate.phases) if session.gate else (),
        command=shlex.join(["pytest", *map(str, config.invocation_params.args)]),
        versions=_versions(),
        by=by_whom(),
        commit=commit_of(session.rootdir),
        replayed=str(session.options.replay or ""),
        own=tuple(session.own),
        own_counting=session.counting,
        alone=session.account.alone,
        strict=session.options.strict,
        comparisons=comparisons(session, results),
        doubts=tuple(doubts),
    )
    if session.older is not None:
        from pytest_vllm.face.compared import with_older  # noqa: PLC0415 - few runs compare two servers

        record = with_older(session, record, as_run)
    session.record = record
    try:
        save_baseline(session, results)
    except OSError as error:
        session.unwritten[str(session.options.save_baseline)] = str(error)
    _write(record, session)
    write_extract(session, record)
    return record.exit_code


def _unsaid_deaths(session: GateSession, results: Sequence[Result]) -> list[str]:
    """How servers ended or hung of which no failing check says so: none of those was asked for."""
    failing = {one.profile for one in results if one.verdict is Verdict.FAIL}
    died = {name: session.state(name).died for name in _opened(session) if name not in failing}
    return [f"{name}: {how.partition(': ')[0]}" for name, how in died.items() if how]


def _nothing(session: GateSession, config: pytest.Config) -> str:
    """Which option left nothing to run, where one did."""
    narrowed = narrowed_by(config)
    return "; ".join(session.missed) or (f"{narrowed} left nothing to run" if narrowed else "")


def _unread(session: GateSession) -> str:
    """How much of a replayed run is lost: what it would have shown is not known."""
    return f"{count(len(session.unread), 'recording')} of the replayed run cannot be read"


def _told_to_end(session: GateSession) -> list[str]:
    """That a signal ended the run, which has then not seen everything."""
    ended = session.gate.run.ended if session.gate else []
    return [f"{ended[0]} ended the run"] if ended else []


def _plots(session: GateSession, name: str, config: pytest.Config) -> dict[str, Any]:
    from pytest_vllm.profile.derived import figures_of  # noqa: PLC0415
    from pytest_vllm.run.series import plotted  # noqa: PLC0415 - once, at the end

    state = session.state(name)
    return plotted(state.folder, figures_of(state.profile, config.rootpath))


def summary(session: GateSession, config: pytest.Config) -> list[str]:
    """What counted, as the terminal shows it before pytest's own last line."""
    lines = [f"vllm: {_unread(session)}: {next(iter(session.unread.values()))}"] if session.unread else []
    lines += [f"vllm: {name} was not written: {why}" for name, why in session.unwritten.items()]
    lines = [session.redactor.text(line) for line in lines]
    if session.record is not None:
        style = style_of(config)
        lines += terminal.detail_lines(
            session.record, redactor=session.redactor, style=style, brief=brief(config)
        )
    return lines


def last_screen(session: GateSession, config: pytest.Config) -> list[str]:
    """The causes and the answer, the last lines of all; before them annotations where somebody reads them."""
    if session.record is None:
        return []
    lines = job_lines(session.record, session.redactor, os.environ)
    return [*lines, *terminal.last_screen(session.record, redactor=session.redactor, style=style_of(config))]


def say_not_booted(session: GateSession, name: str, error: BootError, config: pytest.Config) -> None:
    """Print the one block that explains a failed boot, and keep it as a report."""
    failure = BootFailure(
        profile=name,
        what=error.what,
        evidence=error.evidence,
        means=error.means,
        try_=error.try_,
        seconds=round(time.monotonic() - session.clock, 3),
        simulated=session.profiles[name].server.kind.simulated,
        kept=_kept(session, name),
    )
    record = RunRecord(
        run_id=session.run_id,
        started=session.started,
        seconds=failure.seconds,
        folder=session.reports,
        servers={},
        results=(),
        decision=decide(()),
        command=shlex.join(["pytest", *map(str, config.invocation_params.args)]),
        versions=_versions(),
        by=by_whom(),
        commit=commit_of(session.rootdir),
        boot_failures=(failure,),
    )
    _write(record, session)
    write_extract(session, record)
    writer = writer_of(config)
    writer.line()
    for line in terminal.did_not_boot_block(failure, redactor=session.redactor, style=style_of(config)):
        writer.line(line)
    for line in job_lines(record, session.redactor, os.environ):
        writer.line(line)


def describe_in_junit(session: GateSession, config: pytest.Config) -> None:
    """Give pytest's JUnit file, where one is written, the properties of the whole run."""
    xml = config.stash.get(xml_key, None)
    if xml is not None and session.record is not None:
        for name, value in suite_properties(session.record, session.redactor):
            xml.add_global_property(name, str(value))


def _kept(session: GateSession, name: str) -> tuple[str, ...]:
    folder = session.folder / name
    return tuple(str(path) for path in sorted(folder.glob("*")) if path.is_file()) if folder.is_dir() else ()


def _opened(session: GateSession) -> list[str]:
    if session.gate is not None:
        return [name for name in session.gate.states if name in session.profiles]
    return list(session.profiles)


def _write(record: RunRecord, session: GateSession) -> None:
    try:
        session.make_reports()
        write_all(record, session.redactor, session.reports, unwritten=session.unwritten)
    except Exception as error:  # noqa: BLE001 - the verdict is still to be said
        session.unwritten[session.reports.name] = f"{type(error).__name__}: {error}"


def _versions() -> dict[str, str]:
    return {"pytest-vllm": own_version(), "python": platform.python_version(), "pytest": pytest.__version__}
