"""Turns what pytest saw of a check into a Result, and the Result into what pytest shows."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.decide.verdict import Family, Level, Result, Verdict, grade
from pytest_vllm.decide.waivers import apply_waivers, holding
from pytest_vllm.declare.capabilities import OWN
from pytest_vllm.declare.recordings import without_evidence
from pytest_vllm.declare.wholeness import misread
from pytest_vllm.face.collection import area_of
from pytest_vllm.face.items import check_key, exchanges_of
from pytest_vllm.run.findings import PROBE_FAILED
from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.recording import NotRun, Undecided

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from pytest_vllm.declare.checks import CheckSpec
    from pytest_vllm.run.state import ServerState
    from pytest_vllm.wire.server import Capability

#: verdict -> (pytest's outcome, category, letter, word)
SHOWN = {
    Verdict.PASS: ("passed", "passed", ".", "PASSED"),
    Verdict.FAIL: ("failed", "failed", "F", "FAILED"),
    Verdict.ADVISORY: ("passed", "advisory", "a", "ADVISORY"),
    Verdict.WAIVED: ("passed", "waived", "w", "WAIVED"),
    Verdict.NOT_RUN: ("skipped", "not run", "-", "NOT-RUN"),
    Verdict.UNDECIDED: ("failed", "undecided", "?", "UNDECIDED"),
}


#: What a check says that judged something.
DECIDED = (Verdict.PASS, Verdict.FAIL, Verdict.ADVISORY)
#: The fixture that says how the server ended.
DEATH = "vllm_death"
#: What a check raises to say what it found.
JUDGEMENTS = (AssertionError, NotRun, Undecided)


def judge(
    item: pytest.Item,
    spec: CheckSpec,
    call: pytest.CallInfo[None],
    state: ServerState,
    observed: Mapping[str, str],
    *,
    file: str = "",
) -> Result:
    """The result of a check whose call (or set-up) has ended; `file` is where a person's own check lies."""
    verdict, reason = _observe(spec, call)
    wanted = exchanges_of(item, spec)
    exchanges = tuple(key for key, one in wanted.items() if not one.spec.program)
    if verdict in DECIDED and (why := _left_open(item, state, exchanges, passed=verdict is Verdict.PASS)):
        verdict, reason = Verdict.UNDECIDED, why
    _, line, _ = item.reportinfo()
    result = Result(
        check=check_key(item, spec),
        level=spec.level,
        family=spec.family,
        verdict=verdict,
        fact=spec.fact,
        reason=reason,
        area=area_of(item.nodeid),
        source=f"{item.nodeid.split('::')[0]}:{(line or 0) + 1}",
        spec=spec.spec,
        exchanges=exchanges,
        seconds=round(call.duration, 6),
        observations=dict(observed),
        profile=state.profile.name,
        nodeid=item.nodeid,
        file=file,
    )
    today = dt.datetime.now(dt.UTC).date()
    waivers = holding(state.profile.waive, state.server)
    judged = apply_waivers(result, waivers, state.server.version, today)
    return _explained(judged, state, item.config.rootpath) if judged.verdict is Verdict.FAIL else judged


def _left_open(item: pytest.Item, state: ServerState, exchanges: Sequence[str], *, passed: bool) -> str:
    """Why a check on a part of what it is about is undecided; empty when it is not.

    It has not passed. Of a server that was gone for the rest it has not failed either: that it was gone is
    the finding, and what one answer out of many is to show may have come later. The check of that stands.
    """
    if DEATH in getattr(item, "fixturenames", ()):
        return ""
    kept = (state.store.get(key) for key in exchanges if key in state.store)
    return without_evidence(one for one in kept if passed or one.failure is not Failure.HELD)


def _explained(result: Result, state: ServerState, root: Path) -> Result:
    """A failure with the known faults that fit this deployment: it still counts, and says whose it may be."""
    from pytest_vllm.preflight.explanations import explanations  # noqa: PLC0415 - only a failure pays for it

    known = explanations(result.check, state.server.version, state.profile, root)
    return replace(result, reason="\n".join([result.reason, *known])) if known else result


def name_crash(item: pytest.Item, spec: CheckSpec, call: pytest.CallInfo[None], state: ServerState) -> None:
    """Make a check that crashed on a malformed answer a failure that names the answer, and not an error.

    A check that crashed on answers with which nothing is wrong stays a crash: the fault is its own.
    """
    error = call.excinfo.value if call.excinfo else None
    if call.excinfo is None or not isinstance(error, Exception) or isinstance(error, JUDGEMENTS):
        return
    wide = "*" in spec.exchanges
    judged = state.store.keys() if wide else [key for key in exchanges_of(item, spec) if key in state.store]
    reason = misread(error, _place(call.excinfo), map(state.store.get, judged), state.server.version)
    if reason:
        failure = AssertionError(reason).with_traceback(error.__traceback__)
        failure.__cause__ = error
        call.excinfo = pytest.ExceptionInfo.from_exception(failure)


