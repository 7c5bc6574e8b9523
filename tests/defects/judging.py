"""Judges recordings without pytest's run loop: the same checks, ten thousands of times."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.decide.verdict import Result, Verdict, grade
from pytest_vllm.declare.exchanges import by_fixture_name, fixture_name, key_of
from pytest_vllm.declare.explorations import Explored
from pytest_vllm.declare.measurements import Measurements
from pytest_vllm.declare.recordings import fitting
from pytest_vllm.declare.wholeness import misread
from pytest_vllm.face import judgement as judge
from pytest_vllm.face.collection import area_of
from pytest_vllm.face.items import check_key, exchanges_of, measurements_of, params_of, spec_of
from pytest_vllm.launch.notable import StartupWarning, startup_warnings
from pytest_vllm.preflight.roofline import Roofline
from pytest_vllm.profile.derived import figures_of
from pytest_vllm.wire.recording import NotRun, Undecided

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm.decide.baseline import Baseline
    from pytest_vllm.declare.checks import CheckSpec
    from pytest_vllm.profile.derived import Figures
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.run.gauges import Reading
    from pytest_vllm.run.restart import Restart
    from pytest_vllm.run.state import ServerState
    from pytest_vllm.wire.recording import Recording
    from pytest_vllm.wire.server import Capability, Server


ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Check:
    """One collected check: its function, its parameters, the exchanges it judges."""

    key: str
    area: str
    spec: CheckSpec
    function: Any
    arguments: tuple[str, ...]
    params: Mapping[str, Any]
    keys: Mapping[str, str]
    exchanges: tuple[str, ...]
    #: Fixture name -> key of each measurement that it judges.
    measured: Mapping[str, str]
    item: pytest.Item = field(repr=False, compare=False)


NOTHING_MEASURED = Measurements(Path("nowhere"))
NOTHING_EXPLORED = Explored()


@dataclass(frozen=True)
class View:
    """What a check may see: a server and recordings of it."""

    state: ServerState
    recordings: Mapping[str, Recording]
    log: tuple[tuple[float, str], ...] = ()
    restart: Restart | None = None
    timeline: tuple[Reading, ...] = ()
    measurements: Measurements = NOTHING_MEASURED
    baseline: Baseline | None = None
    explored: Explored = NOTHING_EXPLORED

    @property
    def death(self) -> str:
        """How it ended while it was recorded."""
        return self.state.died

    @property
    def server(self) -> Server:
        """The server's facts."""
        return self.state.server

    @cached_property
    def figures(self) -> Figures | None:
        """The profile's figures, read once."""
        return figures_of(self.profile, ROOT)

    @cached_property
    def roofline(self) -> Roofline | None:
        """How measured speeds stand to them."""
        return Roofline(self.figures, (line for _, line in self.log)) if self.figures else None

    @cached_property
    def startup_warnings(self) -> tuple[StartupWarning, ...] | None:
        """What the start logged that matters although it succeeded."""
        return tuple(startup_warnings(line for _, line in self.log)) if self.log else None

    @property
    def capabilities(self) -> Mapping[str, Capability]:
        """What the server can do."""
        return self.server.capabilities

    @property
    def profile(self) -> Profile:
        """The profile it was booted from."""
        return self.state.profile

    def get(self, key: str) -> Recording:
        """As `vllm_recordings.get`."""
        if key not in self.recordings:
            raise Undecided(f"{key} was not recorded in this run")
        return fitting([self.recordings[key]])[0]

    def of(self, prefix: str) -> list[Recording]:
        """As `vllm_recordings.of`."""
        found = [self.recordings[key] for key in sorted(self.recordings) if key.startswith(prefix)]
        if not found:
            raise Undecided(f"no exchange of {prefix} was recorded in this run")
        return fitting(found)


class _Collector:
    def __init__(self) -> None:
        self.items: list[pytest.Item] = []
        self.scripted: list[pytest.Item] = []

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        specs = [(item, spec_of(item)) for item in items]
        self.scripted += [item for item, spec in specs if spec is not None and "scripted" in spec.needs]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.items = list(session.items)


