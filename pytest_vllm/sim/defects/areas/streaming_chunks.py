"""Defects of the chunks of a stream: shape, identity, roles, finish reasons, choices."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.edit import choices, content, set_text
from pytest_vllm.sim.defects.make import spoil_events
from pytest_vllm.sim.defects.registry import defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

BOTH = (CHAT, COMPLETIONS)

spoil_events(
    "streaming.object-missing",
    "Chunks do not say what object they are.",
    BOTH,
    "object",
    catches=["stream.chunk.schema"],
)
spoil_events(
    "streaming.object-whole",
    "Chunks of a chat say that they are whole answers.",
    (CHAT,),
    "object",
    "chat.completion",
    catches=["stream.chunk.schema"],
)
spoil_events(
    "streaming.created-text",
    "The time of a chunk is a text.",
    BOTH,
    "created",
    str,
    catches=["stream.chunk.schema"],
)
spoil_events(
    "streaming.index-missing",
    "The choices of a completion's chunks have no index.",
    (COMPLETIONS,),
    "choices.*.index",
    catches=["stream.chunk.schema"],
)
spoil_events(
    "streaming.another-model",
    "Chunks name a model that is not served.",
    BOTH,
    "model",
    "gpt-4",
    catches=["stream.chunk.model"],
)
spoil_events(
    "streaming.one-id-for-all",
    "All streams carry the same id.",
    BOTH,
    "id",
    "cmpl-0",
    catches=["stream.isolation.own-id"],
)
spoil_events(
    "streaming.finish-never",
    "No chunk of a stream carries a finish reason.",
    BOTH,
    "choices.*.finish_reason",
    None,
    faults=["STREAM-002", "STREAM-004"],
    catches=["stream.finish.once"],
)
spoil_events(
    "streaming.finish-empty-text",
    "Until the last chunk the finish reason is an empty text.",
    BOTH,
    "choices.*.finish_reason",
    lambda reason: reason or "",
    faults=["STREAM-023"],
    catches=["stream.finish.known"],
)
spoil_events(
    "streaming.finish-unknown",
    "Streams finish with a word that OpenAI does not know.",
    BOTH,
    "choices.*.finish_reason",
    lambda reason: reason and "eos_token",
    catches=["stream.finish.known"],
)
spoil_events(
    "streaming.finish-stop-for-length",
    "Streams that reach their token limit say that they stopped.",
    BOTH,
    "choices.*.finish_reason",
    lambda reason: "stop" if reason == "length" else reason,
    catches=["stream.finish.length"],
)
spoil_events(
    "streaming.all-choices-are-first",
    "Every choice of a stream comes under the index 0.",
    (COMPLETIONS,),
    "choices.*.index",
    0,
    catches=["stream.choices.indices"],
)


def _other(events: list[Event], key: str, values: Any) -> list[Event]:
    for event in events:
        if isinstance(event.data, dict) and key in event.data:
            event.data[key] = next(values)
    return events


@defect("streaming.id-changes", on="events", paths=BOTH, catches=["stream.chunk.one-id"])
def id_changes(events: list[Event], exchange: Exchange) -> list[Event]:
    """Every chunk has an id of its own."""
    del exchange
    first = next(
        (event.data["id"] for event in events if isinstance(event.data, dict) and "id" in event.data), ""
    )
    return _other(events, "id", (f"{first}-{number}" for number in count()))


@defect("streaming.created-runs", on="events", paths=BOTH, catches=["stream.chunk.one-created"])
def created_runs(events: list[Event], exchange: Exchange) -> list[Event]:
    """Every chunk tells the time at which it was made."""
    del exchange
    return _other(events, "created", count(1_700_000_000))


@defect(
    "streaming.role-in-every-chunk",
    on="events",
    paths=(CHAT,),
    faults=["STREAM-017"],
    catches=["stream.role.once"],
)
def role_in_every_chunk(events: list[Event], exchange: Exchange) -> list[Event]:
    """Every delta repeats the role."""
    del exchange
    for _, choice in choices(events):
        if "delta" in choice:
            choice["delta"] = {"role": "assistant", **choice["delta"]}
    return events


@defect("streaming.role-never", on="events", paths=(CHAT,), catches=["stream.role.first"])
def role_never(events: list[Event], exchange: Exchange) -> list[Event]:
    """No delta says who speaks."""
    del exchange
    for _, choice in choices(events):
        choice.get("delta", {}).pop("role", None)
    return events


@defect(
    "streaming.finish-twice",
    on="events",
    paths=BOTH,
    faults=["STREAM-024"],
    catches=["stream.finish.once"],
)
def finish_twice(events: list[Event], exchange: Exchange) -> list[Event]:
    """The chunk that finishes a choice comes twice."""
    del exchange
    made: list[Event] = []
    for event in events:
        made += [event, event] if event.finish else [event]
    return made


@defect("streaming.text-after-finish", on="events", paths=BOTH, catches=["stream.finish.last"])
def text_after_finish(events: list[Event], exchange: Exchange) -> list[Event]:
    """The finish reason comes one chunk too early."""
    del exchange
    spoken = [choice for _, choice in choices(events) if choice.get("index") == 0]
    if len(spoken) > 1 and spoken[-1].get("finish_reason"):
        reason = spoken[-1]["finish_reason"]
        spoken[-2]["finish_reason"], spoken[-1]["finish_reason"] = reason, None
    return events


@defect("streaming.finish-key-missing", on="events", paths=BOTH, catches=["stream.finish.key"])
def finish_key_missing(events: list[Event], exchange: Exchange) -> list[Event]:
    """Chunks before the last leave the finish reason out."""
    del exchange
    for _, choice in choices(events):
        if not choice.get("finish_reason"):
            choice.pop("finish_reason", None)
    return events


@defect(
    "streaming.second-choice-mute", on="events", paths=(COMPLETIONS,), catches=["stream.choices.all-speak"]
)
def second_choice_mute(events: list[Event], exchange: Exchange) -> list[Event]:
    """Of several choices only the first one's text is sent."""
    del exchange
    for _, choice in content(events):
        if choice.get("index"):
            set_text(choice, "")
    return events


