"""A log that was pasted: lines that a terminal broke at its width are whole again, and at the margin."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

from pytest_vllm.launch.carriers import begins

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

_NARROW, _WIDE, _LEAST, _MOST = 60, 400, 2, 20_000
#: How many characters at their begin show that two lines carry the same prefix.
_ALIKE = 12
#: Of the lines that fill the width, how many have to go on in the next one.
_GO_ON = 0.7
_MARKS = " \t-*+>#|│┃▌▍▎▏/;%•"
_LED = re.compile(r"\(|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d")
_FIGURES = re.compile(r"\d+")
_OWN = re.compile(r"\s{2,}\S|[{\[│|>]|\d{4}-\d\d-\d\d|$")


def unwrapped(lines: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines as they were written, each with the number of its first piece.

    A log is taken for broken when its widest lines are all of one width and most of them go on in the line
    behind, which does not begin as a line of a log does.
    """
    width = max((len(text) for _, text in lines), default=0)
    full = [n for n, (_, text) in enumerate(lines[:-1]) if len(text) == width and not text.endswith("  ")]
    if not _NARROW <= width <= _WIDE or len(full) < _LEAST or len(lines) > _MOST:
        return at_the_margin(lines)
    filled, first = set(full), ""
    heads = {_head(lines[n][1]) for n in full if n - 1 not in filled}
    goes_on: set[int] = set()
    for n in full:
        first = first if n - 1 in goes_on else lines[n][1]
        if not _starts(lines[n + 1][1], heads, led=bool(_LED.match(first))):
            goes_on.add(n)
    if len(goes_on) < max(_LEAST, _GO_ON * len(full)):
        return at_the_margin(lines)
    whole: list[tuple[int, str]] = []
    for n, (number, text) in enumerate(lines):
        if n - 1 in goes_on:
            whole[-1] = whole[-1][0], whole[-1][1] + text
        else:
            whole.append((number, text))
    return at_the_margin(whole)


def at_the_margin(lines: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """The lines without the spaces and marks that stand before all of them.

    Marks are those of a quotation, a list or a comment; what belongs to a traceback stays.
    """
    said = [text for _, text in lines if text.strip(_MARKS)]
    low, high = min(said, default=""), max(said, default="")
    alike = itertools.takewhile(
        lambda pair: pair[0] == pair[1] and pair[0] in _MARKS, zip(low, high, strict=False)
    )
    depth = len(list(alike))
    if not depth or not any(begins(text[depth:]) for text in said):
        return list(lines)
    return [(number, text[depth:]) for number, text in lines]


def _starts(text: str, heads: AbstractSet[str], *, led: bool) -> bool:
    """Whether a line is one of its own; one that is moved in is not, behind one that its process leads."""
    if _head(text) in heads or begins(text):
        return True
    return bool(_OWN.match(text)) and not (led and text.startswith(" "))


def _head(text: str) -> str:
    return _FIGURES.sub("0", text[:_ALIKE])
