"""A pattern that is searched only in lines that hold a word without which it cannot match.

A log has many lines and the tables many patterns: to look for a word takes a fraction of what a search takes.
"""

from __future__ import annotations

import re

#: What is shorter stands in too many lines, and how much length is worth anything.
_LEAST, _ENOUGH = 3, 7
_GROUP = re.compile(r"\?(?:P<\w+>|P=\w+|<?[=!]|[a-zA-Z-]*:|[a-zA-Z]+|#)")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_TIMES = re.compile(r"(?:(?P<none>[*?]|\{0?,\d*\}|\{0[,}])|\+|\{\d+(?:,\d*)?\})[?+]?")
_LITERAL_ESCAPES = frozenset(r".^$*+?{}[]\|()/-'\"` :=,<>#&~@!%;")


class Guarded:
    """A pattern with the words of which a line has to hold one.

    Attributes:
        needs: the words; empty where it can match without any.
        groupindex: the pattern's named groups.
    """

    __slots__ = ("_search", "groupindex", "needs")

    def __init__(self, pattern: str, flags: int = 0) -> None:
        whole = re.compile(pattern, flags)
        self.needs = () if flags & (re.IGNORECASE | re.VERBOSE) else needed(pattern)
        self.groupindex = whole.groupindex
        self._search = whole.search

    def search(self, text: str) -> re.Match[str] | None:
        """As the pattern's own `search`."""
        if not self.needs:
            return self._search(text)
        for word in self.needs:
            if word in text:
                return self._search(text)
        return None


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
