"""A traceback that something put into one line, in lines again; and a log that begins with its end."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LONGEST = 200_000
#: Line ends as escapes: behind the head of a traceback, or a frame's function.
_ESCAPED = re.compile(r"(?:recent call last\):|, in [\w<>]+)(?:\\+r)?\\+n")
_ESCAPES = re.compile(r"(?:\\+r)?\\+n")
_CLOSING = re.compile(r"\"[\s}\],]*$")
_QUOTE = re.compile(r"\\+\"")
_SQUASHED = re.compile(
    r"(?:Traceback \(most recent call last\):|File \"[^\"]+\", line \d+, in .*?)"
    r"\s+File \"[^\"]+\", line \d+, in "
)
_PIECE = re.compile(
    r"\s+(?=File \"[^\"]+\", line \d+, in |Traceback \(most recent call last\):"
    r"|During handling of the above exception|The above exception was the direct cause)"
)
_ERROR = re.compile(
    r"\s(?=(?:[A-Za-z_]\w*\.)*(?:[A-Za-z]\w*(?:Error|Exit|Interrupt|Timeout)|\w*Exception)(?:: |\s*$)"
    r"|(?:[a-z_]\w*\.)+[A-Z]\w+: )"
)
_LEVEL = r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) (?:\d\d-\d\d \d\d:\d\d:\d\d[ .]|\[[\w./]+\.py:\d+\] )"
_PROCESSES = r"(?:\([A-Z]\w* [^()]*pid=\d+[^()]*\) )"
_PREFIX = re.compile(rf"\s+(?={_PROCESSES}*{_LEVEL})(?<!\) )")
_HEAD = re.compile(r"Traceback \(most recent call last\):\s*$")
_NEXT = re.compile(r"^.{0,200}?File \"[^\"]+\", line \d+")
_SAID = re.compile(r"(?:^|[\s|\]])(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?:: |\s*$)")
_TIME = re.compile(r"\b(?:(?:\d{4}-)?\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d{1,6})?")
_TWICE, _THRICE, _NEAR = 2, 3, 4


def unfolded(text: str) -> str:
    r"""The text with a line end wherever a traceback in it had one: written as `\n`, or left out."""
    if "File " not in text[:_LONGEST]:
        return text
    text = text[:_LONGEST]
    if _ESCAPED.search(text):
        text = _CLOSING.sub("", _QUOTE.sub('"', _ESCAPES.sub("\n", text)))
    if "\n" not in text and len(re.findall(_LEVEL, text)) >= _THRICE:
        text = _PREFIX.sub("\n", text)
    if any(_SQUASHED.search(line) for line in text.split("\n")):
        text = "\n".join(_lines(line) for line in text.split("\n"))
    return text


def _lines(line: str) -> str:
    """A squashed traceback: a line for each frame, and one for the error behind the last."""
    pieces = _PIECE.split(line)
    if len(pieces) == 1:
        return line
    return "\n".join(
        _ERROR.sub("\n", piece, count=1) if _last(pieces, n) else piece for n, piece in enumerate(pieces)
    )


def _last(pieces: Sequence[str], number: int) -> bool:
    """Whether a frame is the last one of its traceback."""
    behind = pieces[number + 1] if number + 1 < len(pieces) else ""
    return pieces[number].startswith("File ") and not behind.startswith("File ")


def upwards(texts: Sequence[str], whose: Callable[[str], str]) -> bool:
    """Whether a log shows its newest line first: its tracebacks stand on their heads.

    Args:
        texts: its lines.
        whose: gives the process of a line: several may write at once.
    """
    said = [text for text in texts if text.strip()]
    processes: dict[str, list[str]] = {}
    for text in said:
        processes.setdefault(whose(text), []).append(text)
    sides = [_sides(lines) for lines in processes.values()]
    down, up = sum(one for one, _ in sides), sum(one for _, one in sides)
    return up > down or (up == down and _falls(said))


def _sides(texts: Sequence[str]) -> tuple[int, int]:
    """How many lines of one process say that it is written downwards, and upwards."""
    frames = [bool(_NEXT.match(text)) for text in texts]
    heads = [bool(_HEAD.search(text)) for text in texts]
    down = up = 0
    for n, text in enumerate(texts):
        before, behind = any(frames[max(0, n - _NEAR) : n]), any(frames[n + 1 : n + 3])
        if heads[n]:
            down, up = down + any(frames[n + 1 : n + 2]), up + (before and not behind)
        elif not frames[n] and _SAID.search(text):
            down, up = down + before, up + (behind and not before and not any(heads[n + 1 : n + 3]))
    return down, up


def _falls(texts: Sequence[str]) -> bool:
    """Whether the times of a log go back, and never on."""
    times = [found[0] for text in texts if (found := _TIME.search(text))]
    steps = [(one > other) - (one < other) for one, other in itertools.pairwise(times)]
    return steps.count(1) >= _TWICE and -1 not in steps
