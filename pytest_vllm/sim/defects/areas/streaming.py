"""Defects of event streams: what they hold, and how their text is cut into pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.sim.defects.edit import choices, content, set_text, text_of
from pytest_vllm.sim.defects.registry import defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

BOTH = (CHAT, COMPLETIONS)
#: A prompt of so many characters has more than 512 tokens.
LONG = 1200


@defect(
    "streaming.multi-byte-cut",
    on="events",
    paths=BOTH,
    faults=["STREAM-010", "STREAM-011"],
    catches=["stream.text.unicode"],
)
def multi_byte_cut(events: list[Event], exchange: Exchange) -> list[Event]:
    """Characters that span tokens arrive as replacement characters."""
    del exchange
    for _, choice in content(events):
        text = text_of(choice)
        set_text(choice, "".join(char if char.isascii() else "\ufffd" for char in text))
    return events


@defect("streaming.first-piece-lost", on="events", paths=BOTH, catches=["stream.parity.completion-text"])
def first_piece_lost(events: list[Event], exchange: Exchange) -> list[Event]:
    """The first piece of the text never arrives."""
    del exchange
    for _, choice in list(content(events))[:1]:
        set_text(choice, "")
    return events


@defect(
    "streaming.last-piece-lost",
    on="events",
    paths=(COMPLETIONS,),
    faults=["STREAM-003", "STREAM-026"],
    catches=["stream.parity.completion-text"],
)
def last_piece_lost(events: list[Event], exchange: Exchange) -> list[Event]:
    """The text of the chunk that carries the finish reason is dropped."""
    del exchange
    for _, choice in list(content(events))[-1:]:
        set_text(choice, "")
    return events


@defect("streaming.pieces-swapped", on="events", paths=BOTH, catches=["stream.parity.completion-text"])
def pieces_swapped(events: list[Event], exchange: Exchange) -> list[Event]:
    """The second and the third piece of a text change places."""
    del exchange
    pieces = [choice for _, choice in content(events)][1:3]
    if len(pieces) > 1:
        first, second = map(text_of, pieces)
        set_text(pieces[0], second)
        set_text(pieces[1], first)
    return events


@defect(
    "streaming.pieces-pile-up", on="events", paths=(COMPLETIONS,), catches=["stream.parity.completion-text"]
)
def pieces_pile_up(events: list[Event], exchange: Exchange) -> list[Event]:
    """Each piece of a completion repeats all text before it."""
    del exchange
    said: dict[int, str] = {}
    for _, choice in content(events):
        index = choice.get("index", 0)
        said[index] = said.get(index, "") + text_of(choice)
        set_text(choice, said[index])
    return events


@defect(
    "streaming.long-prompt-mute",
    on="events",
    paths=BOTH,
    faults=["STREAM-014"],
    versions="0.6.0 to 0.6.3.post1, with chunked prefill",
    catches=["stream.text.long-prompt"],
)
def long_prompt_mute(events: list[Event], exchange: Exchange) -> list[Event]:
    """A stream after a prompt of more than 512 tokens holds no text."""
    if len(str(exchange.body)) > LONG:
        for _, choice in content(events):
            set_text(choice, "")
    return events


@defect(
    "streaming.stop-string-leaks",
    on="events",
    paths=BOTH,
    faults=["STREAM-015"],
    catches=["stream.stop.honoured", "stream.stop.no-leak"],
)
def stop_leaks(events: list[Event], exchange: Exchange) -> list[Event]:
    """The stop string itself comes out before the stream ends."""
    stop = (exchange.body or {}).get("stop") or []
    stop = [stop] if isinstance(stop, str) else stop
    if stop and any(choice.get("finish_reason") == "stop" for _, choice in choices(events)):
        for _, choice in list(content(events))[-1:]:
            set_text(choice, text_of(choice) + stop[0])
    return events


@defect("streaming.stop-half-leaks", on="events", paths=BOTH, catches=["stream.stop.no-leak"])
def stop_half_leaks(events: list[Event], exchange: Exchange) -> list[Event]:
    """The beginning of a stop string comes out: it is not held back until it is sure."""
    stop = (exchange.body or {}).get("stop") or []
    stop = [stop] if isinstance(stop, str) else stop
    if stop and any(choice.get("finish_reason") == "stop" for _, choice in choices(events)):
        for _, choice in list(content(events))[-1:]:
            set_text(choice, text_of(choice) + stop[0][:2])
    return events


@defect(
    "streaming.mixed-up",
    on="events",
    paths=(COMPLETIONS,),
    faults=["CONC-003", "CONC-004", "CONC-005"],
    catches=["stream.isolation.own-word", "stream.isolation.no-other-word"],
)
def mixed_up(events: list[Event], exchange: Exchange) -> list[Event]:
    """A stream holds the words of another one that runs beside it."""
    if (exchange.body or {}).get("echo"):
        for _, choice in list(content(events))[:1]:
            set_text(choice, text_of(choice).replace("ibex-7741", "tapir-8830"))
    return events


@defect(
    "streaming.constraint-of-another",
    on="events",
    paths=(COMPLETIONS,),
    catches=["stream.isolation.own-constraint"],
)
def constraint_of_another(events: list[Event], exchange: Exchange) -> list[Event]:
    """In a batch, allowed tokens are those of a neighbour."""
    if (exchange.body or {}).get("allowed_token_ids"):
        for _, choice in choices(events):
            given = choice.get("logprobs") or {}
            given["tokens"] = ["token_id:1100" for _ in given.get("tokens") or []]
    return events
