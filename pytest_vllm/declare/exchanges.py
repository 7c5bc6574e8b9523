"""Requests that are declared once, recorded once per run, judged many times.

An exchange is a function from the server (and earlier recordings) to a Request. Its id, with dots and
hyphens as underscores, is the fixture name under which checks get its Recording. Parameters named like
other exchanges are its dependencies: it is built and sent once those have been recorded.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.declare.jsonlines import json_lines, parsed

if TYPE_CHECKING:
    from collections.abc import Callable


ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)*")


class DeclarationError(Exception):
    """A declared function takes a parameter that nobody provides; one line."""


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
        anyway: sent although the server lacks what the request needs: its refusal is what is judged.
        spread: sent between the others, early and late alike, instead of where its length puts it.
        crowd: sent at the same moment as all others of the crowd of this name, and beside nothing else.
        afterwards: `build` takes what was `recorded`, all of it, and gives the requests that follow from it.
        explores: `build` gives an `Exploration` instead of a request: "drawn" at random, or "known" failures.
        program: somebody's client performs it, in a process of its own; the request says which and how.
    """

    id: str
    build: Callable[..., Any]
    after: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    metrics: bool = False
    alone: bool = False
    restarted: bool = False
    first: bool = False
    anyway: bool = False
    spread: bool = False
    crowd: str = ""
    afterwards: bool = False
    explores: str = ""
    program: bool = False


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


def declared(
    id: str,  # noqa: A002 - the word for it
    build: Callable[..., Any],
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
) -> tuple[str, ...]:
    """Register an exchange; returns the names of the cases and exchanges that `build` takes.

    Raises ValueError for an id that is malformed or declared by another function already.
    """
    if not ID.fullmatch(id):
        raise ValueError(f"exchange id {id!r}: dotted lower-case words, such as 'chat.stop-string'")
    if id in EXCHANGES and EXCHANGES[id].build.__code__ != build.__code__:
        raise ValueError(f"exchange {id} is declared twice; ids are unique over all suites")
    given = {"server", "recorded"} if afterwards else {"server"}
    names = tuple(name for name in inspect.signature(build).parameters if name not in given)
    chosen = tuple(name for name in names if name in CASE_SETS)
    after = tuple(name for name in names if name not in CASE_SETS)
    EXCHANGES[id] = ExchangeSpec(
        id,
        build,
        after,
        chosen,
        metrics,
        alone or metrics,
        restarted,
        first,
        anyway,
        spread,
        crowd,
        afterwards,
        explores,
        program,
    )
    return names


def declared_cases(name: str, rows: Sequence[Mapping[str, Any]] | Path) -> tuple[Case, ...]:
    """Register a case set: rows with an `id` each, from a list, a JSON file or one of JSON lines.

    Raises ValueError naming the row that is none, and the file; FileNotFoundError.
    """
    entries = _rows_of(rows) if isinstance(rows, Path) else rows
    where = str(rows) if isinstance(rows, Path) else f"cases {name!r}"
    if isinstance(entries, str) or not isinstance(entries, Sequence):
        how = f"a file's come by cases({name!r}, case_file(FILE))"
        raise ValueError(f"{where}: not a list of rows; {how}")  # noqa: TRY004 - as of a file
    seen: dict[str, Case] = {}
    for number, row in enumerate(entries, 1):
        if not isinstance(row, Mapping) or "id" not in row:
            raise ValueError(f"{where}: row {number} is not a table with an `id`: {row!r:.80}")
        id_ = str(row["id"])
        if id_ in seen:
            raise ValueError(f"{where}: row {number}: the id {id_} is given twice")
        seen[id_] = Case(id_, row)
    CASE_SETS[name] = tuple(seen.values())
    return CASE_SETS[name]


def _rows_of(path: Path) -> Any:
    if path.suffix == ".jsonl":
        return [row for _, row in json_lines(path)]
    return parsed(path.read_text("utf-8"), str(path))


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
            raise DeclarationError(f"exchange {spec.id}: its parameter {after!r} is {what}{hint}")
        names.update(dict.fromkeys(all_cases(known[after])))
    return tuple(sorted(names))
