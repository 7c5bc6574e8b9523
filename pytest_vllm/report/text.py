"""Text for people: columns, clocks, colour as support.

What a server sent is shown by `printable`, so that no byte of it can move a cursor or hide a word.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

WIDTH = 100
#: Columns of a path or a URL that is not broken, however narrow the terminal is.
WHOLE = 240

_BOLD, _FAINT, _RED, _GREEN, _YELLOW = "1", "2", "31", "32", "33"


@dataclass(frozen=True)
class Style:
    """Colour as support: the text reads the same without it.

    Args:
        color: whether to write ANSI colours.
        width: columns of a line, at least 60.
    """

    color: bool = False
    width: int = WIDTH

    def good(self, text: str) -> str:
        """What went right."""
        return self._in(f"{_BOLD};{_GREEN}", text)

    def bad(self, text: str) -> str:
        """What went wrong."""
        return self._in(f"{_BOLD};{_RED}", text)

    def doubtful(self, text: str) -> str:
        """What is known too little about, or accepted."""
        return self._in(_YELLOW, text)

    def strong(self, text: str) -> str:
        """A heading."""
        return self._in(_BOLD, text)

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text else text


PLAIN = Style()


def printable(text: str) -> str:
    """The text on one line, with everything that does not print written as its escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def columns(text: str) -> int:
    """Terminal columns of printable text: wide characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(_columns_of(c) for c in text)


def _columns_of(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def clip(text: str, width: int) -> str:
    """The text within `width` columns; an ellipsis says that something was cut."""
    if columns(text) <= width:
        return text
    return _head(text, width - 1) + "…"


def _head(text: str, width: int) -> str:
    used = 0
    for place, character in enumerate(text):
        used += _columns_of(character)
        if used > width:
            return text[:place]
    return text


def around(text: str, needle: str, width: int) -> str:
    """The text within `width` columns, cut so that `needle` stays visible."""
    place = text.find(needle) if needle else -1
    if place < 0 or columns(text[: place + len(needle)]) < width:
        return clip(text, width)
    start = max(0, place - max(0, (width - len(needle)) // 2))
    return clip("…" + text[start + 1 :], width)


def wrap(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` columns, broken at spaces; a path that is wider stays whole."""
    if columns(text) <= width:
        return [text]
    lines, line = [], ""
    for word in text.split(" "):
        rest = word
        if line and columns(line) + 1 + columns(rest) <= width:
            line = f"{line} {rest}"
            continue
        if line:
            lines.append(line)
        while columns(rest) > width and not ("/" in rest and columns(rest) <= WHOLE):
            head = _head(rest, width) or rest[:1]
            lines.append(head)
            rest = rest[len(head) :]
        line = rest
    return [*lines, line]


def paragraphs(text: str, width: int, *, most: int = 12) -> list[str]:
    """Text of several lines, each made printable and wrapped; a count stands for what exceeds `most`."""
    lines = [piece for line in text.split("\n") for piece in wrap(printable(line.rstrip()), width)]
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], f"… {len(lines) - most + 1} more lines"]


def clock(seconds: float) -> str:
    """`9:52`, or `1:04:10` from an hour on."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 event`, `14 events`."""
    return f"{number:,} {nouns(number, noun, plural)}"


def nouns(number: int, noun: str, plural: str = "") -> str:
    """`event` or `events`, whichever goes with a number."""
    return noun if number == 1 else plural or noun + "s"


def ruled(title: str, width: int) -> str:
    """A title in the middle of a line of `=`."""
    return f" {title} ".center(width, "=")


def shown_path(path: Path) -> str:
    """A path as it is shortest to read from the working directory."""
    try:
        return path.resolve().relative_to(Path.cwd()).as_posix()
    except (ValueError, OSError):
        return path.as_posix()


def listed(words: Iterable[str], *, most: int) -> str:
    """Words joined by commas; a count stands for those beyond `most`."""
    every = list(words)
    shown = ", ".join(every[:most])
    return f"{shown} and {len(every) - most} more" if len(every) > most else shown
