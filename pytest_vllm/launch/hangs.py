"""Where a start that does not go on stands: the last line of vLLM, or of what its ranks talk through."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.launch.carriers import speaks
from pytest_vllm.launch.frontend import is_front_end_calm
from pytest_vllm.launch.kinds import kinds, of_kind
from pytest_vllm.launch.tracebacks import is_frame

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.launch.words import Found

_WIDEST = 400
#: A log that ends in a traceback was cut there: what it ends with does not hang.
_CUT = 3
_TOGETHER = "collective-hang"
_SIZE = re.compile(r"\bworld[_ ]size[= ](\d+)|\bn[rR]anks (\d+)")
_TALKS = re.compile(r"[NRH]CCL|\bc10d\b|[Gg]loo|ProcessGroup|placement group|^\(\w+ pid=")
#: What says that a worker does not answer, once a minute; so often, of the lines before the first error.
WAITS = "No available shared memory broadcast block found"
_ENDED = re.compile(r"(?:\([^)]*\)\s*)*(?:ERROR|CRITICAL)\b")
_BEFORE, _TWICE = 4, 2
#: Where something failed, or Python ended, nothing hangs.
_FAILS = re.compile(
    r"(?:Error|Exception)\b|\bbefore program exit\b|\b[Ff]ailed\b|\bNo such file\b"
    r"|\bnot found\b|\babort(?:ed|ing)\b"
)
#: Lines that show the whole configuration: its words say nothing of what runs.
_SHOWS = re.compile(r"Initializing an? (?:V\d )?LLM engine|non-default args|\bargs: Namespace")


def where_it_hangs(lines: Sequence[str]) -> Found | None:
    """The kind that the last line of a log tells; None when it tells none, or something failed there."""
    ran = any(speaks(line) and not is_front_end_calm(line) for line in lines)
    ends = (
        (n, text)
        for n, text in reversed(list(enumerate(lines, 1)))
        if text and not is_front_end_calm(text) and not (ran and _is_aside(text))
    )
    number, line = next(ends, (0, ""))
    line = "" if _SHOWS.search(line) or _FAILS.search(line) or len(line) > _WIDEST else line
    line = "" if any(is_frame(text) for text in lines[max(0, number - _CUT) : number]) else line
    for kind in kinds():
        if kind.hung is not None and kind.hung.search(line):
            alone = kind.cause.id == _TOGETHER and _is_alone(lines)
            return None if alone else of_kind(kind, number, line)
    return None


def waited_before(lines: Sequence[str]) -> Found | None:
    """What the engine waited for, minute after minute, right before something that says nothing ended it."""
    first = next((n for n, line in enumerate(lines) if _ENDED.match(line)), 0)
    last = [n for n, line in enumerate(lines[:first], 1) if line.strip()][-_BEFORE:]
    waits = [n for n in last if WAITS in lines[n - 1]]
    return where_it_hangs(lines[: waits[-1]]) if len(waits) >= _TWICE else None


def _is_aside(line: str) -> bool:
    """Whether somebody else than vLLM, or the library that its ranks talk through, says a line."""
    return not (speaks(line) or _TALKS.search(line) or _FAILS.search(line) or is_frame(line))


def _is_alone(lines: Sequence[str]) -> bool:
    """Whether the only rank says so: there is nobody whom it could wait for."""
    sizes = [int(found[1] or found[2]) for line in lines for found in _SIZE.finditer(line)]
    return bool(sizes) and max(sizes) == 1
