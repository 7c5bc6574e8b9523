"""Defects that only a load shows: half of the speed, stalls, garbage that comes fast, queues that stay."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.reply import JSON, Reply
from pytest_vllm.sim.defects.make import slower
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import COMPLETIONS, first, only

if TYPE_CHECKING:
    from pytest_vllm.sim.api.reply import Exchange
    from pytest_vllm.sim.engine.core import Engine
    from pytest_vllm.sim.http.request import Request

SPARK, HYBRID = "spark-fp8", "spark-qwen35"
#: Tokens that the answers of these loads have, and no others.
CROWD, FORMED, MIXED = 16, 47, 48
#: Requests at once that nothing but an overload brings.
MANY = 40
#: Bytes of a request that asks for the prefilling of a long prompt.
LONG_BODY = 4000

slower(
    "throughput.half-speed",
    "Under a steady load every step takes twice as long as the hardware allows.",
    2.0,
    profile=SPARK,
    faults=["PERF-002", "PERF-006"],
    catches=["throughput.decode.floor", "throughput.decode.per-token", "throughput.aggregate.floor"],
)


@defect(
    "throughput.falls-when-full",
    on="step",
    profile="rtxpro6000-bf16",
    faults=["PERF-019"],
    catches=["throughput.aggregate.grows"],
)
def falls_when_full(seconds: float, engine: Engine) -> float:
    """Beyond six sequences no graph was captured: a step takes four times as long."""
    return seconds * 4 if len(engine.running) > 6 else seconds


@defect(
    "throughput.one-after-another",
    on="step",
    profile="rtxpro6000-bf16",
    faults=["PERF-019"],
    catches=["throughput.aggregate.gains"],
)
def one_after_another(seconds: float, engine: Engine) -> float:
    """The sequences of a batch are computed one after the other: each waits for all."""
    return seconds * max(len(engine.running), 1)


def _tires() -> dict[str, Any]:
    crowds: list[int] = []

    def slower_then(seconds: float, engine: Engine) -> float:
        if len(engine.waiting) > MANY:
            crowds.append(len(engine.waiting))
        return seconds * 3 if crowds and not engine.waiting else seconds

    return {"step": slower_then}


add(
    "throughput.tires",
    "Once it had a crowd, every step takes three times as long, until it is started anew.",
    _tires(),
    catches=["throughput.decode.lasts"],
)

slower(
    "throughput.chunked-prefill-hybrid",
    "Chunked prefill on a hybrid model costs nine tenths of the speed.",
    9.0,
    profile=HYBRID,
    needs=["--enable-chunked-prefill"],
    catches=["throughput.decode.floor"],
)


@defect(
    "throughput.ttft-ignores-cache",
    on="step",
    profile=HYBRID,
    faults=["CACHE-019", "CACHE-021"],
    catches=["throughput.cached.limit"],
)
def ttft_ignores_cache(seconds: float, engine: Engine) -> float:
    """A cached prefix is found, counted, and computed again all the same."""
    fresh = [one for one in engine.running if not one.done and one.cached > 0]
    return seconds + sum(engine.capacity.pace.step(0, one.cached, 0) for one in fresh)


@defect(
    "throughput.nan-but-fast",
    on="output",
    faults=["GIB-001", "GIB-006"],
    catches=["throughput.outputs.alone", "throughput.outputs.loaded"],
)
def nan_but_fast(output: Any, body: dict[str, Any]) -> Any:
    """All logits are NaN: exclamation marks, as fast as the hardware allows."""
    if body.get("ignore_eos") and body.get("stream"):
        output.pieces = ["!"] * len(output.pieces)
    return output


def _never_drains() -> dict[str, Any]:
    crowds: list[int] = []

    def seen(seconds: float, engine: Engine) -> float:
        if len(engine.waiting) > MANY:
            crowds.append(len(engine.waiting))
        return seconds

    def stuck(text: str, engine: Engine | None) -> str:
        del engine
        if not crowds:
            return text
        return re.sub(r"^(vllm:num_requests_waiting\{[^}]*\}) \S+", r"\1 3.0", text, flags=re.MULTILINE)

    return {"step": seen, "metrics": stuck}


add(
    "throughput.queue-never-drains",
    "After a crowd three requests wait for ever, and nothing runs.",
    _never_drains(),
    catches=["throughput.overload.drains"],
)


@defect(
    "throughput.prefill-crawls",
    on="step",
    profile=SPARK,
    catches=["throughput.prefill.floor", "throughput.first-token.limit"],
)
def prefill_crawls(seconds: float, engine: Engine) -> float:
    """Prompts are read at a fifth of the speed."""
    return seconds * 5 if any(not one.done for one in engine.running) else seconds


def _faster(seconds: float, engine: Engine) -> float:
    del engine
    return seconds / 4


add(
    "throughput.impossibly-fast",
    "Tokens come four times as fast as the hardware can read the weights: another model is served.",
    {"step": _faster},
    area="performance",
    profile=SPARK,
    catches=["throughput.decode.speed", "throughput.prefill.speed"],
)


_TOLD = re.compile(
    r"^(vllm:(?:inter_token_latency|time_per_output_token|time_to_first_token)_seconds_sum\S*) (\S+)$",
    re.MULTILINE,
)


def _quartered(text: str, engine: Any) -> str:
    del engine
    return _TOLD.sub(lambda found: f"{found[1]} {float(found[2]) / 4}", text)


add(
    "throughput.clock-runs-slow",
    "The server's histograms tell a quarter of the time that passed: speeds that no hardware has.",
    # the step makes it live: a crowd this fast would only show how fast the simulator's own machine is
    {"metrics": _quartered, "step": lambda seconds, _: seconds},
    area="performance",
    profile=SPARK,
    catches=["performance.decode.possible", "throughput.aggregate.speed"],
)


@defect("throughput.stalls", on="step", catches=["throughput.mixed.no-stall"])
def stalls(seconds: float, engine: Engine) -> float:
    """Every eightieth step takes a second: all streams stand still."""
    return seconds + 1.0 if engine.steps % 80 == 79 and len(engine.running) > 1 else seconds


def _held_back(chunk: bytes, exchange: Exchange) -> bytes | None:
    asked = exchange.body if isinstance(exchange.body, dict) else {}
    mixed = asked.get("max_tokens") == MIXED and asked.get("ignore_eos")
    asked["_seen"] = asked.get("_seen", 0) + 1
    return None if mixed and asked["_seen"] < MIXED - 4 else chunk


add(
    "throughput.short-waits-for-long",
    "The beginning of short answers is held back while long prompts are beside them.",
    {"chunk": only((COMPLETIONS,), _held_back), "step": lambda seconds, _engine: seconds},
    catches=["throughput.mixed.fair"],
)


@defect("throughput.crowd-lost", on="output", catches=["throughput.overload.answered"])
def crowd_lost(output: Any, body: dict[str, Any]) -> Any:
    """Of a crowd every third request gets fewer tokens than it must."""
    if body.get("min_tokens") == CROWD and body.get("stream") and len(str(body.get("prompt"))) % 3 == 0:
        output.ids, output.pieces = output.ids[:3], output.pieces[:3]
    return output


def _first_of(asked: str) -> Any:
    seen: list[str] = []

    def compiling(body: dict[str, Any], path: str) -> dict[str, Any]:
        del path
        if body.get("max_tokens") == FORMED and body.get(asked):
            seen.append(asked)
        return body

    def slow(seconds: float, engine: Engine) -> float:
        del engine
        if len(seen) == 1:
            seen.append("compiled")
            return seconds + 45
        return seconds

    return {"body": compiling, "step": slow}


add(
    "throughput.first-request-compiles",
    "Kernels are compiled for a minute and a half once the first request has come.",
    {"step": first(1, lambda seconds, _: seconds + 90)},
    profile=HYBRID,
    catches=["throughput.first-request.warm"],
)

for _name, _asked, _what, _check in (
    ("grammar", "response_format", "grammar", "throughput.grammar.first"),
    ("tool", "tools", "tool's grammar", "throughput.tool.first"),
):
    add(
        f"throughput.{_name}-compiles-slowly",
        f"A new {_what} is compiled for three quarters of a minute, and everybody waits.",
        _first_of(_asked),
        profile=HYBRID,
        catches=[_check],
    )


@defect("throughput.refuses-long-prompts", on="route", catches=["throughput.answered"])
def refuses_long_prompts(value: Any, request: Request) -> Any:
    """A long prompt of which one streamed token is asked for is refused for no reason."""
    one = b'"max_tokens": 1,' in request.body or b'"max_tokens":1,' in request.body
    if one and b'"stream"' in request.body and len(request.body) > LONG_BODY:
        return Reply(503, b'{"error": {"message": "no capacity", "type": "x", "code": 503}}', [JSON])
    return value
