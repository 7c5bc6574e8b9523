"""What stands between the engine and the client holds nothing back: by the engine's own times.

Each exchange around which the metrics are scraped has the server to itself. The engine counts how long it had
the request; what the client waited beyond that went by in front of it: in the API process, in a proxy.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

from pytest_vllm import (
    MUST,
    PERFORMANCE,
    Metrics,
    Recording,
    Recordings,
    Server,
    check,
    listed,
    need,
    observe,
    only_if,
)

from .speeds import DECODE, FIRST, NEEDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

GENERATING = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages")
WHOLE, QUEUED = "vllm:e2e_request_latency_seconds", "vllm:request_queue_time_seconds"
LIMITS = "fault:vllm-project/vllm/issues/31030"
PROXY = "fault:dstackai/dstack/issues/4269"
ALL = ["performance.", "*"]
#: Seconds that nothing in front of an idle server takes, and how often that may happen by chance.
HELD, ONCE = 0.8, 1
COMPLETIONS = "/v1/completions"
#: Bytes of an answer that take a while to write, and fields that make one so long.
BIG, LONG = 100_000, ("prompt_logprobs", "echo")
#: Characters of a short request, and what a server may have to prepare for: grammars, adapters, pictures.
SHORT = 2000
PREPARED = (
    "response_format",
    "structured_outputs",
    "prompt_logprobs",
    "echo",
    "use_beam_search",
    "text",
)
#: So many are no chance, of so many; tokens of several choices, of a model that thinks, take as long at most.
OFTEN, SHARE, MANY, USUAL = 3, 0.05, 12, 4
#: Seconds without a piece that a reader notices, and how many times a token's they are at least.
NOTICED, TOKENS = 0.2, 4
#: Pieces of a stream that say something of its flow.
PIECES = 12


@check("performance.front.held", MUST, spec=PROXY, family=PERFORMANCE, needs=["metrics"], exchanges=ALL)
def test_held(vllm_recordings: Recordings) -> None:
    """Nothing in front of the engine holds an answer for most of a second."""
    found = vllm_recordings.of("")
    rows = [(one.key, one.seconds - taken) for one, taken in _alone(found, WHOLE)]
    only_if(rows, "of no request that ran alone the engine counts the time")
    begun = [(one, taken) for one, taken in _alone(found, FIRST) if one.request.path == COMPLETIONS]
    streams = [(one, taken) for one, taken in begun if one.request.streams]
    rows += [(f"{one.key}, begin", _pieces(one)[0] - taken) for one, taken in streams if _pieces(one)]
    observe("seconds in front of the engine", f"{max(late for _, late in rows):.2f} at most, of {len(rows)}")
    held = [f"{key}: {late:.2f} s" for key, late in rows if late >= HELD]

    assert len(held) <= ONCE, f"{len(held)} of {len(rows)} times, beyond the engine's time: {listed(held)}"


@check("performance.front.queued", MUST, spec=LIMITS, family=PERFORMANCE, needs=["metrics"], exchanges=ALL)
def test_queued(vllm_recordings: Recordings) -> None:
    """A request that runs alone does not wait for nothing before it is computed."""
    rows = [(one.key, waited) for one, waited in _alone(vllm_recordings.of(""), QUEUED)]
    only_if(rows, "the engine counts no time in its queue")
    queued = [f"{key}: {waited:.2f} s" for key, waited in rows if waited >= HELD]

    assert len(queued) <= ONCE, f"{len(queued)} of {len(rows)} in the queue: {listed(queued)}"


@check("performance.front.flows", MUST, spec=PROXY, family=PERFORMANCE, needs=NEEDS)
def test_flows(
    vllm_server: Server,
    performance_first: Recording,
    performance_second: Recording,
    performance_third: Recording,
) -> None:
    """The pieces of a stream come one by one, as they are computed, not in bursts."""
    only_if(not vllm_server.drafts, "several drafted tokens come at once")
    streams = (performance_first, performance_second, performance_third)
    waits = {one.key: _waits(one) for one in streams if len(_pieces(one)) >= PIECES}
    only_if(waits, "this server puts many tokens into a piece")
    each = {one.key: decoding / _made(one) for one, decoding in _alone(streams, DECODE)}
    need(set(waits) <= set(each), "the server counts no time for decoding")
    wrong = {
        key: f"{len(stood)} waits of {max(stood):.2f} s at most, {each[key]:.3f} s a token"
        for key, gaps in waits.items()
        if (stood := [gap for gap in gaps if gap >= max(NOTICED, TOKENS * each[key])])
        and 2 * sum(stood) >= sum(gaps)
    }

    assert len(wrong) < len(waits), f"{wrong}"


@check("performance.front.late", MUST, spec=LIMITS, family=PERFORMANCE, needs=["metrics"], exchanges=ALL)
def test_late(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """No answer is late now and then by most of a second, with nothing beside it."""
    rows = vllm_recordings.of("")
    known = [(one, taken) for one, taken in _alone(rows, WHOLE) if _short(one) and _tokens(one)]
    only_if(known, "of no short request that ran alone the engine counts the time")
    first = max(taken for _, taken in known)
    each = max(taken / _tokens(one) for one, taken in known)
    own = [one for one in rows if one.request.path in GENERATING and _own(one, vllm_server.model)]
    quiet = {one.key for one in _lone(rows)}
    lone = [one for one in own if one.key in quiet and _short(one) and _tokens(one)]
    only_if(len(lone) >= MANY, f"{len(lone)} short requests ran alone")
    late = {one.key: one.seconds - first - USUAL * each * _tokens(one) for one in lone}
    found = [f"{key}: {seconds:.2f} s" for key, seconds in late.items() if seconds >= HELD]
    observe("short requests that ran alone", len(lone))

    assert len(found) < OFTEN or len(found) < SHARE * len(lone), (
        f"{len(found)} of {len(lone)}: {listed(found)}"
    )


def _lone(rows: Sequence[Recording]) -> Iterator[Recording]:
    """What was asked while nothing else was."""
    asked = sorted((one for one in rows if one.status is not None), key=lambda one: one.sent)
    ended = 0.0
    for one, after in pairwise(asked):
        end = one.sent + one.seconds
        if one.sent >= ended and after.sent >= end and one.status == 200:
            yield one
        ended = max(ended, end)


def _short(one: Recording) -> bool:
    """Whether an answer takes no longer than its tokens do: no long prompt, nothing to prepare for it."""
    asked = one.request.json if isinstance(one.request.json, dict) else {}
    plain = one.status == 200 and not one.aborted and one.request.path in GENERATING
    small = len(json.dumps(asked)) < SHORT and len(one.body) < BIG
    free = asked.get("tool_choice") in (None, "auto", "none") and not any(map(asked.get, PREPARED))
    return plain and small and free


def _own(one: Recording, model: str) -> bool:
    """Whether the model itself is asked, no adapter that is loaded first, no server that has just started."""
    asked = one.request.json if isinstance(one.request.json, dict) else {}
    return asked.get("model") in (None, model) and not one.key.startswith("restart.")


def _tokens(one: Recording) -> int:
    """Tokens of the answer, of all of its choices; 0 where none are told."""
    usages = [part.get("usage") or {} for part in one.bodies if isinstance(part, dict)]
    told = [use.get("completion_tokens", use.get("output_tokens")) for use in usages]
    return max([count for count in told if isinstance(count, int)], default=0)


def _alone(rows: list[Recording] | tuple[Recording, ...], name: str) -> Iterator[tuple[Recording, float]]:
    """Answers that ran alone, with the seconds of ours that the engine counted for each."""
    for one in rows:
        plain = one.status == 200 and one.request.path in GENERATING and len(one.body) < BIG
        asked = one.request.json or {}
        if plain and not one.aborted and not any(map(asked.get, LONG)) and len(json.dumps(asked)) < BIG:
            before, after = Metrics(one.metrics_before or ""), Metrics(one.metrics_after or "")
            if not before.fault and not after.fault and after.delta(before, f"{name}_count") == 1:
                speed = float(one.header("x-sim-speed") or 1.0)
                yield one, (after.delta(before, f"{name}_sum") or 0.0) / speed


def _pieces(one: Recording) -> list[float]:
    """When each piece of text came."""
    told = [event for event in one.events if not event.is_done and "error" not in event.json]
    return [event.at for event in told if any(choice.get("text") for choice in event.json["choices"])]


def _waits(one: Recording) -> list[float]:
    return [later - earlier for earlier, later in pairwise(_pieces(one))]


def _made(one: Recording) -> int:
    """Tokens after the first."""
    return max(1, int(one.request.json["max_tokens"]) - 1)
