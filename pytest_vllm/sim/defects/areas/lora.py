"""Defects of LoRA adapters: silent base models, mixed caches, loading at run time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.reply import JSON, Exchange, Reply
from pytest_vllm.sim.defects.make import spoil
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, MODELS, only, remembering

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.persona.turn import Answer, Turn

ON = "sim-lora"
LOAD, UNLOAD = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
#: Of the profile, and how the name begins of what the gate loads.
ADAPTERS = ("pirate", "parrot", "pytest-vllm-extra")
#: How answers of the profile's adapters begin.
CALLS = ("Ahoy! ", "Squawk! ")
NOT_FOUND = b'{"detail":"Not Found"}'


def _model(exchange: Exchange) -> str:
    return str(exchange.body.get("model")) if isinstance(exchange.body, dict) else ""


def _replies(
    name: str, summary: str, paths: tuple[str, ...], change: Callable[[Reply, Exchange], Reply], **facts: Any
) -> None:
    add(name, summary, {"reply": only(paths, change)}, area="lora", profile=ON, **facts)


@defect(
    "lora.silent-base",
    on="answer",
    area="lora",
    profile=ON,
    faults=["LORA-001", "LORA-002", "LORA-003"],
    versions="0.15.1 to 0.28.0",
    catches=["lora.effect"],
)
def silent_base(answer: Answer, turn: Turn) -> Answer:
    """An adapter whose modules do not match is loaded, and the base model answers in its name."""
    del turn
    for call in CALLS:
        answer.content = answer.content.removeprefix(call)
        answer.thoughts = answer.thoughts and answer.thoughts.removeprefix(call)
    return answer


@defect(
    "lora.cache-shared",
    on="json",
    paths=(CHAT,),
    area="lora",
    profile=ON,
    faults=["LORA-010", "LORA-011"],
    catches=["lora.cache.apart"],
)
def cache_shared(body: Any, exchange: Exchange) -> Any:
    """The key of a cached block lacks the adapter: what the base model cached serves its adapters."""
    usage = body.get("usage") if isinstance(body, dict) else None
    if usage and _model(exchange).startswith(ADAPTERS):
        usage["prompt_tokens_details"] = {"cached_tokens": usage["prompt_tokens"] // 16 * 16}
    return body


@defect(
    "lora.named-base",
    on="json",
    paths=(CHAT, COMPLETIONS),
    area="lora",
    profile=ON,
    catches=["lora.model", "lora.completion.model"],
)
def named_base(body: Any, exchange: Exchange) -> Any:
    """Answers of an adapter name the base model."""
    if _model(exchange).startswith(ADAPTERS) and isinstance(body, dict) and "model" in body:
        body["model"] = "sim-model"
    return body


@defect(
    "lora.streams-named-base",
    on="events",
    paths=(CHAT,),
    area="lora",
    profile=ON,
    catches=["lora.model.streamed"],
)
def streams_named_base(events: list[Event], exchange: Exchange) -> list[Event]:
    """Streams of an adapter name the base model."""
    for event in events:
        if _model(exchange).startswith(ADAPTERS) and isinstance(event.data, dict):
            event.data["model"] = "sim-model"
    return events


spoil(
    "lora.parents-unknown",
    "Adapters are listed with a parent that nobody serves.",
    (MODELS,),
    "data.*.parent",
    lambda parent: parent and "no-such-model",
    area="lora",
    profile=ON,
    catches=["lora.listed"],
)
spoil(
    "lora.roots-equal",
    "Adapters are listed with the weights of the base model.",
    (MODELS,),
    "data.*.root",
    "sim-model",
    area="lora",
    profile=ON,
    catches=["lora.rooted"],
)


def _stands_in(reply: Reply, exchange: Exchange) -> Reply:
    if reply.status == 404 and "no-such-adapter" in _model(exchange):
        return Reply(
            200, b'{"id": "x", "object": "chat.completion", "choices": [], "model": "sim-model"}', [JSON]
        )
    return reply


def _refused(reply: Reply, exchange: Exchange) -> Reply:
    return Reply(500, b"{}", [JSON]) if _model(exchange).startswith(ADAPTERS) else reply


def _bad_path(reply: Reply, exchange: Exchange) -> Reply:
    del exchange
    return Reply(500, reply.body, reply.headers) if reply.status in (400, 404) else reply


def _never_loaded(reply: Reply, exchange: Exchange) -> Reply:
    if exchange.path == MODELS:
        reply.body = reply.body.replace(b"pytest-vllm-extra", b"another")
        return reply
    return Reply(404, b"{}", [JSON]) if _model(exchange).startswith(ADAPTERS[-1]) else reply


def _not_loadable(reply: Reply, exchange: Exchange) -> Reply:
    del exchange
    return (
        Reply(500, b'{"error": {"message": "Call to add_lora failed"}}', [JSON])
        if reply.status == 200
        else reply
    )


def _stays(reply: Reply, exchange: Exchange) -> Reply:
    if reply.status == 404 and _model(exchange).startswith(ADAPTERS[-1]):
        body = {"id": "x", "object": "chat.completion", "choices": [], "model": _model(exchange)}
        return Reply(200, json.dumps(body).encode(), [JSON])
    return reply


_replies(
    "lora.base-stands-in",
    "The base model answers for an adapter that is not there.",
    (CHAT,),
    _stands_in,
    catches=["lora.unknown"],
)
_replies(
    "lora.adapters-refused",
    "Requests to adapters break the server.",
    (CHAT,),
    _refused,
    catches=["lora.answered"],
)
_replies(
    "lora.bad-path-breaks",
    "A folder that does not exist, or none at all, ends in a server error.",
    (LOAD, UNLOAD),
    _bad_path,
    faults=["LORA-005"],
    versions="0.12.0",
    catches=["lora.runtime.bad-path", "lora.runtime.nothing"],
)
_replies(
    "lora.loading-absent",
    "Adapters cannot be loaded at run time although the deployment allows it.",
    (LOAD, UNLOAD),
    lambda *_: Reply(404, NOT_FOUND, [JSON]),
    faults=["LORA-006"],
    catches=["lora.runtime.offered"],
)
_replies(
    "lora.loading-fails",
    "A good adapter cannot be loaded at run time.",
    (LOAD,),
    _not_loadable,
    catches=["lora.runtime.load"],
)
_replies(
    "lora.loaded-in-vain",
    "Loading says success, and the adapter is neither listed nor served.",
    (MODELS, CHAT),
    _never_loaded,
    catches=["lora.runtime.listed", "lora.runtime.answers"],
)
_replies(
    "lora.unloaded-in-vain",
    "An adapter that was unloaded goes on answering.",
    (CHAT,),
    _stays,
    catches=["lora.runtime.gone"],
)


def _one_for_both(answer: Answer, turn: Turn) -> Answer:
    """Whichever adapter is asked for, the one that was loaded first answers."""
    del turn
    answer.content = answer.content.replace(CALLS[1], CALLS[0], 1)
    answer.thoughts = answer.thoughts and answer.thoughts.replace(CALLS[1], CALLS[0], 1)
    return answer


add(
    "lora.first-for-all",
    "The adapter that was loaded first answers for all.",
    {"answer": _one_for_both},
    area="lora",
    profile=ON,
    faults=["vllm-project/vllm#7169"],
    catches=["lora.second.effect"],
)


def _in_turns() -> Callable[[Answer, Turn], Answer]:
    other: list[bool] = []

    def said(answer: Answer, turn: Turn) -> Answer:
        """Once another adapter was asked, its weights stay in the slot."""
        del turn
        if answer.content.startswith(CALLS[1]):
            other.append(True)
        elif other and answer.content.startswith(CALLS[0]):
            answer.content = answer.content.replace(CALLS[0], CALLS[1], 1)
        return answer

    return said


add(
    "lora.slot-kept",
    "Once another adapter was asked, the first one answers as that.",
    {"answer": remembering(_in_turns)},
    area="lora",
    profile=ON,
    faults=["vllm-project/vllm#20873"],
    catches=["lora.turns"],
)


def _loads_nothing(value: Any, request: Any) -> Any:
    """A name that is known is not loaded again, though the answer says so."""
    return Reply(200, b"Success", []) if b"load_inplace" in request.body else value


add(
    "lora.reloaded-in-vain",
    "Loading a name anew says success, and the weights before it go on answering.",
    {"route": only((LOAD,), _loads_nothing)},
    area="lora",
    profile=ON,
    faults=["vllm-project/vllm#42125"],
    catches=["lora.runtime.anew"],
)
