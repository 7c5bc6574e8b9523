"""`@exchange` and `cases`: requests that are declared once, recorded once per run, judged many times.

An exchange is a function from the server (and earlier recordings) to a Request. Its id, with dots and
hyphens as underscores, is the fixture name under which checks get its Recording. Parameters named like
other exchanges are its dependencies: it is built and sent once those have been recorded.
"""

from __future__ import annotations

import difflib
import inspect
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_vllm.wire.recording import Recording, Request

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*")

#: Fixture through which a check's recordings come; plugin.py provides it.
RECORDINGS = "vllm_recordings"


@dataclass(frozen=True)
class ExchangeSpec:
    """A declared exchange.

    Args:
        id: dotted name.
        build: function of `server`, case fixtures and earlier recordings, giving the Request.
        after: fixture names of the exchanges whose recordings `build` takes.
        cases: names of the case sets that multiply it.
        metrics: scrape `/metrics` right before and, idle again, after; implies alone.
        alone: no other exchange runs meanwhile.
        restarted: recorded once the server was stopped and started again, after everything else.
        first: sent before anything else is generated, and only where this run started the server.
    """

    id: str
    build: Callable[..., Request]
    after: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    metrics: bool = False
    alone: bool = False
    restarted: bool = False
    first: bool = False


@dataclass(frozen=True)
class Case:
    """One named entry of a case set; `case["field"]` reads it."""

    id: str
    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        """The value of a field."""
        return self.values[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a field, or the default."""
        return self.values.get(name, default)


EXCHANGES: dict[str, ExchangeSpec] = {}
CASE_SETS: dict[str, tuple[Case, ...]] = {}
_BY_FIXTURE: dict[str, ExchangeSpec] = {}


def fixture_name(id: str) -> str:  # noqa: A002
    """`chat.stop-string` -> `chat_stop_string`."""
    return id.replace(".", "_").replace("-", "_")


def exchange(
    id: str,  # noqa: A002 - the word for it
    *,
    metrics: bool = False,
    alone: bool = False,
    restarted: bool = False,
    first: bool = False,
) -> Callable[[Callable[..., Request]], Any]:
    """Declare an exchange; the decorated name becomes a pytest fixture that gives its Recording."""
    if not _ID.fullmatch(id):
        raise ValueError(f"exchange id {id!r}: dotted lower-case words, such as 'chat.stop-string'")

    def declare(build: Callable[..., Request]) -> Any:
        if id in EXCHANGES and EXCHANGES[id].build.__code__ != build.__code__:
            raise ValueError(f"exchange {id} is declared twice; ids are unique over all suites")
        names = [name for name in inspect.signature(build).parameters if name != "server"]
        cases = tuple(name for name in names if name in CASE_SETS)
        after = tuple(name for name in names if name not in CASE_SETS)
        EXCHANGES[id] = ExchangeSpec(id, build, after, cases, metrics, alone or metrics, restarted, first)
        return _fixture(id, names)

    return declare


def cases(name: str, rows: Sequence[Mapping[str, Any]] | Path) -> Any:
    """Declare a case set: rows with an `id` each, from a list or a JSON file.

    Exchanges and checks that take a parameter of that name are run once per case.
    """
    entries = json.loads(rows.read_text("utf-8")) if isinstance(rows, Path) else rows
    CASE_SETS[name] = tuple(Case(str(row["id"]), row) for row in entries)

    def case(request: pytest.FixtureRequest) -> Case:
        given: Case = request.param
        return given

    return pytest.fixture(params=CASE_SETS[name], ids=[c.id for c in CASE_SETS[name]], name=name)(case)


def key_of(id: str, case_ids: Sequence[str] = ()) -> str:  # noqa: A002
    """The key of a recording: the exchange's id, with its cases in brackets."""
    return f"{id}[{'-'.join(case_ids)}]" if case_ids else id


def by_fixture_name() -> dict[str, ExchangeSpec]:
    """All declared exchanges by the fixture name that checks use."""
    if len(_BY_FIXTURE) != len(EXCHANGES):
        _BY_FIXTURE.clear()
        _BY_FIXTURE.update({fixture_name(spec.id): spec for spec in EXCHANGES.values()})
    return _BY_FIXTURE


def all_cases(spec: ExchangeSpec) -> tuple[str, ...]:
    """Case sets of an exchange and of everything it comes after, in order of first mention."""
    known = by_fixture_name()
    names = dict.fromkeys(spec.cases)
    for after in spec.after:
        if after not in known:
            near = difflib.get_close_matches(after, [*known, *CASE_SETS], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            what = "neither `server`, a case set nor an exchange"
            raise pytest.UsageError(f"exchange {spec.id}: its parameter {after!r} is {what}{hint}")
        names.update(dict.fromkeys(all_cases(known[after])))
    return tuple(sorted(names))


def _fixture(id: str, names: list[str]) -> Any:  # noqa: A002
    def recording(request: pytest.FixtureRequest, **fixtures: Any) -> Recording:
        chosen = request.node.callspec.params if hasattr(request.node, "callspec") else {}
        case_ids = [chosen[name].id for name in all_cases(EXCHANGES[id])]
        found: Recording = fixtures[RECORDINGS].get(key_of(id, case_ids))
        return found

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(name, keyword) for name in ["request", RECORDINGS, *names]]
    recording.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    recording.__name__ = fixture_name(id)
    return pytest.fixture(name=fixture_name(id))(recording)
