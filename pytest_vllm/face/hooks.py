"""A run that is about a vLLM server, as pytest drives it: boot, record, judge, decide, stop.

Registered by plugin.py once a server is asked for; one object per pytest session.
"""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.decide.noworse import excused
from pytest_vllm.decide.verdict import EXIT_NO_BOOT
from pytest_vllm.declare.checks import collecting_observations
from pytest_vllm.face import conclusion as closing
from pytest_vllm.face import ending, own, selection, workers
from pytest_vllm.face import judgement as judge
from pytest_vllm.face.baselines import refuse_other_model
from pytest_vllm.face.items import measured_by, spec_of, wanted
from pytest_vllm.launch.protocol import BootError
from pytest_vllm.launch.signals import Interrupted
from pytest_vllm.report.junit import properties
from pytest_vllm.report.progress import Progress
from pytest_vllm.run.gate import Gate

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from pytest_vllm.face.session import GateSession
    from pytest_vllm.run.state import ServerState

OBSERVED: pytest.StashKey[Mapping[str, str]] = pytest.StashKey()


class GatePlugin:
    """The hooks of a run."""

    def __init__(self, config: pytest.Config, session: GateSession) -> None:
        """Nothing is started before the run loop."""
        self.config, self.session = config, session
        self.booting = ""

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell an xdist worker the run's folders."""
        node.workerinput["vllm_folder"] = str(self.session.folder)
        node.workerinput["vllm_reports"] = str(self.session.reports)

    def pytest_report_header(self) -> list[str]:
        """Say what is about to be verified."""
        return [] if self.session.worker else closing.header(self.session, self.config)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """A worker writes down what its items want; the controller reads it and records."""
        if self.session.worker and not self.session.replaying:
            by_profile = {name: self._items_of(name, session.items) for name in self.session.profiles}
            plans = {
                name: workers.Plan(any(map(selection.needs_live, items)), wanted(items), measured_by(items))
                for name, items in by_profile.items()
                if any(map(selection.needs_server, items))
            }
            workers.write_plan(self.session.folder, plans)
            workers.write_missed(self.session.folder, self.session.missed)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Open the gate around the whole loop: whatever happens inside, every server is stopped."""
        ending.compact_progress(self.config)
        stops = session.testsfailed and not self.config.option.continue_on_collection_errors
        if self._only_looking or stops:  # pytest runs nothing after an error of the collection
            return (yield)
        ours = self.session
        try:
            ours.make_reports()
        except OSError as error:  # now, not after an hour of recording
            raise pytest.UsageError(
                f"--vllm-report={ours.options.report}: no run can be kept there ({error}); name another"
            ) from None
        terminal = closing.writer_of(session.config)
        progress = Progress(terminal, tty=sys.stdout.isatty() and terminal.hasmarkup)
        ours.gate = Gate(ours.context(progress), ours.profiles)
        ours.open_late = self._open_late
        with progress, ours.gate:
            gc.freeze()  # what was collected stays; searching it again and again takes a second
            try:
                if session.items:
                    self._open_for(session.items[0], session.items)
                gc.freeze()
                return (yield)
            finally:
                ours.open_late = None
                gc.unfreeze()
                self._end_line()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Between two profiles: stop one server, boot the next."""
        if not self._only_looking:
            self._open_for(item, item.session.items)
        self.session.traffic.clear()
        return (yield)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """The first worker has collected: boot and record for all of them before tests are handed out."""
        gate = self.session.gate
        if gate is None or gate.states:
            return
        missed = workers.read_missed(self.session.folder)
        plan = workers.read_plan(self.session.folder, self.config)
        if missed and any(one.wants or one.measures for one in plan.values()):
            raise pytest.UsageError("\n".join(missed))
        self.session.missed = missed
        together = len(plan) > 1 and any(one.live for one in plan.values())
        if together and not all(self.session.profiles[name].server.side_by_side for name in plan):
            raise pytest.UsageError(
                "these tests talk to live servers of several profiles at once: run them without -n, "
                "or set side-by-side = true in the [server] table of each profile"
            )
        for name, one in plan.items():
            self._boot(name, one.wants, one.measures)
            if len(plan) > 1 and not together:
                gate.close(name)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """A check whose needs are not met is not run, or undecided where the profile expects them."""
        spec = spec_of(item)
        if spec is not None:
            judge.require(self._state(item), spec)

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Keep what a check observes."""
        with collecting_observations() as observed:
            pyfuncitem.stash[OBSERVED] = observed
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """A check's report carries its result and reads as its verdict."""
        spec = spec_of(item)
        decided = call.when == "call" or (call.when == "setup" and call.excinfo is not None)
        if spec is not None and decided:
            judge.name_crash(item, spec, call, self._state(item))
        python = self.config.get_verbosity() > 1
        report = (yield) if python or spec is None else (yield from judge.without_traceback(item, call))
        if spec is None:
            about = own.carried(item, self.session, failed=report.failed)
            setattr(report, own.CARRIED, about)
        if spec is None or not decided:
            return report
        state = self._state(item)
        file = "" if own.is_bundled(item) else own.own_file(item)
        result = judge.judge(item, spec, call, state, item.stash.get(OBSERVED, {}), file=file)
        if self.session.options.no_worse:
            before = self.session.baselines.get(result.profile)
            result = excused(result, before, strict=self.session.options.strict)
        item.user_properties.extend(properties(result, simulated=state.server.simulated))
        crashed = bool(result.file) and judge.crashed(call)  # pytest's own words, and its traceback
        report.vllm_crashed = crashed  # type: ignore[attr-defined]
        closing.show(report, result, self.session, self.config, python=python or crashed)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Results arrive here, from this process and from workers alike."""
        if self.session.worker:
            return
        carried = getattr(report, "vllm_result", None)
        if carried is not None:
            self.session.add(judge.from_wire(carried), last=str(report.outcome) != "rerun")
            if getattr(report, "vllm_crashed", False) and report.when == "setup":
                self.session.faulty.add(report.nodeid)
        elif report.failed or hasattr(report, own.CARRIED):  # a crashed worker's report carries nothing
            self.session.own.add(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> Any:
        """Verdicts in the words of the gate; an own check that crashed is shown in pytest's."""
        carried = getattr(report, "vllm_result", None)
        if getattr(report, "vllm_crashed", False) or str(report.outcome) == "rerun":
            return None
        return judge.shown(judge.from_wire(carried).verdict) if carried is not None else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Decide, write the reports, set the exit status."""
        if self._decides and (int(exitstatus) in closing.DECIDABLE or self._ended):
            session.exitstatus = closing.decide_and_write(self.session, self.config)
            closing.describe_in_junit(self.session, self.config)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """A CI job's time limit, unlike Ctrl-C, wants the verdict of what there is."""
        if isinstance(excinfo.value, Interrupted) and self.session.gate is not None:
            self.session.gate.run.ended.append(str(excinfo.value))

    @property
    def _ended(self) -> bool:
        """Whether a signal ended this run once it had a server to judge."""
        gate = self.session.gate
        return gate is not None and bool(gate.run.ended and gate.states)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """What counted; pytest's short summary of the person's own tests follows."""
        for line in closing.summary(self.session, self.config):
            terminalreporter.write_line(line)
        ending.only_own(self.config)

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """The causes and the answer: the last lines of all, after pytest's own."""
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None and not self.session.worker:
            for line in closing.last_screen(self.session, config):
                reporter.write_line(line)

    def _end_line(self) -> None:
        """What is said next begins at the left, not behind pytest's dots."""
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()

    @property
    def _decides(self) -> bool:
        return not (self.session.worker or self.session.options.only_looks or self.config.option.collectonly)

    @property
    def _only_looking(self) -> bool:
        return self.session.replaying or not self._decides

    def _items_of(self, name: str, items: Sequence[pytest.Item]) -> list[pytest.Item]:
        default = self.session.default_profile
        return [item for item in items if selection.profile_of(item, default) == name]

    def _state(self, item: pytest.Item) -> ServerState:
        return self.session.state(selection.profile_of(item, self.session.default_profile))

    def _open_for(self, item: pytest.Item, items: Sequence[pytest.Item]) -> None:
        name = selection.profile_of(item, self.session.default_profile)
        gate = self.session.gate
        if gate is None or name in gate.states:
            return
        mine = self._items_of(name, items)
        if not any(map(selection.needs_server, mine)):
            return
        gate.close_all()
        self._boot(name, wanted(mine), measured_by(mine))

    def _open_late(self, name: str) -> None:
        """Start a server that no item was known to want before it ran."""
        gate = self.session.gate
        assert gate is not None  # noqa: S101 - opened by the run loop
        gate.close_all()
        self._boot(name, {}, {})

    def _boot(self, name: str, wants: Mapping[str, Any], measures: Mapping[str, Any]) -> None:
        gate = self.session.gate
        assert gate is not None  # noqa: S101 - opened by the run loop
        try:
            gate.open(name, wants, measures)
            refuse_other_model(self.session, name)
        except BootError as error:
            closing.say_not_booted(self.session, name, error, self.config)
            pytest.exit(f"vllm: {name} did not boot", returncode=EXIT_NO_BOOT)
