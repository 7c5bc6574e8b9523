"""Which paths a server has: by version, model kind and switches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api import (
    audio,
    chat,
    completions,
    dev,
    infrastructure,
    lora,
    messages,
    pooling,
    responses,
    rest,
    scoring,
    stored,
)
from pytest_vllm.sim.api.pooled import unsupported
from pytest_vllm.sim.versions import routes

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.boot.kind import Kind
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
    "/v1/responses/{response_id}": {"GET": stored.retrieve},
    "/v1/responses/{response_id}/cancel": {"POST": stored.cancel},
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
    "/v2/embed": {"POST": pooling.cohere_embed},
    "/classify": {"POST": pooling.classify},
    "/pooling": {"POST": pooling.pooling},
    "/score": {"POST": scoring.score},
    "/v1/score": {"POST": scoring.score},
    "/rerank": {"POST": scoring.rerank},
    "/v1/rerank": {"POST": scoring.rerank},
    "/v2/rerank": {"POST": scoring.rerank},
    "/v1/audio/transcriptions": {"POST": audio.transcriptions},
    "/v1/audio/translations": {"POST": audio.translations},
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
#: Beginnings of paths -> who has them, and how a server of the older kind calls the interface it lacks.
TASKED: tuple[tuple[tuple[str, ...], Callable[[Kind], object], str], ...] = (
    (("/v1/chat",), lambda kind: kind.generates, "Chat Completions"),
    (("/v1/completions",), lambda kind: kind.generates, "Completions"),
    (("/v1/responses",), lambda kind: kind.generates, "Responses"),
    (("/v1/messages",), lambda kind: kind.generates, "Messages"),
    (("/inference",), lambda kind: kind.generates, "generate tokens"),
    (
        ("/generative_scoring", "/scale_elastic_ep", "/is_scaling_elastic_ep"),
        lambda kind: kind.generates,
        "Generative Scoring",
    ),
    (("/v1/audio/transcriptions",), lambda kind: kind.transcribes, "Transcriptions"),
    (("/v1/audio/translations",), lambda kind: kind.transcribes, "Translations"),
    (("/v1/embeddings", "/v2/embed"), lambda kind: kind.pools == "embed", "Embeddings"),
    (("/classify",), lambda kind: kind.pools == "classify", "Classification"),
    (("/score", "/v1/score"), lambda kind: kind.scores, "Score"),
    (("/rerank", "/v1/rerank", "/v2/rerank"), lambda kind: kind.scores, "Rerank (Score)"),
    (("/pooling",), lambda kind: kind.pools, "Pooling"),
)
#: From here on a server has only the routes of its tasks; before it has all, and refuses.
OWN_ROUTES = "0.16.0"
#: Served at all times, though the facts name a flag: it turns them on, they answer 403 or 404 without.
ANSWERING_OFF = "0.30.0"


def add_routes(server: Server) -> None:
    """Give the server the routes that its version and switches have."""
    for path, handlers in HANDLERS.items():
        if served(path, server.settings):
            lacking = lacks(path, server.settings)
            server.routes[path] = {"POST": unsupported(lacking)} if lacking else handlers
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
    if lacks(path, settings) and settings.version >= OWN_ROUTES:
        return False
    return all(_has(need, settings) for need in settings.version.pick(entry.get("needs", [])) or [])


def lacks(path: str, settings: Settings) -> str:
    """The name of the interface behind a path, where the model has none such; else empty."""
    found = (entry for entry in TASKED if path.startswith(entry[0]))
    for _, has, name in found:
        return "" if has(settings.kind) else name
    return ""


def _has(need: str, settings: Settings) -> bool:
    if need.startswith("not --disable-fastapi-docs"):
        return True
    if need.startswith("--enable-scale-out"):
        return settings.version >= ANSWERING_OFF
    if need.startswith("--"):
        return bool(settings.args.get(need[2:].split(" ", maxsplit=1)[0].replace("-", "_")))
    name, _, value = need.partition("=")
    return settings.environ.get(name) == value
