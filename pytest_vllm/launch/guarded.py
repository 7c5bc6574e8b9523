"""Patterns that are searched only in lines that hold a word without which they cannot match.

A log has many lines and the tables many patterns: to look for a word takes a fraction of what a search takes.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from pytest_vllm.launch.remembered import forget, remembered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

#: What is shorter stands in too many lines, and how much length is worth anything.
_LEAST, _ENOUGH = 4, 7
#: Letters by how often a sentence has them, the most frequent first.
_COMMON = " etaoinshrdlcumwfgypbvk"
#: Lines that hold the same parts are many.
_MANY = 1024
_keys: set[str] = set()
_GROUP = re.compile(r"\?(?:P<\w+>|P=\w+|<?[=!]|[a-zA-Z-]*:|[a-zA-Z]+|#)")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_TIMES = re.compile(r"(?:(?P<none>[*?]|\{0?,\d*\}|\{0[,}])|\+|\{\d+(?:,\d*)?\})[?+]?")
_LITERAL_ESCAPES = frozenset(r".^$*+?{}[]\|()/-'\"` :=,<>#&~@!%;")


class Shapes:
    """Patterns in an order, of which those are searched in a line that can match it.

    Args:
        patterns: one for each row of a table.
        flags: for all of them.
    """

    def __init__(self, patterns: Iterable[str], flags: int = 0) -> None:
        self._searches: list[Callable[[str], re.Match[str] | None]] = []
        self._always: list[int] = []
        self._index: dict[str, list[int]] = {}
        for n, pattern in enumerate(patterns):
            self._searches.append(re.compile(pattern, flags).search)
            words = () if flags & (re.IGNORECASE | re.VERBOSE) else needed(pattern)
            self._always += () if words else (n,)
            for key in {_key(word) for word in words}:
                self._index.setdefault(key, []).append(n)
        self._rows = lru_cache(_MANY)(self._rows_of)
        _keys.update(self._index)
        forget()

    def fitting(self, line: str) -> Iterator[tuple[int, re.Match[str]]]:
        """The rows that match a line, in their order."""
        for n in self._rows(_hits(line)):
            if match := self._searches[n](line):
                yield n, match

    def _rows_of(self, hits: tuple[str, ...]) -> list[int]:
        return sorted({*self._always, *(n for key in hits for n in self._index.get(key, ()))})


@remembered
def _hits(line: str) -> tuple[str, ...]:
    """The parts of words in a line that some pattern cannot do without."""
    pieces = [line[n : n + _LEAST] for n in range(len(line) - _LEAST + 1)]
    return tuple(_keys.intersection(pieces))


def _key(word: str) -> str:
    """The rarest part of a word."""
    return max((word[n : n + _LEAST] for n in range(len(word) - _LEAST + 1)), key=_rareness)


def _rareness(part: str) -> int:
    """How seldom its letters are in a sentence."""
    return sum(_COMMON.find(letter) if letter in _COMMON else len(_COMMON) for letter in part)


def needed(pattern: str) -> tuple[str, ...]:
    """Words of which every text that the pattern matches holds one; none where that cannot be told."""
    if re.match(r"\(\?[a-zA-Z]+\)", pattern):
        return ()
    words, _ = _alternatives(pattern, 0)
    return tuple(sorted(words))


def _alternatives(pattern: str, at: int) -> tuple[frozenset[str], int]:
    """The words of `a|b` up to the bracket that closes it, and where that stands."""
    found: list[frozenset[str]] = []
    while True:
        words, at = _branch(pattern, at)
        found.append(words)
        if pattern[at : at + 1] != "|":
            break
        at += 1
    return (frozenset().union(*found) if all(found) else frozenset()), at


def _branch(pattern: str, at: int) -> tuple[frozenset[str], int]:
    """The best words of one alternative: each of its runs of letters, and each of its groups, is needed."""
    best: frozenset[str] = frozenset()
    run = ""
    while at < len(pattern) and pattern[at] not in "|)":
        words, literal, at = _atom(pattern, at)
        times = _TIMES.match(pattern, at)
        at = times.end() if times else at
        if literal and not times:
            run += literal
            continue
        if literal and times and not times["none"]:
            run += literal
        best, run = _better(best, _long(run)), ""
        if not (times and times["none"]):
            best = _better(best, words)
    return _better(best, _long(run)), at


def _atom(pattern: str, at: int) -> tuple[frozenset[str], str, int]:
    """The words of a group, or the letter, that stands at a place, and where it ends."""
    letter = pattern[at]
    if letter == "\\":
        escaped = pattern[at + 1]
        return frozenset(), escaped if escaped in _LITERAL_ESCAPES else "", at + 2
    if letter == "[" and (inside := _CLASS.match(pattern, at)):
        return frozenset(), "", inside.end()
    if letter == "(":
        kind = _GROUP.match(pattern, at + 1)
        words, end = _alternatives(pattern, kind.end() if kind else at + 1)
        plain = kind is None or kind[0] == "?:" or kind[0].startswith("?P<")
        return words if plain else frozenset(), "", end + 1
    return frozenset(), "" if letter in ".^$" else letter, at + 1


def _long(run: str) -> frozenset[str]:
    return frozenset({run}) if len(run) >= _LEAST else frozenset()


def _better(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """The rarer of two sets of words: longer ones, then fewer."""
    return max((one, other), key=_worth)


def _worth(words: frozenset[str]) -> tuple[int, int]:
    return min((min(len(word), _ENOUGH) for word in words), default=0), -len(words)
