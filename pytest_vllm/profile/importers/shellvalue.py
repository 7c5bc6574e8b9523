"""What a word of a shell stands for, with what has to be said when it is used."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from pytest_vllm.profile.importers.marks import UNRUN

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable


#: How a remark ends that says of a name that a shell makes nothing of it.
LEFT_EMPTY = ": it is left empty"
#: Of a file that a script reads: what it sets may be what is not set.
NOT_THERE = "the file is not there, so what it sets is not known"
#: Said of a script that uses "$@" or $*, and of which nobody knows how it is called.
NO_ARGUMENTS = 'the arguments that the script is called with ("$@") are not in it: none of them is read'


class Remark(NamedTuple):
    """What has to be said about a value once it is used.

    Args:
        line: where.
        text: what.
        fatal: whether the value is not known, so that the server cannot be either.
    """

    line: int
    text: str
    fatal: bool = False


#: What blanks divide; what only a shell that runs would know stays in one piece.
_WORD = re.compile(f"(?:{UNRUN}+[^{UNRUN}]*{UNRUN}+|[^\\s{UNRUN}])+")


@dataclass(frozen=True)
class Value:
    """A text that a shell has put together.

    Args:
        text: with the names of secrets between SECRET marks.
        remarks: what has to be said if it is used.
        uses: the pieces of the ledger that it came from.
        outside: whether it depends on what the script does not say: environment, arguments, files.
    """

    text: str = ""
    remarks: tuple[Remark, ...] = ()
    uses: frozenset[Hashable] = frozenset()
    outside: bool = False

    @property
    def unknown(self) -> bool:
        """Whether the text is not what the script would have."""
        return any(remark.fatal for remark in self.remarks)

    @property
    def literal(self) -> bool:
        """Whether only a shell that runs would know its text."""
        return UNRUN in self.text

    def __add__(self, other: Value) -> Value:
        """The two behind each other."""
        return Value(
            self.text + other.text,
            tuple(dict.fromkeys(self.remarks + other.remarks)),
            self.uses | other.uses,
            self.outside or other.outside,
        )

    def cut(self, text: str) -> Value:
        """The same with another text."""
        return replace(self, text=text)


def joined(values: Iterable[Value], between: str = " ") -> Value:
    """Values as one text."""
    found: Value | None = None
    for value in values:
        found = value if found is None else found + Value(between) + value
    return found or Value()


class Part(NamedTuple):
    """A part of a word: quoted or literal, or to be split at blanks as a shell splits what a name becomes."""

    value: Value
    whole: bool = True
    ends: bool = False


def fields(parts: Iterable[Part]) -> list[Value]:
    """The words that a word becomes: none, one or several."""
    found: list[Value] = []
    current: Value | None = None
    pending = Value()  # what has to be said of a name that became nothing
    for part in parts:
        if part.ends:
            found, current = [*found, *_one(current)], None
            continue
        pieces = [part.value.text] if part.whole else _WORD.findall(part.value.text)
        if not part.whole and part.value.text[:1].isspace():
            found, current = [*found, *_one(current)], None
        if not pieces:
            pending += part.value.cut("")
        for place, piece in enumerate(pieces):
            found, current = ([*found, *_one(current)], None) if place else (found, current)
            current, pending = (current or Value()) + pending + part.value.cut(piece), Value()
        if pieces and not part.whole and part.value.text[-1:].isspace():
            found, current = [*found, *_one(current)], None
    return [*found, *_one(None if current is None else current + pending)]


def _one(value: Value | None) -> list[Value]:
    return [] if value is None else [value]