def require(state: ServerState, spec: CheckSpec) -> None:
    """Skip a check whose needs the server does not meet; undecided where the profile expects them.

    That an expected capability is absent is itself a failure, said once by `profile.capabilities.present`.
    """
    missing = [name for name in spec.needs if not state.server.can(name)]
    for one in (OWN[name] for name in missing if name in OWN):
        found = state.server.capabilities.get(one.name)
        if found is None or found.how.startswith(PROBE_FAILED):
            raise Undecided(f"whether the server has {one.name} is not known: {_how(found)}")
        if one.expected:
            raise AssertionError(f"{one.name} is expected, and the server does not have it: {found.how}")
    expected = [name for name in missing if name in state.profile.expect.capabilities]
    if expected:
        raise Undecided(f"the profile expects {', '.join(expected)}, and the server does not have it")
    if missing:
        raise NotRun(f"the server has no {', '.join(missing)}, and the profile does not expect it")


def _how(found: Capability | None) -> str:
    return found.how if found else "the server was not asked"


def without_traceback(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let pytest report a check without its traceback: evidence replaces it, and each takes 5 ms to draw.

    A check that crashed keeps it.
    """
    held_back = call.excinfo
    if held_back is None or item.get_closest_marker("xfail") or not isinstance(held_back.value, JUDGEMENTS):
        return (yield)
    call.excinfo = None
    try:
        return (yield)
    finally:
        call.excinfo = held_back


def _observe(spec: CheckSpec, call: pytest.CallInfo[None]) -> tuple[Verdict, str]:
    if call.excinfo is None:
        return grade(spec.level, held=True), ""
    error = call.excinfo.value
    if isinstance(error, pytest.skip.Exception):
        return _skipped(spec, str(error.msg))
    if isinstance(error, NotRun):
        return Verdict.NOT_RUN, str(error)
    if isinstance(error, Undecided):
        return Verdict.UNDECIDED, str(error)
    if isinstance(error, AssertionError):
        return grade(spec.level, held=False), _said(error)
    crash = f"{type(error).__name__}: {error}"
    what = "its set-up failed" if call.when == "setup" else "the check crashed"
    return Verdict.UNDECIDED, f"{what} at {_place(call.excinfo)}: {crash}"


def _place(raised: pytest.ExceptionInfo[BaseException]) -> str:
    where = raised.traceback[-1]
    return f"{Path(where.path).name}:{where.lineno + 1}"


def crashed(call: pytest.CallInfo[None]) -> bool:
    """Whether an error ended a check, instead of what it judged."""
    error = call.excinfo.value if call.excinfo else None
    return error is not None and not isinstance(error, (*JUDGEMENTS, pytest.skip.Exception))


def _skipped(spec: CheckSpec, why: str) -> tuple[Verdict, str]:
    """A check that pytest skipped: a gate from which somebody took a MUST has not asked everything."""
    if spec.level is Level.MUST:
        return Verdict.UNDECIDED, f"pytest skipped it, so nothing was judged: {why}"
    return Verdict.NOT_RUN, why


def _said(error: AssertionError) -> str:
    """The check's own words: what stands before pytest's rewritten expression."""
    text = str(error)
    return text.split("\nassert ", maxsplit=1)[0] if "\nassert " in text else text


def shown(verdict: Verdict) -> tuple[str, str, tuple[str, dict[str, bool]]]:
    """What `pytest_report_teststatus` wants for a verdict."""
    _, category, letter, word = SHOWN[verdict]
    colour = {
        Verdict.PASS: "green",
        Verdict.FAIL: "red",
        Verdict.NOT_RUN: "yellow",
        Verdict.UNDECIDED: "red",
    }.get(verdict, "yellow")
    return category, letter, (word, {colour: True})


def to_wire(result: Result) -> dict[str, Any]:
    """A result as plain values, to travel on a test report from an xdist worker."""
    plain = {
        "level": str(result.level),
        "family": str(result.family),
        "verdict": str(result.verdict),
        "observations": dict(result.observations),
        "exchanges": list(result.exchanges),
    }
    return {**asdict(result), **plain}


def from_wire(values: Mapping[str, Any]) -> Result:
    """What `to_wire` made."""
    enums = {
        "level": Level(values["level"]),
        "family": Family(values["family"]),
        "verdict": Verdict(values["verdict"]),
        "exchanges": tuple(values["exchanges"]),
    }
    return Result(**{**values, **enums})
