"""Defects of what happens when a client leaves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.reply import JSON, Exchange, Reply
from pytest_vllm.sim.defects.edit import choices
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import COMPLETIONS

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.engine.sequence import Sequence
    from pytest_vllm.sim.http.request import Request

#: A neighbour's stream, longer than most and shorter than those that are left.
NEIGHBOUR = 40


@defect(
    "cancellation.ignored",
    on="cancel",
    catches=["cancellation.stream.stopped", "cancellation.whole.stopped", "cancellation.choices.stopped"],
)
def cancel_ignored(ignored: bool, sequence: Sequence) -> bool:
    """A request whose client has left goes on to its end."""
    del ignored, sequence
    return True


_lingering: list[Sequence] = []


def _lingers(ignored: bool, sequence: Sequence) -> bool:
    del ignored
    _lingering.append(sequence)
    return True


def _slowly(seconds: float, engine: Any) -> float:
    del engine
    return max(seconds, 0.0035) if any(not sequence.ended for sequence in _lingering) else seconds


add(
    "cancellation.lingers",
    "A request whose client has left goes on for many seconds.",
    {"cancel": _lingers, "step": _slowly},
    faults=["ROBUST-016"],
    needs=["--num-gpu-blocks-override", "1000"],
    catches=[
        "cancellation.stream.freed",
        "cancellation.whole.freed",
        "cancellation.choices.freed",
        "cancellation.cache-freed",
    ],
)


_left: set[str] = set()


@defect("cancellation.choices-ignored", on="cancel", catches=["cancellation.choices.stopped"])
def choices_ignored(ignored: bool, sequence: Sequence) -> bool:
    """Of several choices only the first one is given up."""
    again = sequence.id in _left
    _left.add(sequence.id)
    return ignored or again


def _asked(request: Request) -> dict[str, Any]:
    """The JSON body of a completion request; empty for others."""
    try:
        body = json.loads(request.body) if request.path == COMPLETIONS else None
    except ValueError:
        body = None
    return body if isinstance(body, dict) else {}


@defect("cancellation.refuses-long", on="route", catches=["cancellation.answered"])
def refuses_long(value: Any, request: Request) -> Any:
    """A server that is busy with what was left refuses others."""
    if _asked(request).get("max_tokens") == NEIGHBOUR:
        return Reply(429, b'{"error": {"message": "too many requests", "code": 429}}', [JSON])
    return value


_ended = {"times": 0}


def _ends(ignored: bool, sequence: Sequence) -> bool:
    _ended["times"] += sequence.done > 0
    return ignored


def _restarts(value: Any, request: Request) -> Any:
    asked = _asked(request)
    next_one = asked.get("prompt") == "Hello" and asked.get("max_tokens") == 1 and "ignore_eos" not in asked
    if not (_ended["times"] and next_one):
        return value
    _ended["times"] = 0
    return Reply(500, b'{"error": {"message": "EngineCore encountered an issue", "code": 500}}', [JSON])


add(
    "cancellation.ends-engine",
    "The engine core dies when a client leaves: the next request fails, then it is restarted.",
    {"cancel": _ends, "route": _restarts},
    faults=["ROBUST-015"],
    catches=["cancellation.alive", "profile.server.stays-up"],
)


@defect(
    "cancellation.whole-ignored",
    on="cancel",
    faults=["ROBUST-017"],
    catches=["cancellation.whole.stopped"],
)
def whole_ignored(ignored: bool, sequence: Sequence) -> bool:
    """Only streams notice that their client has left; other requests go on to their end."""
    return ignored or not hasattr(sequence.listener, "writer")


@defect(
    "cancellation.generates-to-the-end",
    on="cancel",
    catches=["cancellation.stream.stopped", "cancellation.choices.stopped", "cancellation.whole.stopped"],
)
def generates_on(ignored: bool, sequence: Sequence) -> bool:
    """What a client left is computed to its end, though it no longer counts as running."""
    server = getattr(sequence.listener, "server", None)
    if server is not None:
        server.engine.stats.counters["generation_tokens"] += len(sequence.output) - sequence.done
    return ignored


@defect(
    "cancellation.neighbour-aborted",
    on="events",
    paths=(COMPLETIONS,),
    catches=["cancellation.neighbour.finishes"],
)
def neighbour_aborted(events: list[Event], exchange: Exchange) -> list[Event]:
    """A stream that stays is ended as `abort` because another client left."""
    if (exchange.body or {}).get("max_tokens") == NEIGHBOUR:
        for _, choice in choices(events):
            choice["finish_reason"] = choice.get("finish_reason") and "abort"
    return events


@defect(
    "cancellation.neighbour-cut-short",
    on="events",
    paths=(COMPLETIONS,),
    catches=["cancellation.neighbour.whole"],
)
def neighbour_cut_short(events: list[Event], exchange: Exchange) -> list[Event]:
    """A stream that stays loses the tokens of the moment at which another was left."""
    if (exchange.body or {}).get("max_tokens") == NEIGHBOUR:
        for event in events:
            if isinstance(event.data, dict) and event.data.get("usage"):
                usage = event.data["usage"]
                usage |= {"completion_tokens": 33, "total_tokens": usage["prompt_tokens"] + 33}
    return events
