"""Which paths a server has: by version, model kind and switches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api import (
    chat,
    completions,
    dev,
    infrastructure,
    lora,
    messages,
    pooling,
    responses,
    rest,
)
from pytest_vllm.sim.versions import routes

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.settings import Settings

#: Paths in vLLM's order of registration, with handlers by method.
HANDLERS: dict[str, dict[str, Any]] = {
    "/openapi.json": {"GET": infrastructure.schema, "HEAD": infrastructure.schema},
    "/docs": {"GET": infrastructure.docs, "HEAD": infrastructure.docs},
    "/docs/oauth2-redirect": {"GET": infrastructure.docs, "HEAD": infrastructure.docs},
    "/redoc": {"GET": infrastructure.docs, "HEAD": infrastructure.docs},
    "/load": {"GET": infrastructure.load},
    "/version": {"GET": infrastructure.version},
    "/kv_event_sources": {"GET": infrastructure.kv_event_sources},
    "/health": {"GET": infrastructure.health},
    "/metrics": {"*": infrastructure.metrics},
    "/tokenize": {"POST": infrastructure.tokenize},
    "/detokenize": {"POST": infrastructure.detokenize},
    "/tokenizer_info": {"GET": rest.tokenizer_info},
    "/v1/models": {"GET": infrastructure.models},
    "/v1/systemone": {"POST": rest.decisions},
    "/v1/decisions": {"POST": rest.decisions},
    "/ping": {"GET": infrastructure.health, "POST": infrastructure.health},
    "/invocations": {"POST": infrastructure.invocations},
    "/v1/chat/completions": {"POST": chat.chat},
    "/v1/chat/completions/batch": {"POST": rest.batch},
    "/v1/responses": {"POST": responses.responses},
    "/v1/responses/{response_id}": {"GET": responses.retrieve},
    "/v1/responses/{response_id}/cancel": {"POST": responses.cancel},
    "/v1/completions": {"POST": completions.completion},
    "/v1/messages": {"POST": messages.messages},
    "/v1/messages/count_tokens": {"POST": messages.count_tokens},
    "/generative_scoring": {"POST": rest.generative_scoring},
    "/scale_elastic_ep": {"POST": rest.scale},
    "/is_scaling_elastic_ep": {"POST": rest.is_scaling},
    "/v1/chat/completions/render": {"POST": rest.scale_out},
    "/v1/messages/render": {"POST": rest.scale_out},
    "/v1/completions/render": {"POST": rest.scale_out},
    "/v1/responses/render": {"POST": rest.scale_out},
    "/v1/chat/completions/derender": {"POST": rest.scale_out},
    "/v1/completions/derender": {"POST": rest.scale_out},
    "/inference/v1/generate": {"POST": rest.scale_out},
    "/inference/v1/abort_requests": {"POST": rest.scale_out},
    "/v1/embeddings": {"POST": pooling.embeddings},
    "/pooling": {"POST": pooling.pooling},
    "/score": {"POST": pooling.score},
    "/v1/score": {"POST": pooling.score},
    "/rerank": {"POST": pooling.rerank},
    "/v1/rerank": {"POST": pooling.rerank},
    "/v2/rerank": {"POST": pooling.rerank},
    "/v1/load_lora_adapter": {"POST": lora.load},
    "/v1/unload_lora_adapter": {"POST": lora.unload},
    "/sleep": {"POST": dev.sleep},
    "/wake_up": {"POST": dev.wake_up},
    "/is_sleeping": {"GET": dev.is_sleeping},
    "/pause": {"POST": dev.pause},
    "/resume": {"POST": dev.resume},
    "/is_paused": {"GET": dev.is_paused},
    "/reset_prefix_cache": {"POST": dev.reset_prefix_cache},
    "/reset_mm_cache": {"POST": dev.nothing},
    "/reset_encoder_cache": {"POST": dev.nothing},
    "/server_info": {"GET": dev.server_info},
    "/collective_rpc": {"POST": dev.collective_rpc},
}
GENERATING = (
    "/v1/chat", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/systemone", "/v1/decisions",
    "/inference", "/generative_scoring", "/scale_elastic_ep", "/is_scaling_elastic_ep",
)  # fmt: skip
#: Served at all times, though the facts name a flag: it turns them on, they answer 403 or 404 without.
ANSWERING_OFF = "0.30.0"


def add_routes(server: Server) -> None:
    """Give the server the routes that its version and switches have."""
    for path, handlers in HANDLERS.items():
        if served(path, server.settings):
            server.routes[path] = handlers
            if "{" in path:
                server.patterns.append(path)


def served(path: str, settings: Settings) -> bool:
    """Whether this server has a path."""
    entry = routes().get(path)
    if settings.args.get("disable_fastapi_docs") and path in (
        "/docs",
        "/docs/oauth2-redirect",
        "/redoc",
        "/openapi.json",
    ):
        return False
    if entry is None:
        return True
    if not settings.version.within(entry["span"]):
        return False
    if "pooling tasks" in entry.get("task", ""):
        return settings.pooling
    if settings.pooling and path.startswith(GENERATING):
        return False
    return all(_has(need, settings) for need in settings.version.pick(entry.get("needs", [])) or [])


def _has(need: str, settings: Settings) -> bool:
    if need.startswith("not --disable-fastapi-docs"):
        return True
    if need.startswith("--enable-scale-out"):
        return settings.version >= ANSWERING_OFF
    if need.startswith("--"):
        return bool(settings.args.get(need[2:].split(" ", maxsplit=1)[0].replace("-", "_")))
    name, _, value = need.partition("=")
    return settings.environ.get(name) == value
