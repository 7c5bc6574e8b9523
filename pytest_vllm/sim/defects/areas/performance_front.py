"""Defects in front of the engine: answers held back, requests that wait for nothing, bursts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.sim.defects.registry import add
from pytest_vllm.sim.defects.scope import COMPLETIONS, live, only, remembering

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange
    from pytest_vllm.sim.engine.core import Engine

#: Every so many answers are late, by so many seconds; tokens of a burst.
EACH, LATE, BURST = 3, 1.6, 9
#: Tokens of the streams that are timed, and seconds of a step of a real model.
TOKENS, STEP = 24, 0.03
QUEUED = re.compile(r"^(vllm:request_queue_time_seconds_sum(?:\{[^}]*\})?) (\S+)$", re.MULTILINE)
COUNTED = re.compile(r"^vllm:request_queue_time_seconds_count(?:\{[^}]*\})? (\S+)$", re.MULTILINE)


def _held() -> Callable[..., float]:
    asked = [0]

    def held(seconds: float, exchange: Exchange) -> float:
        asked[0] += exchange.path.startswith(COMPLETIONS)
        due = exchange.path.startswith(COMPLETIONS) and asked[0] % EACH == 0
        return seconds + LATE if due else seconds

    return held


add(
    "performance.held-now-and-then",
    "What stands in front of the server holds some answers back, although nothing else is asked.",
    {"late": remembering(_held), "ready": live},
    catches=["performance.front.late"],
)


def _read_twice(seconds: float, exchange: Exchange) -> float:
    given = exchange.body.get("prompt") if isinstance(exchange.body, dict) else None
    return seconds + LATE if isinstance(given, list) and given and isinstance(given[0], int) else seconds


add(
    "performance.held-by-kind",
    "Prompts that are given as tokens are held back in front of the engine.",
    {"late": _read_twice, "ready": live},
    catches=["performance.front.held"],
)


def _waiting(text: str, engine: object) -> str:
    del engine
    count = COUNTED.search(text)
    seconds = 1.5 * float(count[1]) if count else 0.0
    return QUEUED.sub(lambda found: f"{found[1]} {float(found[2]) + seconds}", text)


add(
    "performance.waits-for-nothing",
    "Requests wait in the queue of an engine that has nothing to do.",
    {"metrics": _waiting, "ready": live},
    catches=["performance.front.queued", "metrics.latency.order"],
)


def _slow(seconds: float, engine: Engine) -> float:
    """A step of a stream that runs alone takes as long as one of a real model."""
    alone = len(engine.running) == 1 and len(engine.running[0].output) == TOKENS
    return max(seconds, STEP) if alone else seconds


def _bursts(events: list[Event], exchange: Exchange) -> list[Event]:
    if exchange.body.get("max_tokens") == TOKENS:
        for event in events:
            event.at = -(-event.at // BURST) * BURST
    return events


add(
    "performance.bursts",
    "The pieces of streams come in bursts of nine tokens.",
    {"step": _slow, "events": only((COMPLETIONS,), _bursts)},
    catches=["performance.front.flows"],
)
