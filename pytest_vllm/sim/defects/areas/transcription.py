"""Defects of servers that write recordings down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.choose import failure
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import every, only

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange, Reply

ON: dict[str, Any] = {"profile": "sim-transcribe"}
HEARD, ENGLISH = ("/v1/audio/transcriptions",), ("/v1/audio/translations",)
#: Seconds that a model hears at once.
CHUNK = 30
Json = dict[str, Any]


def _in_answers(name: str, summary: str, change: Callable[[Json], object], **facts: Any) -> None:
    """Whole answers with a text are changed in place."""

    def changed(body: Any, exchange: Exchange) -> Any:
        del exchange
        if isinstance(body, dict) and "text" in body:
            change(body)
        return body

    add(name, summary, {"json": only(HEARD, changed)}, **ON, **facts)


def _heard_on(body: Any, exchange: Exchange) -> Any:
    del exchange
    if isinstance(body, dict) and "text" in body:
        body["text"] = f"{body['text']} Thank you."
    return body


def _from_zero(body: Json) -> None:
    parts = body.get("segments") or []
    for part in parts[1:]:
        part["start"], part["end"] = 0.0, part["end"] - part["start"]


def _first_chunk(body: Json) -> None:
    if "duration" in body:
        body["duration"] = min(float(body["duration"]), CHUNK)


def _whole_chunks(body: Json) -> None:
    if body.get("usage"):
        body["usage"]["seconds"] = -(-body["usage"]["seconds"] // CHUNK) * CHUNK


def _last_segment_lost(body: Json) -> None:
    body["segments"] = (body.get("segments") or [])[:-1] or body.get("segments")
    parts = body["segments"] or []
    if len(parts) == 1 and parts[0]["text"].strip() == body["text"].strip():
        parts[0]["text"] = parts[0]["text"].rpartition(" ")[0]


def _word_again(body: Json) -> None:
    parts = body.get("segments") or []
    if parts:
        parts[-1]["text"] = f"{parts[-1]['text']} {parts[-1]['text'].split()[-1]}"


add(
    "transcription.goes-on",
    "Every other time words are written down that nobody said.",
    # what is counted over a run cannot be put into recordings one by one
    {"json": only(HEARD, every(2, _heard_on)), "route": lambda reply, _request: reply},
    catches=["transcription.repeated"],
    **ON,
)
_in_answers(
    "transcription.times-from-zero",
    "The times of each piece of a recording begin at zero again.",
    _from_zero,
    faults=["vllm-project/vllm#41131"],
    catches=["transcription.times.order"],
)
_in_answers(
    "transcription.duration-of-piece",
    "The duration that is told is at most that of one piece.",
    _first_chunk,
    catches=["transcription.times.duration"],
)
_in_answers(
    "transcription.billed-by-piece",
    "The seconds that are billed are those of whole pieces.",
    _whole_chunks,
    catches=["transcription.billed"],
)
_in_answers(
    "transcription.segments-lack-end",
    "The last words are missing from the segments.",
    _last_segment_lost,
    catches=["transcription.times.text"],
)
_in_answers(
    "transcription.word-again",
    "A word at the end of a piece comes twice in the segments.",
    _word_again,
    catches=["transcription.times.text"],
)
_in_answers(
    "transcription.text-missing",
    "An answer has its words under another name.",
    lambda body: body.update(transcript=body.pop("text")),
    catches=["transcription.text"],
)


@defect("transcription.stream-cut", on="events", paths=HEARD, catches=["transcription.stream.same"], **ON)
def stream_cut(events: list[Event], exchange: Exchange) -> list[Event]:
    """The last words of a stream are missing."""
    del exchange
    for event in events:
        rows = event.data.get("choices") or [] if isinstance(event.data, dict) else []
        for row in rows:
            if row.get("finish_reason") or len(row["delta"].get("content") or "") > 3:
                row["delta"]["content"] = (row["delta"].get("content") or "")[:2]
    return events


@defect("transcription.stream-endless", on="events", paths=HEARD, catches=["transcription.stream.ends"], **ON)
def stream_endless(events: list[Event], exchange: Exchange) -> list[Event]:
    """A stream never says why it ends."""
    del exchange
    for event in events:
        for row in event.data.get("choices") or [] if isinstance(event.data, dict) else []:
            row.pop("finish_reason", None)
    return events


def _breaks(found: Callable[[Reply], bool]) -> Callable[[Reply, Exchange], Reply]:
    def rewritten(reply: Reply, exchange: Exchange) -> Reply:
        del exchange
        if found(reply):
            reply.status, reply.body = 500, failure("Error opening the recording: format not recognised")
        return reply

    return rewritten


add(
    "transcription.long-breaks",
    "Recordings longer than a piece end in a server error.",
    {"reply": only(HEARD, _breaks(lambda reply: b'"seconds":35' in reply.body.replace(b" ", b"")))},
    catches=["transcription.answered"],
    **ON,
)
add(
    "transcription.refusals-break",
    "Languages and formats that nobody knows end in a server error.",
    {"reply": only(HEARD, _breaks(lambda reply: 400 <= reply.status < 500))},
    catches=["transcription.refused"],
    **ON,
)
add(
    "transcription.english-breaks",
    "A recording that is to be translated ends in a server error.",
    {"reply": only(ENGLISH, _breaks(lambda reply: reply.status == 200))},
    catches=["transcription.times.served"],
    **ON,
)
