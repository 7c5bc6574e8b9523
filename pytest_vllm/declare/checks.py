"""What a check declares, and the words it uses to judge. `@check` itself is in face/decorators.py.

A check is a plain function over recordings. Its parameters name exchanges, its docstring is the
requirement as a fact, its asserts carry what was observed.
"""

from __future__ import annotations

import difflib
import inspect
import re
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from pytest_vllm.decide.verdict import Family, Level
from pytest_vllm.declare.capabilities import every_capability
from pytest_vllm.wire.recording import NotRun, Undecided

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MUST, SHOULD, INFO = Level.MUST, Level.SHOULD, Level.INFO
CONFORMANCE, CAPABILITY = Family.CONFORMANCE, Family.CAPABILITY
PERFORMANCE, ENVIRONMENT = Family.PERFORMANCE, Family.ENVIRONMENT
TIERS = ("smoke", "gate", "soak", "explore")

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)+")
_observed: ContextVar[dict[str, str] | None] = ContextVar("observed", default=None)


@dataclass(frozen=True)
class CheckSpec:
    """What a check declares about itself.

    Args:
        id: dotted, lower case, written by hand, never reused.
        level: MUST, SHOULD or INFO.
        spec: `source:anchor` of the requirement; the source is one of `pytest_vllm.declare.sources.SOURCES`.
        family: whose fault a failure is.
        needs: capabilities without which the check says nothing.
        tier: the cheapest tier that runs it.
        exchanges: key prefixes of further exchanges to record, for checks over many: `chat.`, `chat.needle[`.
        exclusive: runs alone on the server (measurements).
        fact: the docstring's first line.
    """

    id: str
    level: Level
    spec: str
    family: Family = Family.CONFORMANCE
    needs: tuple[str, ...] = ()
    tier: str = "smoke"
    exchanges: tuple[str, ...] = ()
    exclusive: bool = False
    fact: str = field(default="", compare=False)


def declared(
    id: str,  # noqa: A002 - the word for it
    level: Level,
    function: Callable[..., object],
    *,
    spec: str,
    family: Family = Family.CONFORMANCE,
    needs: Sequence[str] = (),
    tier: str = "smoke",
    exchanges: Sequence[str] = (),
    exclusive: bool = False,
) -> CheckSpec:
    """What a function declares as a check. Raises ValueError when the declaration is wrong."""
    if not _ID.fullmatch(id):
        raise ValueError(f"check id {id!r}: dotted lower-case words, such as 'stream.usage.final-chunk'")
    for name in needs:
        if name not in (known := every_capability()):
            near = "".join(f"; did you mean {one!r}?" for one in difflib.get_close_matches(name, known, n=1))
            own = "one of your own is declared by capability(…), before the checks that need it"
            raise ValueError(
                f"check {id}: unknown capability {name!r}{near} (one of {', '.join(known)}; {own})"
            )
    if tier not in TIERS:
        raise ValueError(f"check {id}: unknown tier {tier!r}; known: {', '.join(TIERS)}")
    fact = (inspect.getdoc(function) or "").split("\n")[0]
    if not fact:
        raise ValueError(f"check {id} has no docstring: state the requirement as a fact, in one line")
    return CheckSpec(id, level, spec, family, tuple(needs), tier, tuple(exchanges), exclusive, fact)


def undecided(reason: str) -> NoReturn:
    """Stop judging: the evidence does not allow it."""
    raise Undecided(reason)


def need(exercised: object, reason: str) -> None:
    """Go on only if the path under test was exercised; a check that judged nothing is never a pass."""
    if not exercised:
        raise Undecided(reason)


def only_if(applies: object, reason: str) -> None:
    """Go on only if the requirement applies to this deployment (its version, its profile).

    For what is known beforehand. What the server was seen to do is for `need`, which never lets a miss pass.
    """
    if not applies:
        raise NotRun(reason)


def observe(name: str, value: object) -> None:
    """Record a value in the report, whatever the verdict."""
    notes = _observed.get()
    if notes is not None:
        notes[name] = str(value)


@contextmanager
def collecting_observations() -> Iterator[dict[str, str]]:
    """Collect what `observe` records while a check runs."""
    notes: dict[str, str] = {}
    token = _observed.set(notes)
    try:
        yield notes
    finally:
        _observed.reset(token)
