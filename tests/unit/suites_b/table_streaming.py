"""Wrong streams."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.suites_b.breaks import (
    Break,
    answered,
    changed,
    each_chunk,
    edited,
    every,
    having,
    headed,
    one,
    raw,
    streamed,
)

ALL = every("streaming.")
CHAT, COMPLETION, STOP = "streaming.chat", "streaming.completion", "streaming.stop"
Events = list[tuple[float, str]]


def _choice(edit: Any) -> Any:
    return lambda chunk: [edit(choice) for choice in chunk.get("choices", [])]


def _last(edit: Any) -> Any:
    """The last chunk with choices, edited."""

    def rewrite(events: Events) -> Events:
        spoken = [place for place, (_, data) in enumerate(events) if '"index"' in data]
        at, data = events[spoken[-1]]
        chunk = json.loads(data)
        edit(chunk)
        return [*events[: spoken[-1]], (at, json.dumps(chunk)), *events[spoken[-1] + 1 :]]

    return rewrite


def _say(old: str, new: str) -> Any:
    return lambda events: [(at, data.replace(old, new)) for at, data in events]


def _error(events: Events) -> Events:
    return [
        *events[:3],
        (events[3][0], '{"error": {"message": "boom", "code": 500}}'),
        (events[3][0], "[DONE]"),
    ]


def _repeat_usage(events: Events) -> Events:
    usage = json.loads(events[-2][1])["usage"]
    early = json.loads(events[2][1]) | {"usage": usage}
    return [*events[:2], (events[2][0], json.dumps(early)), *events[3:]]


def _add_usage(events: Events) -> Events:
    end = json.loads(events[-2][1]) | {"choices": [], "usage": _usage(6)}
    return [*events[:-1], (events[-1][0], json.dumps(end)), events[-1]]


def _usage(tokens: int) -> dict[str, int]:
    return {"prompt_tokens": 6, "completion_tokens": tokens, "total_tokens": 6 + tokens}


def _with_usage(**fields: int) -> Any:
    return lambda chunk: chunk.get("usage") and chunk["usage"].update(fields)


def _lump(events: Events) -> Events:
    return [(events[-1][0], data) for _, data in events]


def _one_piece(events: Events) -> Events:
    pieces = [json.loads(data) for _, data in events if '"text"' in data]
    text = "".join(piece["choices"][0]["text"] for piece in pieces)
    pieces[-1]["choices"][0]["text"] = text
    return [(events[-1][0], json.dumps(pieces[-1])), *events[-2:]]


def _swap(events: Events) -> Events:
    """The first events a little later than they came, in one read."""
    return [(events[8][0] if place < 8 else at, data) for place, (at, data) in enumerate(events)]


def _mute(chunk: Any) -> None:
    for choice in chunk.get("choices", []):
        choice["text"] = ""


def _mute_second(chunk: Any) -> None:
    for choice in chunk.get("choices", []):
        if choice["index"] == 1:
            choice["delta"].pop("content", None)


def _bare(chunk: Any) -> None:
    for choice in chunk.get("choices", []):
        choice["logprobs"] = None


def _logprob(value: float | None) -> Any:
    def edit(chunk: Any) -> None:
        for choice in chunk.get("choices", []):
            if choice.get("logprobs"):
                choice["logprobs"]["token_logprobs"] = [value] * len(choice["logprobs"]["tokens"])

    return edit


def _flood(events: Events) -> Events:
    empty = json.loads(events[1][1])
    empty["choices"][0]["text"] = ""
    return [*events[:2], *[(events[1][0], json.dumps(empty))] * 14, *events[2:]]


STREAMING = [
    Break("refused", answered("streaming.two", 400), ("stream.answered",)),
    Break("marked as JSON", headed(ALL, content_type="application/json"), ("stream.framing.content-type",)),
    Break(
        "compressed",
        headed(ALL, content_type="text/event-stream", content_encoding="gzip"),
        ("stream.framing.uncompressed",),
    ),
    Break(
        "a line of its own", raw(one(CHAT), "data: [DONE]", "oops\ndata: [DONE]"), ("stream.framing.lines",)
    ),
    Break(
        "named events",
        raw(one(CHAT), 'data: {"id"', 'event: chunk\ndata: {"id"'),
        ("stream.framing.unnamed",),
    ),
    Break(
        "NaN",
        streamed("streaming.logprobs", _say('"token_logprobs":[-', '"token_logprobs":[NaN,-')),
        ("stream.framing.json",),
    ),
    Break("a list", streamed(CHAT, lambda e: [(e[0][0], "[]"), *e]), ("stream.framing.json",)),
    Break("nothing but the end", streamed("streaming.batch", lambda e: e[-1:]), ("stream.framing.filled",)),
    Break("no end mark", streamed(CHAT, lambda e: e[:-1]), ("stream.framing.done",)),
    Break("two end marks", streamed(CHAT, lambda e: [*e, e[-1]]), ("stream.framing.done",)),
    Break(
        "a chunk after the end",
        streamed(CHAT, lambda e: [*e, e[-2]]),
        ("stream.framing.done-last", "stream.usage.only-once"),
    ),
    Break(
        "an open last event",
        raw(one(CHAT), "data: [DONE]\n\n", "data: [DONE]\n"),
        ("stream.framing.closed", "stream.framing.done"),
    ),
    Break(
        "a broken connection", having(CHAT, error="RemoteProtocolError: peer closed"), ("stream.end.clean",)
    ),
    Break(
        "left open",
        changed(one(CHAT), lambda r: r.with_response(seconds=r.seconds + 9)),
        ("stream.end.soon",),
    ),
    Break(
        "an error in the middle",
        streamed("streaming.chat-bare", _error),
        ("stream.no-error", "stream.finish.once"),
    ),
    Break("chunks without object", each_chunk(ALL, lambda c: c.pop("object")), ("stream.chunk.schema",)),
    Break(
        "ids that are text",
        each_chunk("streaming.completion-bare", _choice(lambda c: c.update({"token_ids": "x"}))),
        ("stream.chunk.schema-fully",),
    ),
    Break(
        "an unknown field", each_chunk(ALL, lambda c: c.update(colour="red")), ("stream.chunk.known-fields",)
    ),
    Break(
        "no created", each_chunk("streaming.chat-bare", lambda c: c.pop("created")), ("stream.chunk.schema",)
    ),
    Break(
        "another id each",
        each_chunk(CHAT, lambda c: c.update(id=f"chatcmpl-{id(c)}{c}"[:60])),
        ("stream.chunk.one-id",),
    ),
    Break(
        "another time each",
        each_chunk(CHAT, lambda c: c.update(created=c["created"] + len(str(c)))),
        ("stream.chunk.one-created",),
    ),
    Break(
        "milliseconds",
        each_chunk(ALL, lambda c: c.update(created=c["created"] * 1000)),
        ("stream.chunk.dated",),
    ),
    Break(
        "a stop that is not named",
        each_chunk(STOP, _choice(lambda c: c.update(stop_reason=None))),
        ("stream.stop.named",),
    ),
    Break(
        "more cached than there is",
        each_chunk(
            CHAT, lambda c: c.get("usage") and c["usage"].update(prompt_tokens_details={"cached_tokens": 999})
        ),
        ("stream.usage.cached-part",),
    ),
    Break("another model", each_chunk(CHAT, lambda c: c.update(model="gpt-4")), ("stream.chunk.model",)),
    Break(
        "all choices are one",
        streamed("streaming.batch", _say('"index":1', '"index":0')),
        ("stream.choices.indices", "stream.finish.once"),
    ),
    Break("a mute choice", each_chunk("streaming.two", _mute_second), ("stream.choices.all-speak",)),
    Break("no role", raw(every("streaming.chat-bare"), '"role":"assistant",', ""), ("stream.role.first",)),
    Break(
        "another role",
        raw(every("streaming.chat-bare"), '"role":"assistant"', '"role":"tool"'),
        ("stream.role.first",),
    ),
    Break(
        "the role each time",
        each_chunk("streaming.two", _choice(lambda c: c["delta"].update(role="assistant"))),
        ("stream.role.once",),
    ),
    Break(
        "never finished",
        each_chunk("streaming.two", _choice(lambda c: c.update(finish_reason=None))),
        ("stream.finish.once",),
    ),
    Break(
        "finished twice",
        streamed("streaming.continuous", lambda e: [*e[:-2], e[-3], *e[-2:]]),
        ("stream.finish.once",),
    ),
    Break(
        "text after the finish",
        streamed("streaming.continuous", lambda e: [*e[:-2], e[0], *e[-2:]]),
        ("stream.finish.last", "stream.usage.continuous-grows"),
    ),
    Break(
        "no finish key",
        each_chunk("streaming.chat-bare", _choice(lambda c: c["finish_reason"] or c.pop("finish_reason"))),
        ("stream.finish.key", "stream.chunk.schema"),
    ),
    Break(
        "an empty finish",
        each_chunk(
            "streaming.chat-bare", _choice(lambda c: c.update(finish_reason=c["finish_reason"] or ""))
        ),
        ("stream.finish.known", "stream.chunk.schema"),
    ),
    Break(
        "an unknown finish",
        streamed("streaming.chat-bare", _last(_choice(lambda c: c.update(finish_reason="eos")))),
        ("stream.finish.known", "stream.chunk.schema"),
    ),
    Break(
        "stops for length",
        streamed("streaming.one-token", _say('"length"', '"stop"')),
        ("stream.finish.length",),
    ),
    Break(
        "empty tool calls",
        each_chunk("streaming.chat-bare", _choice(lambda c: c["delta"].update(tool_calls=[]))),
        ("stream.no-empty-tool-calls",),
    ),
    Break(
        "a flood of nothing",
        streamed(COMPLETION, _flood),
        ("stream.no-empty-flood", "stream.pace.few-chunks"),
    ),
    Break("another text", streamed(CHAT, _say('"content":"', '"content":"x')), ("stream.parity.chat-text",)),
    Break(
        "a lost piece", streamed(COMPLETION, lambda e: [*e[:2], *e[3:]]), ("stream.parity.completion-text",)
    ),
    Break("another reason", streamed(CHAT, _say('"length"', '"stop"')), ("stream.parity.finish",)),
    Break(
        "another prompt",
        each_chunk(COMPLETION, _with_usage(prompt_tokens=7, total_tokens=19)),
        ("stream.parity.prompt-tokens",),
    ),
    Break(
        "one token less",
        each_chunk(COMPLETION, _with_usage(completion_tokens=11, total_tokens=17)),
        ("stream.parity.completion-tokens",),
    ),
    Break("a total that is none", each_chunk(COMPLETION, _with_usage(total_tokens=5)), ("stream.usage.sum",)),
    Break("no usage", streamed(CHAT, lambda e: [*e[:-2], e[-1]]), ("stream.usage.final-chunk",)),
    Break("usage all along", streamed(CHAT, _repeat_usage), ("stream.usage.only-once",)),
    Break("usage unasked", streamed("streaming.completion-bare", _add_usage), ("stream.usage.not-asked",)),
    Break(
        "usage for no options",
        streamed("streaming.options-empty", _add_usage),
        ("stream.usage.options-empty",),
    ),
    Break(
        "options accepted",
        answered("streaming.options-without-stream", 200, "{}"),
        ("stream.usage.options-without-stream",),
    ),
    Break(
        "one choice counted",
        each_chunk(
            "streaming.two",
            lambda c: (
                c.get("usage")
                and c["usage"].update(completion_tokens=6, total_tokens=c["usage"]["prompt_tokens"] + 6)
            ),
        ),
        ("stream.usage.all-choices",),
    ),
    Break(
        "no running usage",
        each_chunk("streaming.continuous", lambda c: c["choices"] and c.pop("usage")),
        ("stream.usage.continuous",),
    ),
    Break(
        "running usage falls",
        streamed("streaming.continuous", lambda e: [e[0], e[2], e[1], *e[3:]]),
        ("stream.usage.continuous-grows",),
    ),
    Break(
        "split characters",
        streamed("streaming.letters", _say("京", "\ufffd\ufffd")),
        ("stream.text.unicode",),
    ),
    Break(
        "the stop string comes out",
        streamed(STOP, _say('"six, "', '"six, seven"')),
        ("stream.stop.honoured", "stream.stop.no-leak"),
    ),
    Break(
        "half a stop string comes out",
        streamed(STOP, _say('"six, "', '"six, sev"')),
        ("stream.stop.no-leak",),
    ),
    Break(
        "text without log probabilities",
        each_chunk("streaming.chat-logprobs", _bare),
        ("stream.logprobs.ride-along",),
    ),
    Break(
        "a log probability is lost",
        streamed("streaming.logprobs", lambda e: [e[0], *e[2:]]),
        ("stream.logprobs.count",),
    ),
    Break(
        "a probability above one",
        each_chunk("streaming.logprobs", _logprob(0.5)),
        ("stream.logprobs.possible", "stream.logprobs.not-all-alike"),
    ),
    Break(
        "one value over and over",
        each_chunk("streaming.logprobs", _logprob(-1.5)),
        ("stream.logprobs.not-all-alike",),
    ),
    Break(
        "nothing after a long prompt",
        each_chunk("streaming.long-prompt", _mute),
        ("stream.text.long-prompt",),
    ),
    Break(
        "two pieces for a token",
        streamed("streaming.one-token", lambda e: [e[0], e[1], e[1], *e[1:]]),
        ("stream.text.single-token", "stream.finish.once"),
    ),
    Break("one piece", streamed(COMPLETION, _one_piece), ("stream.pace.pieces",)),
    Break(
        "one lump",
        streamed(lambda key: key.startswith("streaming."), _lump),
        ("stream.pace.over-time", "stream.pace.no-bursts"),
    ),
    Break("a burst", streamed(COMPLETION, _swap), ("stream.pace.no-bursts",)),
    Break(
        "a stall",
        changed(
            one(COMPLETION),
            lambda r: r.with_response(
                chunks=(r.chunks[0], *((at + 20, data) for at, data in r.chunks[1:])), seconds=r.seconds + 20
            ),
        ),
        ("stream.pace.no-stall",),
    ),
    Break(
        "usage not kept apart",
        edited("streaming.completion-again", lambda b: b["usage"].update(completion_tokens=13)),
        ("stream.parity.completion-tokens",),
    ),
]
