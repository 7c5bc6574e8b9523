"""What to show of a response: the lines that let a person see the fault without the whole recording.

Streams show their first events, those that the reason names, and their last ones; bodies show an
outline and the fields that the reason names. Everything is redacted before it is cut.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_vllm.report.outline import leaves, outline
from pytest_vllm.report.text import around, clip, printable, wrap
from pytest_vllm.wire.sse import read_stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_vllm.wire.recording import Recording
    from pytest_vllm.wire.redact import Redactor
    from pytest_vllm.wire.sse import Event

#: Columns of an excerpt's text, without the time before it.
COLUMNS = 86
HEAD, NAMED, TAIL = 2, 3, 3
BODY_LINES, BODY_FIELDS, METRIC_LINES = 3, 4, 4

_QUOTED = re.compile(r"'([^'\n]{2,60})'|\"([^\"\n]{2,60})\"|`([^`\n]{2,60})`")
_NUMBERED = re.compile(r"\b(?:event|chunk|delta|frame)s?\b\D{0,4}(\d+(?:\s*,\s*\d+)*)", re.IGNORECASE)
_METRIC = re.compile(r"\bvllm:\w+")
_BOILERPLATE = frozenset({"id", "object", "created", "model", "system_fingerprint", "service_tier"})


@dataclass(frozen=True)
class Line:
    """One line of an excerpt.

    Args:
        text: what to show, one line of printable text.
        at: seconds since the request was sent; None for lines that have no time.
        left_out: how many events this line stands for; 0 for a line that shows something.
    """

    text: str
    at: float | None = None
    left_out: int = 0


def is_stream(recording: Recording) -> bool:
    """Whether the response is a stream of server-sent events."""
    return recording.header("content-type").lower().startswith("text/event-stream")


def excerpt(recording: Recording, reason: str, redactor: Redactor) -> tuple[Line, ...]:
    """The lines of a response that matter for `reason`."""
    lines = _headers_named(recording, reason, redactor)
    if is_stream(recording):
        lines += _stream_lines(recording, reason, redactor)
    elif recording.body:
        lines += _body_lines(recording, reason, redactor)
    if recording.status is not None and recording.error:
        broke = clip(f"the response broke off: {printable(redactor.text(recording.error))}", COLUMNS)
        lines.append(Line(broke, recording.seconds))
    if recording.aborted:
        lines.append(Line("the client closed the connection, as the exchange asks", recording.seconds))
    return (*lines, *_metrics_named(recording, reason, redactor))


def _headers_named(recording: Recording, reason: str, redactor: Redactor) -> list[Line]:
    words = set(re.findall(r"[a-z0-9-]+", reason.lower()))
    return [
        Line(clip(printable(f"{name}: {value}"), COLUMNS))
        for name, value in redactor.headers(recording.headers)
        if "-" in name and name in words
    ]


def _metrics_named(recording: Recording, reason: str, redactor: Redactor) -> list[Line]:
    if recording.metrics_before is None or recording.metrics_after is None:
        return []
    before = _samples(redactor.text(recording.metrics_before))
    after = _samples(redactor.text(recording.metrics_after))
    lines = []
    for family in dict.fromkeys(_METRIC.findall(reason)):
        mine = [sample for sample in after if sample.partition("{")[0] == family]
        lines += [f"{sample}  {before.get(sample, 'absent')} -> {after[sample]}" for sample in mine]
        lines += [] if mine else [f"{family}  absent from /metrics"]
    return [Line(clip(printable(line), COLUMNS)) for line in lines[:METRIC_LINES]]


def _samples(metrics: str) -> dict[str, str]:
    rows = (line.rpartition(" ") for line in metrics.split("\n") if line and not line.startswith("#"))
    return {sample: value for sample, _, value in rows}


def _body_lines(recording: Recording, reason: str, redactor: Redactor) -> list[Line]:
    text = redactor.text(recording.text)
    try:
        body = redactor.value(json.loads(text))
    except (ValueError, RecursionError):
        return _timed(wrap(printable(text[: 4 * COLUMNS]), COLUMNS)[:BODY_LINES], recording.seconds)
    pieces = wrap(outline(body), COLUMNS)
    if len(pieces) <= BODY_LINES:
        return _timed(pieces, recording.seconds)
    pieces[BODY_LINES - 1] = clip(f"{pieces[BODY_LINES - 1]} …", COLUMNS)
    words = set(re.findall(r"[A-Za-z_]\w+", reason))
    cut = " ".join(pieces[BODY_LINES:])
    named = [
        around(f"{path}  {outline(value)}", _needle(reason, str(value)), COLUMNS)
        for path, value in leaves(body)
        for name in re.findall(r"[A-Za-z_]\w*", path)[-1:]
        if name in words and f'"{name}"' in cut
    ]
    return _timed([*pieces[:BODY_LINES], *named[:BODY_FIELDS]], recording.seconds)


def _timed(texts: Iterable[str], at: float) -> list[Line]:
    return [Line(text, at if place == 0 else None) for place, text in enumerate(texts)]


def _pieces(reason: str) -> list[str]:
    """What the reason quotes."""
    return [next(group for group in match.groups() if group) for match in _QUOTED.finditer(reason)]


def _needle(reason: str, text: str) -> str:
    """The longest quoted piece of the reason that occurs in the text."""
    return max((piece for piece in _pieces(reason) if piece in text), key=len, default="")


def _stream_lines(recording: Recording, reason: str, redactor: Redactor) -> list[Line]:
    events, rest = read_stream(list(recording.chunks))
    texts = [redactor.text(event.data) for event in events]
    lines: list[Line] = []
    last = -1
    for place in sorted(_chosen(events, texts, reason)):
        if place - last > 1:
            lines.append(Line("", left_out=place - last - 1))
        before = _fields(texts[place - 1], redactor) if place else None
        shown = _event_text(events[place], texts[place], before or {}, redactor)
        lines.append(Line(around(shown, _needle(reason, shown), COLUMNS), events[place].at))
        last = place
    if rest:
        text = printable(redactor.text(rest.decode(errors="replace")))
        lines.append(Line(clip(f"not closed by a blank line: {text}", COLUMNS), recording.seconds))
    return lines


def _chosen(events: Sequence[Event], texts: Sequence[str], reason: str) -> set[int]:
    """Places of the events to show: all of a short stream, else first, named by the reason, last."""
    if len(events) <= HEAD + NAMED + TAIL:
        return set(range(len(events)))
    pieces = _pieces(reason)
    named = [int(n) for group in _NUMBERED.findall(reason) for n in group.split(",")]
    named += [n for n, event in enumerate(events) if event.faults]
    named += [n for n, text in enumerate(texts) if any(piece in text for piece in pieces)]
    ends = {*range(HEAD), *range(len(events) - TAIL, len(events))}
    inner = [n for n in dict.fromkeys(named) if n < len(events) and n not in ends]
    return ends | set(inner[:NAMED])


def _event_text(event: Event, text: str, before: dict[str, Any], redactor: Redactor) -> str:
    """The event as the fields in which it differs from the one before."""
    name = f"event {redactor.text(event.name)}  " if event.name else ""
    faults = f"  ({'; '.join(redactor.text(fault) for fault in event.faults)})" if event.faults else ""
    fields = _fields(text, redactor)
    if fields is None:
        return printable(name + text + faults)
    new = [(path, value) for path, value in fields.items() if path not in before or before[path] != value]
    shown = "  ".join(_pairs(sorted(new, key=_interest)))
    return printable(name) + (shown or "the same as the event before") + printable(faults)


def _interest(leaf: tuple[str, Any]) -> int:
    """Content before nulls and indexes, those before what every event of a stream repeats."""
    path, value = leaf
    if path in _BOILERPLATE:
        return 2
    return 1 if value is None or path.endswith(".index") else 0


def _pairs(found: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """`delta.tool_calls[0].id "c1"`, `.function.name "f"`: a leading dot stands for the same list item."""
    parent = ""
    for path, value in found:
        path = path.removeprefix("choices[0].")  # noqa: PLW2901 - the short name of the same thing
        head, bracket, tail = path.rpartition("]")
        item = head + bracket
        yield f"{tail if item and item == parent else path} {outline(value)}"
        parent = item


def _fields(text: str, redactor: Redactor) -> dict[str, Any] | None:
    """The leaves of an event's JSON object; None when it holds none."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return dict(leaves(redactor.value(body))) if isinstance(body, dict) else None