def collect(profile: str = "sim", *options: str) -> tuple[list[Check], list[pytest.Item]]:
    """Every bundled check, as the gate itself collects them, or those that these options ask for.

    Those of scripted servers too, which the gate leaves out for any other.
    """
    collector = _Collector()
    quiet = [
        "-qq",
        "--no-header",
        "--no-summary",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    ]
    args = ["suites", "--collect-only", f"--vllm-profile={profile}", *options, *quiet]
    status = pytest.main([*args, f"--rootdir={Path(__file__).parents[2]}"], plugins=[collector])
    assert status == pytest.ExitCode.OK, f"the suites could not be collected: {status}"
    items = collector.items if options else [*collector.items, *collector.scripted]
    return [_check(item) for item in items if spec_of(item)], items


def _check(item: pytest.Item) -> Check:
    spec = spec_of(item)
    assert spec is not None
    assert isinstance(item, pytest.Function)
    planned = exchanges_of(item, spec)
    known = by_fixture_name()
    arguments = item._fixtureinfo.argnames
    keys = {}
    loads = {fixture_name(one.spec.id): key for key, one in measurements_of(item).items()}
    measured = {name: loads[name] for name in arguments if name in loads}
    for name in arguments:
        if name in known:
            (keys[name],) = [p.key for p in planned.values() if _is_argument(p.key, name, item)]
    return Check(
        check_key(item, spec),
        area_of(item.nodeid),
        spec,
        item.function,
        tuple(arguments),
        params_of(item),
        keys,
        tuple(planned),
        measured,
        item,
    )


def _is_argument(key: str, name: str, item: pytest.Item) -> bool:
    from pytest_vllm.declare.exchanges import all_cases

    spec = by_fixture_name()[name]
    chosen = params_of(item)
    return fixture_name(spec.id) == name and key == key_of(
        spec.id, [chosen[case].id for case in all_cases(spec)]
    )


def verdict_of(check: Check, view: View) -> tuple[Verdict, str]:
    """What a check says about these recordings, and why."""
    try:
        judge.require(view.state, check.spec)
        check.function(**{name: _argument(name, check, view) for name in check.arguments})
    except NotRun as reason:
        return Verdict.NOT_RUN, str(reason)
    except Undecided as reason:
        return Verdict.UNDECIDED, str(reason)
    except AssertionError as error:
        return grade(check.spec.level, held=False), str(error).split("\nassert ")[0]
    except Exception as error:  # noqa: BLE001 - as the gate: its own fault, unless an answer is malformed
        keys = view.recordings if "*" in check.spec.exchanges else check.exchanges
        judged = (view.recordings[key] for key in keys if key in view.recordings)
        if malformed := misread(error, check.key, judged, view.server.version):
            return grade(check.spec.level, held=False), malformed
        return Verdict.UNDECIDED, f"the check crashed: {type(error).__name__}: {error}"
    return grade(check.spec.level, held=True), ""


def judge_all(checks: Sequence[Check], view: View) -> list[Result]:
    """The results of a run over these recordings, in the gate's order."""
    return [_result(check, *verdict_of(check, view), profile=view.profile.name) for check in checks]


def judge_changed(
    checks: Sequence[Check], before: View, results: Sequence[Result], after: View
) -> list[Result]:
    """As `judge_all(checks, after)`, asking only checks that judge a recording which is another one now.

    Judging is pure: a check that is given the same recordings says the same again.
    """
    changed = {key for key, one in after.recordings.items() if one is not before.recordings.get(key)}
    return [
        _result(check, *verdict_of(check, after), profile=after.profile.name)
        if changed.intersection(check.exchanges) or (changed and "*" in check.spec.exchanges)
        else result
        for check, result in zip(checks, results, strict=True)
    ]


def _result(check: Check, verdict: Verdict, reason: str, profile: str) -> Result:
    spec = check.spec
    return Result(
        check.key,
        spec.level,
        spec.family,
        verdict,
        spec.fact,
        reason=reason,
        area=check.area,
        exchanges=check.exchanges,
        profile=profile,
    )


def _argument(name: str, check: Check, view: View) -> Any:
    if name in check.keys:
        return view.get(check.keys[name])
    if name in check.measured:
        found = view.measurements.get(check.measured[name])
        if found.skipped:
            raise NotRun(found.skipped)
        return found
    if name in check.params:
        return check.params[name]
    if name == "vllm_recordings":
        return view
    return getattr(view, name.removeprefix("vllm_"))
