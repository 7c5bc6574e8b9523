"""What an exchange needs of its server, read off the built request: nobody has to declare it. Pure."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_vllm.wire.recording import Recording, Request
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
}
#: How vLLM names the context length in a refusal.
_CONTEXT = re.compile(r"maximum (?:context|model) length|max_model_len|context length", re.IGNORECASE)


def needs_of(request: Request) -> tuple[str, ...]:
    """The capabilities that a request needs.

    One that is meant to be refused needs its route only: its fields may be wrong on purpose.
    """
    path, body = request.path.partition("?")[0], request.json
    route = ROUTES.get(path)
    if path == "/tokenize" and isinstance(body, dict) and "messages" in body:
        route = "chat"  # it is the chat template that is asked
    if route is None or request.method != "POST":
        return ()
    fields = _fields(body) if request.expect == 200 and isinstance(body, dict) else ()
    return (route, *fields)


def unmet(request: Request, server: Server) -> str:
    """Why this server can't be asked that, in words; empty when it can."""
    missing = [name for name in needs_of(request) if name in server.capabilities and not server.can(name)]
    return f"the server has no {', '.join(missing)}" if missing else ""


def too_long(recording: Recording, server: Server) -> str:
    """What a refusal for the context length says of this server's size; empty when it is not such a refusal.

    A refusal of a request that fits for certain, counted as one token for each byte of its body, is
    evidence against the server and is left as it is.
    """
    request, limit = recording.request, server.max_model_len
    if recording.status != 400 or request.expect != 200 or limit is None:
        return ""
    if not _CONTEXT.search(recording.text):
        return ""
    most = len(json.dumps(request.json, ensure_ascii=False).encode()) + _answer(request.json)
    return f"it needs a context of up to {most} tokens, the server has {limit}" if most > limit else ""


def _answer(body: Any) -> int:
    names = ("max_completion_tokens", "max_tokens", "max_output_tokens")
    limits = [body.get(name) for name in names] if isinstance(body, dict) else []
    return max((limit for limit in limits if isinstance(limit, int)), default=0)


def _fields(body: Mapping[str, Any]) -> Iterator[str]:
    if body.get("stream"):
        yield "stream"
    choice = body.get("tool_choice") or "auto"
    if body.get("tools") and choice == "auto":
        yield "tools"
    if '"image_url"' in json.dumps(body.get("messages") or body.get("input") or ""):
        yield "vision"
