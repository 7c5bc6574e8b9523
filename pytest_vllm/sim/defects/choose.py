"""Defects that show on some requests only, chosen by what the request asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.events import Event
from pytest_vllm.sim.defects.registry import Defect, add
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, only

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_vllm.sim.api.reply import Exchange, Reply

    Change = Callable[[Any, dict[str, Any]], object]
    When = Callable[[dict[str, Any]], object]


def always(asked: dict[str, Any]) -> bool:
    """Every request."""
    del asked
    return True


def asks(*names: str) -> When:
    """Requests that set one of these fields."""
    return lambda asked: any(asked.get(name) not in (None, False) for name in names)


def constrained(asked: dict[str, Any]) -> bool:
    """Requests with a JSON schema or another constraint."""
    form = asked.get("response_format") or {}
    return bool(asked.get("structured_outputs")) or form.get("type") in ("json_schema", "json_object")


def shaped(asked: dict[str, Any]) -> bool:
    """Requests with a JSON schema."""
    return (asked.get("response_format") or {}).get("type") == "json_schema"


def in_body(
    name: str, summary: str, paths: Sequence[str], change: Change, when: When = always, **facts: Any
) -> Defect:
    """Whole answers are changed in place; `change` gets the body and the request."""

    def spoiled(body: Any, exchange: Exchange) -> Any:
        asked = exchange.body if isinstance(exchange.body, dict) else {}
        if isinstance(body, dict) and _answers(body, exchange.path) and when(asked):
            change(body, asked)
        return body

    return add(name, summary, {"json": only(paths, spoiled)}, **facts)


def _answers(body: dict[str, Any], path: str) -> bool:
    return "choices" in body if path.startswith((CHAT, COMPLETIONS)) else "error" not in body


def in_choices(
    name: str, summary: str, paths: Sequence[str], change: Change, when: When = always, **facts: Any
) -> Defect:
    """Every choice of whole answers is changed in place; `change` gets the choice and the request."""

    def each(body: dict[str, Any], asked: dict[str, Any]) -> None:
        for choice in body.get("choices") or ():
            change(choice, asked)

    return in_body(name, summary, paths, each, when, **facts)


def refused(  # noqa: PLR0917 - what is refused, with what, when
    name: str,
    summary: str,
    paths: Sequence[str],
    status: int,
    body: bytes,
    when: When = always,
    **facts: Any,
) -> Defect:
    """Some good requests are answered with a status and a body of an error; an empty one drops the answer."""
    return add(name, summary, {"reply": only(paths, _refusing(status, body, when))}, **facts)


def _refusing(status: int, body: bytes, when: When) -> Callable[[Reply, Exchange], Reply]:
    def refusing(reply: Reply, exchange: Exchange) -> Reply:
        if reply.status == 200 and when(_asked(exchange)):
            reply.status, reply.body = status, body
        return reply

    return refusing


def _asked(exchange: Exchange) -> dict[str, Any]:
    return exchange.body if isinstance(exchange.body, dict) else {}


def broken_off(
    name: str, summary: str, paths: Sequence[str], message: str, when: When = always, **facts: Any
) -> Defect:
    """Some good requests end in a server error: whole ones by their status, streams by their only event."""
    body = failure(message)

    def breaking(events: list[Event], exchange: Exchange) -> list[Event]:
        return [Event(json.loads(body))] if when(_asked(exchange)) else events

    hooks = {"reply": only(paths, _refusing(500, body, when)), "events": only(paths, breaking)}
    return add(name, summary, hooks, **facts)


def in_bytes(
    name: str, summary: str, paths: Sequence[str], change: Callable[[bytes], bytes], **facts: Any
) -> Defect:
    """The bytes of whole answers are changed, for what no JSON writer would write."""

    def tampered(reply: Reply, exchange: Exchange) -> Reply:
        del exchange
        if reply.status == 200:
            reply.body = change(reply.body)
        return reply

    return add(name, summary, {"reply": only(paths, tampered)}, **facts)


def failure(message: str, status: int = 500) -> bytes:
    """The body of a server error in vLLM's shape; `message` holds no quotes."""
    kind = "InternalServerError" if status >= 500 else "BadRequestError"
    text = f'{{"error":{{"message":"{message}","type":"{kind}","param":null,"code":{status}}}}}'
    return text.encode()
