"""`@check`, `@exchange`, `@measurement` and `cases`: declarations as pytest sees them, marks and fixtures.

The id of an exchange or measurement, with dots and hyphens as underscores, is the name of the fixture under
which checks get its Recording or Measured.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from pytest_vllm.decide.verdict import Family
from pytest_vllm.declare import checks, exchanges, measurements
from pytest_vllm.declare.exchanges import EXCHANGES, all_cases, fixture_name, key_of
from pytest_vllm.declare.measurements import MEASURED, cases_of
from pytest_vllm.face.collection import in_suites
from pytest_vllm.face.options import MARK
from pytest_vllm.wire.recording import NotRun, Undecided

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_vllm.decide.verdict import Level
    from pytest_vllm.declare.exchanges import Case
    from pytest_vllm.measure.measured import Measured
    from pytest_vllm.measure.workload import Workload
    from pytest_vllm.wire.recording import Recording

#: Fixtures through which a check's recordings and measurements come; fixtures.py provides them.
RECORDINGS, MEASUREMENTS, CLIENTS = "vllm_recordings", "vllm_measurements", "vllm_client_runs"

F = TypeVar("F", bound="Callable[..., object]")


def check(
    id: str,  # noqa: A002 - the word for it
    level: Level,
    *,
    spec: str,
    family: Family = Family.CONFORMANCE,
    needs: Sequence[str] = (),
    tier: str = "smoke",
    exchanges: Sequence[str] = (),
    exclusive: bool = False,
) -> Callable[[F], F]:
    """Make a test function a check. Raises ValueError when the declaration is wrong.

    Args:
        id: dotted, lower case, written by hand, never reused.
        level: MUST, SHOULD or INFO.
        spec: `source:anchor` of the requirement; the source is one of `declare.sources.SOURCES`.
        family: whose fault a failure is.
        needs: capabilities without which the check says nothing.
        tier: the cheapest tier that runs it.
        exchanges: key prefixes of further exchanges to record, for checks over many: `chat.`.
        exclusive: runs alone on the server (measurements).
    """

    def mark(function: F) -> F:
        how = {"family": family, "needs": needs, "tier": tier, "exclusive": exclusive}
        spec_of_check = checks.declared(id, level, function, spec=spec, exchanges=exchanges, **how)  # type: ignore[arg-type]
        marked: F = getattr(pytest.mark, MARK)(spec_of_check)(function)
        return marked

    return mark


def exchange(
    id: str,  # noqa: A002 - the word for it
    *,
    metrics: bool = False,
    alone: bool = False,
    restarted: bool = False,
    first: bool = False,
    anyway: bool = False,
    spread: bool = False,
    crowd: str = "",
    afterwards: bool = False,
    explores: str = "",
    program: bool = False,
) -> Callable[[Callable[..., Any]], Any]:
    """Declare an exchange; the decorated name becomes a pytest fixture that gives its Recording.

    An exchange is a function from the server (and earlier recordings) to a Request. Parameters named like
    other exchanges are its dependencies: it is built and sent once those have been recorded. Those of one
    `crowd` are sent at the same moment, and beside nothing else. One that is asked `afterwards` takes
    `recorded`, every recording so far, and gives any number of requests; each is recorded once, under the
    exchange's id with a checksum of the request in brackets. One that `explores` gives an `Exploration`, and
    no request. One that is a `program` is performed by somebody's client (`run/clients.py`).
    """

    def declare(build: Callable[..., Any]) -> Any:
        names = exchanges.declared(
            id,
            build,
            metrics=metrics,
            alone=alone,
            restarted=restarted,
            first=first,
            anyway=anyway,
            spread=spread,
            crowd=crowd,
            afterwards=afterwards,
            explores=explores,
            program=program,
        )

        source = CLIENTS if program else RECORDINGS

        def recording(request: pytest.FixtureRequest, **fixtures: Any) -> Recording:
            case_ids = [_chosen(request)[name].id for name in all_cases(EXCHANGES[id])]
            found: Recording = fixtures[source].get(key_of(id, case_ids))
            return found

        return _fixture(id, recording, (source, *names))

    return declare


def measurement(id: str, *, weight: float = 1.0) -> Callable[[Callable[..., Workload]], Any]:  # noqa: A002
    """Declare a measurement; the decorated name becomes a pytest fixture that gives its `Measured`."""

    def declare(build: Callable[..., Workload]) -> Any:
        own = not in_suites(Path(build.__code__.co_filename))
        names = measurements.declared(id, build, weight=weight, own=own)

        def measured(request: pytest.FixtureRequest, **fixtures: Any) -> Measured:
            case_ids = [_chosen(request)[name].id for name in cases_of(MEASURED[id])]
            found: Measured = fixtures[MEASUREMENTS].get(key_of(id, case_ids))
            if found.skipped:
                raise NotRun(found.skipped)
            if found.spoiled:
                raise Undecided(f"{id}: {found.spoiled}")
            return found

        return _fixture(id, measured, (MEASUREMENTS, *names))

    return declare


def cases(name: str, rows: Sequence[Mapping[str, Any]] | Path) -> Any:
    """Declare a case set: rows with an `id` each, from a list or a file (`case_file`: JSON, or JSON lines).

    Exchanges and checks that take a parameter of that name are run once per case.
    """
    known = exchanges.declared_cases(name, rows)

    def case(request: pytest.FixtureRequest) -> Case:
        given: Case = request.param
        return given

    return pytest.fixture(params=known, ids=[one.id for one in known], name=name)(case)


def _chosen(request: pytest.FixtureRequest) -> Mapping[str, Any]:
    chosen: Mapping[str, Any] = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    return chosen


def _fixture(id: str, function: Callable[..., Any], names: Sequence[str]) -> Any:  # noqa: A002
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(name, keyword) for name in ("request", *names)]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__name__ = fixture_name(id)
    return pytest.fixture(name=fixture_name(id))(function)
