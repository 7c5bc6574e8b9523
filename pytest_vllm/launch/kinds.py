"""The table of kinds of faults, `kinds.toml`: told by an error's class, by who raised it and by its shape.

`causes.toml` knows exact words; a kind names an error whose words nobody has seen.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.launch.causes import Cause
from pytest_vllm.launch.guarded import Shapes
from pytest_vllm.launch.raiser import PLUGIN, VLLM, raiser
from pytest_vllm.launch.refusing import REFUSES
from pytest_vllm.launch.remembered import remembered
from pytest_vllm.launch.words import Found

if TYPE_CHECKING:
    from pytest_vllm.launch.tracebacks import Raised

_NEVER = re.compile(r"(?!)")
_INNER = 8
_NOT, _REFUSING = "\\A(?!", {"settings-refused", "lora-does-not-fit"}


@dataclass(frozen=True)
class Kind:
    """A kind of fault. What is given has to match, all of it.

    Args:
        cause: its id, meaning and steps.
        error: searched in the exception's class.
        frame: searched in `file:function` of the eight innermost frames.
        text: searched in the message and what follows it.
        phase: searched in the name of the phase of the start.
        line: searched in single lines instead; what a program says that raises nothing.
        hung: searched in the last line of a start that does not go on.
        sure: whether a match is certain, not likely.
        deep: whether every frame is searched: compiled code stands between the caller and what it raised.
        own: True where vLLM's own code, or its plugin's, has to be what raised it, not a library that it
            called; False where it has to be somebody else's code, which the frames show; None where that
            does not matter.
        asserted: searched in the condition that did not hold, of an assertion that says nothing else.
    """

    cause: Cause
    error: re.Pattern[str] | None
    frame: re.Pattern[str] | None
    text: re.Pattern[str] | None
    phase: re.Pattern[str] | None
    line: re.Pattern[str] | None
    hung: re.Pattern[str] | None
    sure: bool
    own: bool | None
    deep: bool = False
    asserted: re.Pattern[str] | None = None

    def fits(self, one: Raised, phase: str) -> bool:
        """Whether an exception is of this kind."""
        asked = (
            (self.error, one.error),
            (self.frame, "\n".join(one.frames if self.deep else one.frames[-_INNER:])),
            (self.text, one.text),
            (self.phase, phase),
            (self.asserted, one.asserted),
        )
        if self.own is not None and not self._whose(raiser(one.frames)):
            return False
        if self._by_place and REFUSES.search(one.text):
            return False
        given = [pattern.search(words) for pattern, words in asked if pattern is not None]
        return bool(given) and all(given)

    @property
    def _by_place(self) -> bool:
        """Whether no words of the error have a say: one that refuses something says itself why."""
        words = self.text is not None and not self.text.pattern.startswith(_NOT)
        return self.frame is not None and not words and self.cause.id not in _REFUSING

    def _whose(self, who: str) -> bool:
        return who in {VLLM, PLUGIN, ""} if self.own else who not in {VLLM, ""}


@cache
def kinds() -> tuple[Kind, ...]:
    """The table, in order: of two that fit the same error the earlier one counts."""
    table = tomllib.loads(Path(__file__).with_name("kinds.toml").read_text("utf-8"))
    return tuple(_kind(row) for row in table["kind"])


def _kind(row: dict[str, Any]) -> Kind:
    cause = Cause(
        id=row["id"],
        pattern=_NEVER,
        means=row["means"],
        tries=tuple(row["try"]),
        symptom=not row.get("sure"),
        example="",
        source=row["source"],
        follows=bool(row.get("follows")),
    )
    error, frame, text, phase, line, hung, asserted = (
        re.compile(row[name], re.MULTILINE) if name in row else None
        for name in ("error", "frame", "text", "phase", "line", "hung", "asserted")
    )
    sure, deep = bool(row.get("sure")), bool(row.get("deep"))
    return Kind(cause, error, frame, text, phase, line, hung, sure, row.get("own"), deep, asserted)


def of_kind(kind: Kind, number: int, line: str) -> Found:
    """A kind with the line that shows it."""
    return Found(kind.cause, number, line, kind.cause.means, kind.cause.tries)


@cache
def _of_lines() -> tuple[tuple[Kind, ...], Shapes]:
    own = [(kind, kind.line.pattern) for kind in kinds() if kind.line is not None]
    return tuple(kind for kind, _ in own), Shapes((pattern for _, pattern in own), re.MULTILINE)


@remembered
def line_kinds(line: str) -> tuple[Kind, ...]:
    """The kinds that a single line, without its prefix, tells, in the table's order."""
    known, patterns = _of_lines()
    return tuple(known[n] for n, _ in patterns.fitting(line))


def line_kind(line: str) -> Kind | None:
    """The first of them."""
    return next(iter(line_kinds(line)), None)
