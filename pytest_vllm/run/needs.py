"""What an exchange needs of its server, read off the built request: nobody has to declare it. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_vllm.wire.recording import Request
    from pytest_vllm.wire.server import Server

#: Route -> the capability without which it can't answer.
ROUTES = {
    "/v1/chat/completions": "chat",
    "/v1/completions": "completions",
    "/v1/responses": "responses",
    "/v1/messages": "messages",
    "/v1/embeddings": "embeddings",
    "/rerank": "rerank",
    "/v1/rerank": "rerank",
    "/v2/rerank": "rerank",
    "/score": "score",
    "/v1/score": "score",
    "/classify": "classify",
    "/v1/audio/transcriptions": "transcription",
    "/tokenize": "tokenize",
    "/detokenize": "tokenize",
}


#: Whether completions can be held to a constraint, which is asked of servers that reason.
BOUND = "structured-completions"
#: Fields that hold an answer to a form.
CONSTRAINTS = (
    "response_format", "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar",
)  # fmt: skip


def needs_of(request: Request) -> tuple[str, ...]:
    """The capabilities that a request needs.

    One that is meant to be refused needs its route only: its fields may be wrong on purpose.
    """
    path, body = request.path.partition("?")[0], request.json
    route = ROUTES.get(path)
    if route is None or request.method != "POST":
        return ()
    if path == "/tokenize" and isinstance(body, dict) and "messages" in body:
        return (route, "chat")  # it is the chat template that is asked
    if not isinstance(body, dict):
        return (route,)
    bound = route == "completions" and any(body.get(name) is not None for name in CONSTRAINTS)
    return (route, *(_fields(body) if request.expect == 200 else ()), *([BOUND] if bound else ()))


def unmet(request: Request, server: Server) -> str:
    """Why this server can't be asked that, in words; empty when it can."""
    if request.path == "/tokenize" and not server.templated and "chat" in needs_of(request):
        return "conversations with this model are not rendered by the chat template that /tokenize uses"
    missing = [name for name in needs_of(request) if name in server.capabilities and not server.can(name)]
    told = [f"{name} ({server.capabilities[name].how})" if name == BOUND else name for name in missing]
    return f"the server has no {', '.join(told)}" if missing else ""


def _fields(body: Mapping[str, Any]) -> Iterator[str]:
    if body.get("stream"):
        yield "stream"
    choice = body.get("tool_choice") or "auto"
    if body.get("tools") and choice == "auto":
        yield "tools"
    if '"image_url"' in json.dumps(body.get("messages") or body.get("input") or ""):
        yield "vision"
