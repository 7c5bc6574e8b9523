"""Defects of probes, and of engines that hang or die behind them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.reply import JSON, Exchange, Reply
from pytest_vllm.sim.defects.make import answers, spoil
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, MODELS, after, every, only

if TYPE_CHECKING:
    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.boot.deployment import Deployment
    from pytest_vllm.sim.engine.core import Engine
    from pytest_vllm.sim.http.request import Request

answers(
    "health.ping-missing", "The route /ping is gone.", ("/ping",), 404, b"{}", catches=["health.answered"]
)


def _dawdles(seconds: float, exchange: Exchange) -> float:
    return max(seconds, 5.3) if exchange.path == "/health" else seconds


add(
    "health.slow",
    "Once the server was found ready, /health takes more than five seconds.",
    {"late": only(("/health",), after(2, _dawdles))},
    catches=["health.quick", "health.busy"],
)
spoil(
    "profile.version-of-a-branch",
    "The version is the name of a branch.",
    ("/version",),
    "version",
    "main",
    catches=["profile.version.expected", "health.version.readable"],
)


@defect(
    "health.generates-nothing",
    on="json",
    paths=(COMPLETIONS,),
    catches=["health.generates.counted"],
    area="health",
)
def generates_nothing(body: Any, exchange: Exchange) -> Any:
    """A request for a single token is answered with none."""
    if isinstance(body, dict) and (exchange.body or {}).get("max_tokens") == 1 and body.get("usage"):
        body["usage"] |= {"completion_tokens": 0, "total_tokens": body["usage"]["prompt_tokens"]}
        for choice in body["choices"]:
            choice["text"] = ""
    return body


@defect(
    "health.head-breaks", on="reply", paths=("/health", "/ping"), catches=["health.answered", "health.head"]
)
def head_breaks(reply: Reply, exchange: Exchange) -> Reply:
    """Probes other than GET /health end in a server error."""
    if exchange.method != "GET" or exchange.path == "/ping":
        reply.status = 500
    return reply


@defect(
    "health.says-well-while-failing",
    on="reply",
    paths=(COMPLETIONS,),
    faults=["ROBUST-013", "METRIC-005"],
    catches=["health.generates", "health.truthful"],
    area="health",
)
def says_well_while_failing(reply: Reply, exchange: Exchange) -> Reply:
    """Every short completion fails in the server, and /health goes on answering 200."""
    if (exchange.body or {}).get("prompt") == "Hello":
        return Reply(500, b'{"error": {"message": "EngineCore encountered an issue", "code": 500}}', [JSON])
    return reply


@defect(
    "health.hangs-after-ten",
    on="finished",
    area="profile",
    faults=["ROBUST-010", "ROBUST-014"],
    catches=["profile.server.stays-up"],
)
def hangs_after_ten(number: int, server: Server) -> int:
    """After ten generations the engine computes nothing any more, and /health stays 200."""
    if number == 10:
        server.engine.paused = True
    return number


def _dies(number: int, server: Server) -> int:
    if number == 10:
        server.engine.die()
    return number


def _still_well(status: int, engine: Engine) -> int:
    del status, engine
    return 200


add(
    "health.dead-engine-well",
    "After ten generations the engine core is dead, but /health goes on answering 200.",
    {"finished": _dies, "health": _still_well},
    faults=["ROBUST-013", "ROBUST-030", "ROBUST-032"],
    catches=["profile.server.stays-up"],
    area="profile",
)


def _gpu_fault(lines: list[str], deployment: Deployment) -> list[str]:
    del deployment
    line = "NVRM: Xid (PCI:0000:01:00): 13, Graphics Exception: illegal memory access"
    return [*lines, line] if any("startup complete" in text for text in lines) else lines


add(
    "health.gpu-fault",
    "The driver tells of a fault of the GPU, and the server goes on for a while.",
    {"log": _gpu_fault},
    faults=["ROBUST-036", "ROBUST-038", "ROBUST-039"],
    catches=["health.log.no-gpu-fault"],
)


spoil(
    "answers.no-choices",
    "Every chat and every completion is answered with 200 and no choice.",
    (CHAT, COMPLETIONS),
    "choices",
    lambda _: [],
    catches=["answers.whole"],
    area="health",
)


@defect(
    "answers.unfinished-stream",
    on="events",
    paths=(CHAT, COMPLETIONS),
    catches=["answers.whole"],
    area="health",
)
def unfinished_stream(events: list[Event], exchange: Exchange) -> list[Event]:
    """No stream says why it ended."""
    del exchange
    for event in events:
        for choice in event.data.get("choices", ()) if isinstance(event.data, dict) else ():
            choice["finish_reason"] = None
    return events


@defect(
    "answers.not-json",
    on="reply",
    paths=("/tokenize", "/v1/embeddings"),
    catches=["answers.whole"],
    area="health",
)
def not_json(reply: Reply, exchange: Exchange) -> Reply:
    """Some routes answer 200 with a page of HTML."""
    del exchange
    if reply.status == 200:
        reply.body = b"<html><body>It works!</body></html>"
    return reply


add(
    "answers.broken-off",
    "The connection of every fortieth stream breaks before its end.",
    {"close": every(40, lambda _end, _exchange: "cut")},
    catches=["answers.complete"],
    area="health",
)


def _running(value: Any, request: Request) -> Any:
    """Nothing; what is counted over a run cannot be put into recordings one by one."""
    del request
    return value


def _older(body: Any, exchange: Exchange) -> Any:
    del exchange
    return {**body, "version": "0.11.0"} if isinstance(body, dict) else body


def _another(body: Any, exchange: Exchange) -> Any:
    del exchange
    for entry in body.get("data", ()) if isinstance(body, dict) else ():
        entry["root"] = "/models/another"
    return body


add(
    "health.two-versions",
    "Every third answer of /version comes from a server of another version.",
    {"json": only(("/version",), every(3, _older)), "route": _running},
    catches=["health.one-version", "profile.version.expected"],
)
add(
    "health.two-models",
    "Every fourth list of models comes from a server that loaded another model under the name.",
    {"json": only((MODELS,), every(4, _another)), "route": _running},
    catches=["health.one-model"],
)


def _anew(text: str, engine: Engine | None) -> str:
    del engine
    text = re.sub(r"(?m)^(vllm:generation_tokens_total\{.*\}) \S+$", r"\1 3.0", text)
    return re.sub(r"(?m)^process_start_time_seconds (\S+)$", _a_minute_later, text)


def _a_minute_later(found: re.Match[str]) -> str:
    return f"process_start_time_seconds {float(found[1]) + 60}"


add(
    "health.starts-anew",
    "After some scrapes the server has started anew: its tokens are counted from nothing.",
    {"metrics": after(30, _anew), "route": _running},
    catches=["health.one-process"],
)
