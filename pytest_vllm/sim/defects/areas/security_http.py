"""Defects of who gets in, and of what a server in production does not offer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.reply import JSON, Exchange, Reply
from pytest_vllm.sim.defects.registry import add
from pytest_vllm.sim.defects.scope import CHAT, MODELS

if TYPE_CHECKING:
    from collections.abc import Callable

#: The simulator wants this key; the gate takes it from the same place.
KEY = "VLLM_API_KEY=sk-pytest-vllm-simulated"
WRONG = "sk-pytest-vllm-no-such-key"


def _as_it_is(seconds: float, settings: Any) -> float:
    """Nothing: it asks for a live server."""
    del settings
    return seconds


def _answers(
    name: str,
    summary: str,
    found: Callable[[Reply, Exchange], object],
    status: int,
    body: bytes = b"{}",
    *,
    live: bool = False,
    **facts: Any,
) -> None:
    """Some answers have another status and body; `live` where they depend on a key, which recordings hide."""

    def rewritten(reply: Reply, exchange: Exchange) -> Reply:
        return Reply(status, body, [JSON]) if found(reply, exchange) else reply

    on: dict[str, Callable[..., Any]] = {"reply": rewritten}
    if live:
        on["ready"] = _as_it_is
    add(name, summary, on, **facts)


def _credential(exchange: Exchange) -> str:
    return exchange.headers.get("authorization", "")


_answers(
    "security.any-key",
    "Any key opens the server.",
    lambda reply, exchange: (
        reply.status == 401 and exchange.path == MODELS and WRONG in _credential(exchange)
    ),
    200,
    live=True,
    environ=[KEY],
    catches=["security.key.refused"],
)
_answers(
    "security.host-opens",
    "A crafted Host header leads around the key.",
    lambda reply, exchange: reply.status == 401 and "?" in exchange.headers.get("host", ""),
    200,
    environ=[KEY],
    catches=["security.key.refused"],
)
_answers(
    "security.chat-without-key",
    "Chat is answered without a key.",
    lambda reply, exchange: reply.status == 401 and exchange.path == CHAT and exchange.method == "POST",
    200,
    environ=[KEY],
    catches=["security.key.guards-chat"],
)
_answers(
    "security.messages-without-key",
    "The routes of the Anthropic API are open without a key.",
    lambda reply, exchange: reply.status == 401 and exchange.path.startswith("/v1/messages"),
    405,
    environ=[KEY],
    faults=["AUTH-005"],
    catches=["security.key.guards-api"],
)
_answers(
    "security.key-repeated",
    "The refusal of a key repeats it.",
    lambda reply, exchange: reply.status == 401 and WRONG in _credential(exchange),
    401,
    f'{{"error": "{WRONG} is no key"}}'.encode(),
    live=True,
    environ=[KEY],
    catches=["security.key.not-echoed"],
)
_answers(
    "security.no-key-needed",
    "The server was started with a key and lets everybody in.",
    lambda reply, exchange: reply.status == 401 and bool(exchange.path),
    200,
    environ=[KEY],
    faults=["AUTH-006"],
    catches=["security.key.refused", "security.key.guards-chat"],
)
_answers(
    "security.foreign-origin-breaks",
    "A request from a web page of another site ends in a server error.",
    lambda reply, exchange: reply.status == 200 and "origin" in exchange.headers,
    500,
    catches=["security.answered"],
)
_answers(
    "security.profiler",
    "Routes that start a profiler are there.",
    lambda reply, exchange: reply.status == 404 and exchange.path in ("/start_profile", "/stop_profile"),
    405,
    catches=["security.no-profiler-routes"],
)
_answers(
    "security.laboratory",
    "Sleep mode, adapters and pausing are open to everybody, as in a laboratory.",
    lambda reply, exchange: (
        reply.status == 404
        and exchange.path in ("/sleep", "/wake_up", "/pause", "/v1/load_lora_adapter", "/collective_rpc")
    ),
    405,
    faults=["AUTH-003"],
    catches=["security.no-development-routes", "security.no-lora-routes"],
)
_answers(
    "security.template-from-client",
    "A client may bring its own chat template.",
    lambda reply, exchange: (
        reply.status == 400 and "chat_template" in str(exchange.body) and exchange.path == CHAT
    ),
    200,
    b'{"id": "x", "object": "chat.completion", "choices": []}',
    catches=["security.untrusted-field"],
)


def _page(reply: Reply, exchange: Exchange) -> Reply:
    if origin := exchange.headers.get("origin"):
        reply.headers = [
            ("access-control-allow-origin", origin),
            ("access-control-allow-credentials", "true"),
            ("server", "uvicorn/0.35.0"),
            *[pair for pair in reply.headers if not pair[0].lower().startswith(("access-control", "server"))],
        ]
    return reply


add(
    "security.every-origin-with-credentials",
    "A web page of any site may use a visitor's credentials, and is told the web server's version.",
    {"reply": _page},
    catches=[
        "security.cross-origin.no-credentials",
        "security.cross-origin.closed",
        "security.server-header",
    ],
)


def _opens(name: str, summary: str, taken: Callable[[str, str], object]) -> None:
    """What is taken for the key, given what was sent behind the scheme, and the key."""
    right = KEY.partition("=")[2]

    def found(reply: Reply, exchange: Exchange) -> object:
        scheme, _, sent = _credential(exchange).partition(" ")
        return reply.status == 401 and exchange.path == MODELS and scheme == "Bearer" and taken(sent, right)

    _answers(name, summary, found, 200, live=True, environ=[KEY], catches=["security.key.exact"])


_opens(
    "security.beginning-opens",
    "The beginning of the key opens the server.",
    lambda sent, key: sent and key.startswith(sent),
)
_opens(
    "security.longer-opens",
    "What begins with the key opens the server.",
    lambda sent, key: sent.startswith(key),
)
_opens(
    "security.any-case-opens",
    "The key opens the server in capitals, too.",
    lambda sent, key: sent.lower() == key.lower(),
)
_opens(
    "security.within-opens",
    "Whatever holds the key somewhere opens the server.",
    lambda sent, key: key in sent,
)
_answers(
    "security.scheme-case-refused",
    "The right key is refused where its scheme is written in small letters.",
    lambda reply, exchange: reply.status == 200 and _credential(exchange).startswith("bearer "),
    401,
    live=True,
    environ=[KEY],
    catches=["security.key.scheme-case"],
)
