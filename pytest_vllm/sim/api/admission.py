"""Requests that are turned away because too much waits already, and how many are being answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.sim.errors import ApiError

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.http.server import Call

REASONS = ("max_num_queued_reqs", "max_num_queued_tokens")
_ELSEWHERE = "Please try again later or on a different instance."
_COUNTED = (
    "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/embeddings", "/pooling",
    "/classify", "/score", "/rerank", "/v1/score", "/v1/rerank", "/v2/rerank", "/generative_scoring",
    "/v1/audio/transcriptions", "/v1/audio/translations",
)  # fmt: skip


def admit(server: Server, sequences: int) -> None:
    """Let a request of so many sequences in. Raises ApiError 503 when a limit on what waits is reached."""
    engine, args = server.engine, server.settings.args
    most, tokens = (args.get(name) for name in REASONS)
    if most is not None and len(engine.running) + len(engine.waiting) + sequences > most:
        engine.stats.rejected[REASONS[0]] += 1
        text = f"The engine is currently busy and cannot accept new requests. {_ELSEWHERE}"
        raise ApiError(text, 503, "Service Unavailable")
    unread = [*engine.waiting, *(one for one in engine.running if one.first is None)]
    if tokens is not None and sum(len(one.prompt) for one in unread) >= tokens:
        engine.stats.rejected[REASONS[1]] += 1
        raise ApiError(
            f"The engine has reached its prefill token backlog limit. {_ELSEWHERE}",
            503,
            "Service Unavailable",
        )


def track(server: Server, call: Call, path: str) -> None:
    """Count a request among those in progress until it is answered; `/load` tells how many there are."""
    if server.settings.args.get("enable_server_load_tracking") and path in _COUNTED:
        server.load += 1
        call.on_end.append(lambda _status, _sent: _ended(server))


def _ended(server: Server) -> None:
    server.load -= 1
