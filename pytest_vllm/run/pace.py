"""How long recording took, and how long it may have taken: exchanges as spans of time with tokens."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pytest_vllm.wire.sse import read_stream

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pytest_vllm.wire.recording import Recording, Request

#: What the recording phase may take beyond its longest chain and the generation of all its tokens.
ALLOWANCE = 1.5
_OUTPUT = ("content", "reasoning", "reasoning_content", "tool_calls", "text")

#: A level of concurrency counts as the server's load when it lasted at least this part of the time.
LASTING = 0.2


@dataclass(frozen=True)
class Span:
    """One exchange in time: seconds on any one clock, tokens that the server generated for it."""

    start: float
    end: float
    tokens: int


@dataclass(frozen=True)
class RecordingReport:
    """Where the recording phase's time went.

    Args:
        concurrent_seconds: wall time of the part in which exchanges overlap.
        alone_seconds: wall time of the part in which each exchange has the server to itself, waiting for
            idleness and scraping included.
        exchange_seconds: key -> seconds from sending to the last byte.
        longest_chain_seconds: the longest dependency chain of the concurrent part, plus the exchanges that
            are alone: they are a chain by declaration.
        generated_tokens: over all exchanges, from their usage.
        aggregate_rate: tokens per second of the loaded server, see `aggregate_rate`; 0 when unknown.
        not_idle: keys whose `/metrics` did not settle in time.
        stopped: why not everything was sent; empty otherwise.
        stills: times in which the server stood still and then went on, in words.
        unended: routes of which no stream ends, in words.
    """

    concurrent_seconds: float = 0.0
    alone_seconds: float = 0.0
    exchange_seconds: Mapping[str, float] = field(default_factory=dict)
    longest_chain_seconds: float = 0.0
    generated_tokens: int = 0
    aggregate_rate: float = 0.0
    not_idle: tuple[str, ...] = ()
    stopped: str = ""
    stills: tuple[str, ...] = ()
    unended: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Wall time of the whole phase."""
        return self.concurrent_seconds + self.alone_seconds

    @property
    def bound_seconds(self) -> float:
        """1.5 x (longest chain + all tokens at the aggregate rate): the phase is meant to stay below."""
        generating = self.generated_tokens / self.aggregate_rate if self.aggregate_rate else 0.0
        return ALLOWANCE * (self.longest_chain_seconds + generating)

    def as_detail(self) -> dict[str, Any]:
        """The report as JSON values, times in seconds."""
        return {
            "concurrent_seconds": round(self.concurrent_seconds, 3),
            "alone_seconds": round(self.alone_seconds, 3),
            "longest_chain_seconds": round(self.longest_chain_seconds, 3),
            "generated_tokens": self.generated_tokens,
            "aggregate_tokens_per_second": round(self.aggregate_rate, 1),
            "bound_seconds": round(self.bound_seconds, 3),
            "within_bound": self.seconds <= self.bound_seconds,
            "exchange_seconds": {key: round(value, 3) for key, value in self.exchange_seconds.items()},
            "not_idle": list(self.not_idle),
            "stopped": self.stopped,
            "stood_still": list(self.stills),
            "unended": list(self.unended),
        }


def aggregate_rate(spans: Sequence[Span]) -> float:
    """Tokens per second of the loaded server.

    An exchange's tokens are spread evenly over its span. Loaded means: as many exchanges at once as were in
    flight during at least a fifth of the time from the first start to the last end. So ramp and tail, when
    the server waits for the client, do not make it look slow.
    """
    steps = []
    for start, end, running in _stretches([span for span in spans if span.end > span.start]):
        rate = sum(span.tokens / (span.end - span.start) for span in running)
        steps.append((len(running), end - start, rate))
    whole = sum(length for _, length, _ in steps)
    for level in sorted({count for count, _, _ in steps}, reverse=True):
        loaded = [(length, rate) for count, length, rate in steps if count >= level]
        seconds = sum(length for length, _ in loaded)
        if seconds >= LASTING * whole:
            return sum(length * rate for length, rate in loaded) / seconds if seconds else 0.0
    return 0.0


def _stretches(spans: Sequence[Span]) -> Iterator[tuple[float, float, Collection[Span]]]:
    """From when to when which spans ran, between any two neighbouring starts and ends."""
    begin: dict[float, list[int]] = defaultdict(list)
    over: dict[float, list[int]] = defaultdict(list)
    for number, span in enumerate(spans):
        begin[span.start].append(number)
        over[span.end].append(number)
    running: dict[int, Span] = {}
    for start, end in pairwise(sorted({*begin, *over})):
        for number in over[start]:
            del running[number]
        running.update((number, spans[number]) for number in begin[start])
        yield start, end, running.values()


def generated_tokens(recording: Recording) -> int:
    """Tokens that the server says it generated.

    A stream without usage (also one that was cut) counts one token for each event that carries any output.
    """
    if recording.status != 200:
        return 0
    if not recording.header("content-type").startswith("text/event-stream"):
        return _completion_tokens(_json(recording.text)) or 0
    bodies = [_json(event.data) for event in read_stream(list(recording.chunks))[0]]
    told = [tokens for tokens in map(_completion_tokens, bodies) if tokens is not None]
    return told[-1] if told else sum(map(_has_output, bodies))


def _has_output(body: Any) -> bool:
    choices = body.get("choices") if isinstance(body, dict) else None
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and isinstance(piece := choice.get("delta", choice), dict):
            return any(piece.get(name) for name in _OUTPUT)
    return False


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _completion_tokens(body: Any) -> int | None:
    """`usage.completion_tokens` of chat and completions, `usage.output_tokens` of responses and messages."""
    if not isinstance(body, dict):
        return None
    usage = body.get("usage") or (body.get("response") or {}).get("usage")
    if not isinstance(usage, dict):
        return None
    tokens = usage.get("completion_tokens", usage.get("output_tokens"))
    return tokens if isinstance(tokens, int) and tokens >= 0 else None


def expected_tokens(request: Request) -> int:
    """How many tokens a request may generate, for the order of sending only."""
    body: Any = request.json
    if not isinstance(body, dict):
        return 0
    for name in ("max_completion_tokens", "max_tokens", "max_output_tokens"):
        limit = body.get(name)
        if isinstance(limit, int):
            return limit * (body["n"] if isinstance(body.get("n"), int) else 1)
    return 16
