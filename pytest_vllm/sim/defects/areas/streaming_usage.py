"""Defects of the usage in streams, and of the log probabilities that ride along."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.edit import choices
from pytest_vllm.sim.defects.make import ignores, spoil_events, without_events
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, only

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

BOTH = (CHAT, COMPLETIONS)
USAGE = {"prompt_tokens": 6, "completion_tokens": 6, "total_tokens": 12}


def _asked(exchange: Exchange) -> bool:
    return bool(((exchange.body or {}).get("stream_options") or {}).get("include_usage"))


def _final(event: Event) -> bool:
    return isinstance(event.data, dict) and event.data.get("choices") == [] and bool(event.data.get("usage"))


without_events(
    "streaming.usage-never",
    "Usage is asked for and never sent.",
    BOTH,
    _final,
    faults=["STREAM-008", "STREAM-009"],
    catches=["stream.usage.final-chunk"],
)
spoil_events(
    "streaming.usage-sum-wrong",
    "The total of a stream's usage leaves the prompt out.",
    BOTH,
    "usage",
    lambda usage: usage and {**usage, "total_tokens": usage["completion_tokens"]},
    catches=["stream.usage.sum"],
)
spoil_events(
    "streaming.usage-one-token-less",
    "The usage of a chat stream counts one token less than it generated.",
    (CHAT,),
    "usage",
    lambda usage: usage and _counted(usage, usage["completion_tokens"] - 1),
    catches=["stream.parity.completion-tokens"],
)
spoil_events(
    "streaming.usage-prompt-wrong",
    "The usage of a completion stream counts the prompt without its first token.",
    (COMPLETIONS,),
    "usage",
    lambda usage: (
        usage
        and {
            **usage,
            "prompt_tokens": usage["prompt_tokens"] - 1,
            "total_tokens": usage["total_tokens"] - 1,
        }
    ),
    catches=["stream.parity.prompt-tokens"],
)
ignores(
    "streaming.continuous-usage-ignored",
    "Stream options are taken with and without a stream, and usage is never sent.",
    ["stream_options"],
    BOTH,
    catches=["stream.usage.final-chunk", "stream.usage.options-without-stream", "stream.usage.continuous"],
)


def _counted(usage: dict[str, Any], tokens: int) -> dict[str, Any]:
    return {**usage, "completion_tokens": tokens, "total_tokens": usage["prompt_tokens"] + tokens}


def _added(events: list[Event], usage: dict[str, Any]) -> list[Event]:
    chunks = [event for event in events if isinstance(event.data, dict) and event.data.get("choices")]
    if not chunks:
        return events
    last = copy.deepcopy(chunks[-1])
    last.data |= {"choices": [], "usage": usage}
    at = next((place for place, event in enumerate(events) if event.is_done), len(events))
    return [*events[:at], last, *events[at:]]


@defect("streaming.usage-unasked", on="events", paths=BOTH, catches=["stream.usage.not-asked"])
def usage_unasked(events: list[Event], exchange: Exchange) -> list[Event]:
    """Usage is sent to those who did not ask for it."""
    return events if _asked(exchange) else _added(events, dict(USAGE))


@defect(
    "streaming.usage-for-empty-options",
    on="events",
    paths=BOTH,
    faults=["STREAM-007"],
    catches=["stream.usage.options-empty"],
)
def usage_for_empty_options(events: list[Event], exchange: Exchange) -> list[Event]:
    """Empty stream options are read as a wish for usage."""
    empty = (exchange.body or {}).get("stream_options") == {}
    return _added(events, dict(USAGE)) if empty else events


@defect(
    "streaming.usage-in-every-chunk",
    on="events",
    paths=BOTH,
    faults=["STREAM-006"],
    versions="0.5.4",
    catches=["stream.usage.only-once"],
)
def usage_in_every_chunk(events: list[Event], exchange: Exchange) -> list[Event]:
    """A running count comes in every chunk although only the last was to carry it."""
    final = next((event.data["usage"] for event in events if _final(event)), None)
    if final and _asked(exchange):
        for event in events:
            if isinstance(event.data, dict) and event.data.get("choices"):
                event.data["usage"] = dict(final)
    return events


@defect(
    "streaming.usage-first-choice-only",
    on="events",
    paths=(COMPLETIONS,),
    catches=["stream.usage.all-choices"],
)
def usage_first_choice_only(events: list[Event], exchange: Exchange) -> list[Event]:
    """The usage of a stream counts the tokens of its first choice only."""
    del exchange
    many = len({choice.get("index") for _, choice in choices(events)})
    for event in events:
        if many > 1 and isinstance(event.data, dict) and event.data.get("usage"):
            event.data["usage"] = _counted(
                event.data["usage"], event.data["usage"]["completion_tokens"] // many
            )
    return events


@defect(
    "streaming.continuous-usage-starts-over",
    on="events",
    paths=BOTH,
    catches=["stream.usage.continuous-grows", "stream.usage.final-chunk"],
)
def continuous_starts_over(events: list[Event], exchange: Exchange) -> list[Event]:
    """Continuous usage is counted per chunk, and the last chunk keeps its choices."""
    del exchange
    for position, event in enumerate(events):
        if isinstance(event.data, dict) and event.data.get("usage"):
            if event.data.get("choices"):
                event.data["usage"] = _counted(event.data["usage"], 1 if position else 2)
            else:
                event.data["choices"] = [{"index": 0, "delta": {}, "text": "", "finish_reason": None}]
    return events


def _numbers(name: str, summary: str, spoiled: Callable[[list[Any]], list[Any]], **facts: Any) -> None:
    """A defect of the log probabilities that come with the pieces of a stream."""

    def rewritten(events: list[Event], exchange: Exchange) -> list[Event]:
        del exchange
        for _, choice in choices(events):
            given = choice.get("logprobs") or {}
            if given.get("token_logprobs"):
                given["token_logprobs"] = spoiled(given["token_logprobs"])
            entries = given.get("content") or []
            for entry, number in zip(entries, spoiled([e["logprob"] for e in entries]), strict=False):
                entry["logprob"] = number
        return events

    add(name, summary, {"events": only(BOTH, rewritten)}, **facts)


_numbers(
    "streaming.logprobs-all-alike",
    "Every log probability of a stream is the same number.",
    lambda values: [-1.5 for _ in values],
    catches=["stream.logprobs.not-all-alike"],
)
_numbers(
    "streaming.logprobs-above-zero",
    "Log probabilities of a stream are raw scores, above zero.",
    lambda values: [value if value is None else 0.25 - value for value in values],
    catches=["stream.logprobs.possible"],
)
_numbers(
    "streaming.logprobs-nan",
    "Log probabilities of a stream are NaN, which is no JSON.",
    lambda values: [float("nan") for _ in values],
    faults=["CONC-009"],
    catches=["stream.framing.json"],
)


@defect("streaming.logprobs-lost", on="events", paths=BOTH, catches=["stream.logprobs.ride-along"])
def logprobs_lost(events: list[Event], exchange: Exchange) -> list[Event]:
    """Streams come without the log probabilities that were asked for."""
    del exchange
    for _, choice in choices(events):
        if choice.get("logprobs"):
            choice["logprobs"] = None
    return events


@defect("streaming.logprobs-doubled", on="events", paths=(COMPLETIONS,), catches=["stream.logprobs.count"])
def logprobs_doubled(events: list[Event], exchange: Exchange) -> list[Event]:
    """Each log probability of a completion stream comes twice."""
    del exchange
    for _, choice in choices(events):
        given = choice.get("logprobs") or {}
        for name, values in given.items():
            given[name] = values * 2 if isinstance(values, list) else values
    return events


spoil_events(
    "streaming.cached-negative",
    "A stream tells a negative number of cached tokens.",
    (CHAT, COMPLETIONS),
    "usage.prompt_tokens_details.cached_tokens",
    -1,
    catches=["stream.usage.cached-part"],
)