@defect("streaming.empty-tool-calls", on="events", paths=(CHAT,), catches=["stream.no-empty-tool-calls"])
def empty_tool_calls(events: list[Event], exchange: Exchange) -> list[Event]:
    """Every delta carries an empty list of tool calls."""
    del exchange
    for _, choice in choices(events):
        choice.get("delta", {}).setdefault("tool_calls", [])
    return events


@defect(
    "streaming.unknown-fields",
    on="events",
    paths=BOTH,
    catches=["stream.chunk.schema", "stream.chunk.known-fields", "stream.chunk.schema-fully"],
)
def unknown_fields(events: list[Event], exchange: Exchange) -> list[Event]:
    """Chunks are those of another product: fields of its own, OpenAI's left out."""
    del exchange
    for event in events:
        if isinstance(event.data, dict) and "choices" in event.data:
            del event.data["object"]
            event.data["generated_by"] = "another engine"
            for choice in event.data["choices"]:
                choice |= {"token_ids": "none"}
                choice["logprobs"] = choice.get("logprobs") or ""
    return events


@defect(
    "streaming.token-repeated",
    on="events",
    paths=BOTH,
    catches=["stream.text.single-token", "stream.parity.completion-text"],
)
def token_repeated(events: list[Event], exchange: Exchange) -> list[Event]:
    """The first token's piece is sent twice."""
    del exchange
    for event, choice in list(content(events))[:1]:
        copy = type(event)({**event.data, "choices": [{**choice, "finish_reason": None}]})
        copy.choice, copy.at, copy.when = event.choice, event.at, event.when
        events.insert(events.index(event), copy)
    return events


spoil_events(
    "streaming.created-in-milliseconds",
    "Chunks are dated in milliseconds.",
    BOTH,
    "created",
    lambda seconds: seconds * 1000,
    catches=["stream.chunk.dated"],
)
spoil_events(
    "streaming.stop-unnamed",
    "A stream does not tell which string stopped it.",
    (COMPLETIONS,),
    "choices.*.stop_reason",
    None,
    catches=["stream.stop.named"],
)
