"""Which paths a server has: by version, model kind and switches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api import chat, completions, infrastructure, messages, responses
from pytest_vllm.sim.versions import facts

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server

#: Path: handlers by method. `needs` of the facts and the functions below decide what is served.
HANDLERS: dict[str, dict[str, Any]] = {
    "/health": {"GET": infrastructure.health},
    "/ping": {"GET": infrastructure.health, "POST": infrastructure.health},
    "/version": {"GET": infrastructure.version},
    "/load": {"GET": infrastructure.load},
    "/metrics": {"*": infrastructure.metrics},
    "/openapi.json": {"GET": infrastructure.schema, "HEAD": infrastructure.schema},
    "/docs": {"GET": infrastructure.docs, "HEAD": infrastructure.docs},
    "/redoc": {"GET": infrastructure.docs, "HEAD": infrastructure.docs},
    "/kv_event_sources": {"GET": infrastructure.kv_event_sources},
    "/tokenize": {"POST": infrastructure.tokenize},
    "/detokenize": {"POST": infrastructure.detokenize},
    "/invocations": {"POST": infrastructure.invocations},
    "/v1/models": {"GET": infrastructure.models},
    "/v1/chat/completions": {"POST": chat.chat},
    "/v1/responses": {"POST": responses.responses},
    "/v1/responses/{response_id}": {"GET": responses.retrieve},
    "/v1/responses/{response_id}/cancel": {"POST": responses.cancel},
    "/v1/completions": {"POST": completions.completion},
    "/v1/messages": {"POST": messages.messages},
    "/v1/messages/count_tokens": {"POST": messages.count_tokens},
}
GENERATING = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/invocations")


def add_routes(server: Server) -> None:
    """Give the server the routes that its version and switches have."""
    known = facts("routes")["routes"]
    for path, handlers in HANDLERS.items():
        entry = known.get(path)
        if entry is not None and not server.settings.version.within([entry["added"].lstrip("<="), entry.get("removed", "")]):
            continue
        if server.settings.args.get("disable_fastapi_docs") and path in ("/docs", "/redoc", "/openapi.json"):
            continue
        server.routes[path] = handlers
        if "{" in path:
            server.patterns.append(path)
