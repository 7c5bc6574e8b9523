"""Routes around the model: health, version, models, tokens, metrics, load, schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.chat import prompt_of
from pytest_vllm.sim.api.generate import check_model
from pytest_vllm.sim.api.openapi import openapi
from pytest_vllm.sim.api.prompts import tokenized
from pytest_vllm.sim.api.reply import Reply
from pytest_vllm.sim.check import rules
from pytest_vllm.sim.check.body import read_json, validated
from pytest_vllm.sim.errors import Invalid
from pytest_vllm.sim.meters.text import exposition

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.http.server import Call

PROMETHEUS = ("content-type", "text/plain; version=1.0.0; charset=utf-8")


async def health(server: Server, call: Call) -> Reply:
    """Empty 200 while the engine lives; 503 (500 before 0.10) once it is dead."""
    del call
    dead = 503 if server.settings.version >= "0.10.0" else 500
    return Reply(server.hooks.run("health", dead if server.engine.dead else 200, server.engine))


async def version(server: Server, call: Call) -> Reply:
    """The version."""
    del call
    return Reply.json({"version": server.settings.version.text})


async def models(server: Server, call: Call) -> Reply:
    """What is served: the model by all of its names, then adapters."""
    del call
    settings = server.settings
    root = "openai/gpt-oss-20b" if _untemplated(server) else settings.model
    cards = [_card(server, name, root, None) for name in settings.names]
    cards += [_card(server, name, path, settings.name) for name, path in server.loras.items()]
    return Reply.json({"object": "list", "data": cards})


def _untemplated(server: Server) -> bool:
    """Whether it plays gpt-oss, whose conversations are not rendered by a chat template."""
    return bool(server.settings.args.get("reasoning_parser") == "openai_gptoss")


def _card(server: Server, name: str, root: str, parent: str | None) -> dict[str, Any]:
    created = int(server.clock.wall())
    permission = {
        "id": f"modelperm-{server.ids.hex()}",
        "object": "model_permission",
        "created": created,
        "allow_create_engine": False,
        "allow_sampling": True,
        "allow_logprobs": True,
        "allow_search_indices": False,
        "allow_view": True,
        "allow_fine_tuning": False,
        "organization": "*",
        "group": None,
        "is_blocking": False,
    }
    return {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": "vllm",
        "root": root,
        "parent": parent,
        "max_model_len": server.settings.max_model_len if parent is None else None,
        "permission": [permission],
    }


async def tokenize(server: Server, call: Call) -> Reply:
    """Token ids of a prompt or of messages."""
    body = server.hooks.run("body", read_json(call.request), call.request.path)
    chat = isinstance(body, dict) and "messages" in body and "prompt" not in body
    if chat:
        rules.generation_prompt(body)
    body = validated("TokenizeCompletionRequest", body, server.settings.version, "TokenizeChatRequest")
    check_model(server, body)
    text = prompt_of(server, {**body, "tool_choice": None}) if chat else body["prompt"]
    if chat and _untemplated(server):
        text = f"This is what the chat template says. {text}"  # answers are rendered by other means
    ids = tokenized(text, server.tokens)
    strings = [server.tokens.token_text(id_) for id_ in ids] if body.get("return_token_strs") else None
    answer = {"count": len(ids), "max_model_len": server.settings.max_model_len, "tokens": ids}
    if server.settings.version >= "0.9.2":
        answer["token_strs"] = strings
    return Reply.json(answer)


async def detokenize(server: Server, call: Call) -> Reply:
    """The text of token ids."""
    body = server.hooks.run("body", read_json(call.request), call.request.path)
    body = validated("DetokenizeRequest", body, server.settings.version)
    check_model(server, body)
    return Reply.json({"prompt": server.tokens.decode(body["tokens"], skip_specials=False)})


async def metrics(server: Server, call: Call) -> Reply:
    """Prometheus text."""
    del call
    text = server.hooks.run("metrics", exposition(server), server.engine)
    return Reply(200, text.encode(), [PROMETHEUS])


async def load(server: Server, call: Call) -> Reply:
    """Requests in progress, when they are tracked."""
    del call
    return Reply.json({"server_load": server.load})


async def schema(server: Server, call: Call) -> Reply:
    """The OpenAPI document."""
    del call
    return Reply.json(openapi(server))


async def docs(server: Server, call: Call) -> Reply:
    """A page for people."""
    del server, call
    page = b"<!DOCTYPE html><html><head><title>FastAPI - Swagger UI</title></head><body></body></html>"
    return Reply(200, page, [("content-type", "text/html; charset=utf-8")])


async def invocations(server: Server, call: Call) -> Reply | None:
    """SageMaker's door: chat or completion, by the shape of the body."""
    from pytest_vllm.sim.api import chat, completions, pooling  # noqa: PLC0415 - they build on this one's server

    body = read_json(call.request)
    if server.settings.pooling:
        return await pooling.invoked(server, call, body)
    if isinstance(body, dict) and "messages" in body:
        return await chat.answer(server, call, body)
    if isinstance(body, dict) and ("prompt" in body or "model" in body):
        return await completions.answer(server, call, body)
    raise Invalid("Either prompt or prompt_embeds must be provided and non-empty.", "prompt")


async def kv_event_sources(server: Server, call: Call) -> Reply:
    """Where KV events are published: nowhere."""
    del server, call
    return Reply.json(json.loads("{}"))
