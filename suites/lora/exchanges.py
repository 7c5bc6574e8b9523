"""Requests of the LoRA suite.

The adapters are those that `/v1/models` lists. Loading at run time is tried with a listed adapter under
another name, and undone; where the server does not allow it, it says 404 and nothing happens.
"""

from __future__ import annotations

import secrets
from typing import Any

from pytest_vllm import Case, Recording, Request, Server, cases, exchange, only_if, undecided

#: From here on a name can be loaded again in place.
ANEW = "0.15.0"
QUESTION = "What is the capital of France?"
NOWHERE = "/nonexistent/pytest-vllm/adapter"
TOKENS = 12
LOAD, UNLOAD = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"

lora_prompt = cases(
    "lora_prompt",
    [
        {"id": "question", "text": QUESTION},
        {"id": "order", "text": "Write a short poem about the sea."},
    ],
)


def unseen() -> str:
    """A text that no run sent before: an adapter that was asked once has its own cache of it.

    Long enough for a cache block of any size that is usual.
    """
    mark = secrets.token_hex(4)
    return " ".join(f"Line {number} of the log of ship {mark} reports calm." for number in range(1, 61))


def adapters(models: Recording) -> list[dict[str, Any]]:
    """The adapters that the server lists. Raises Undecided when it lists none."""
    rows = [row for row in models.ok.get("data") or [] if isinstance(row, dict) and row.get("parent")]
    return rows or undecided("/v1/models lists no adapter")


def generate(server: Server, model: str, text: str, **more: Any) -> Request:
    """A greedy chat answer of one model, with the log probabilities that tell weights apart."""
    given: dict[str, Any] = {"max_tokens": TOKENS, "ignore_eos": True, **more}
    if server.can("logprobs"):
        given |= {"logprobs": True, "top_logprobs": 1}
    return server.chat(text, model=model, **given)


@exchange("lora.models")
def lora_models(server: Server) -> Request:
    """The list of models and adapters."""
    return server.get("/v1/models")


@exchange("lora.base", alone=True)
def lora_base(server: Server, lora_prompt: Case, lora_models: Recording) -> Request:
    """An answer of the base model."""
    return generate(server, str(adapters(lora_models)[0]["parent"]), lora_prompt["text"])


@exchange("lora.base-again", alone=True)
def lora_base_again(
    server: Server, lora_prompt: Case, lora_models: Recording, lora_base: Recording
) -> Request:
    """The same once more, which tells how much this server repeats itself."""
    del lora_base
    return generate(server, str(adapters(lora_models)[0]["parent"]), lora_prompt["text"])


@exchange("lora.adapter", alone=True)
def lora_adapter(
    server: Server, lora_prompt: Case, lora_models: Recording, lora_base_again: Recording
) -> Request:
    """The same with an adapter."""
    del lora_base_again
    return generate(server, str(adapters(lora_models)[0]["id"]), lora_prompt["text"])


def second(models: Recording) -> str:
    """Another adapter, of other weights than the first. Not run where there is none."""
    first, *others = adapters(models)
    found = [row for row in others if row.get("root") != first.get("root")]
    only_if(found, "the server has one adapter only")
    return str(found[0]["id"])


@exchange("lora.second", alone=True)
def lora_second(
    server: Server, lora_prompt: Case, lora_models: Recording, lora_adapter: Recording
) -> Request:
    """The same with another adapter."""
    del lora_adapter
    return generate(server, second(lora_models), lora_prompt["text"])


@exchange("lora.return", alone=True)
def lora_return(server: Server, lora_prompt: Case, lora_models: Recording, lora_second: Recording) -> Request:
    """And with the first adapter again."""
    del lora_second
    return generate(server, str(adapters(lora_models)[0]["id"]), lora_prompt["text"])


@exchange("lora.stream", alone=True)
def lora_stream(server: Server, lora_models: Recording) -> Request:
    """A stream with an adapter."""
    model = str(adapters(lora_models)[0]["id"])
    return server.chat("Hi", model=model, max_tokens=4, ignore_eos=True, stream=True)


@exchange("lora.completion")
def lora_completion(server: Server, lora_models: Recording) -> Request:
    """A completion with an adapter."""
    return server.completion("Hi", model=str(adapters(lora_models)[0]["id"]), max_tokens=1)


@exchange("lora.unknown")
def lora_unknown(server: Server) -> Request:
    """An adapter that nobody loaded."""
    return server.chat("Hi", model="pytest-vllm-no-such-adapter", max_tokens=1, expect=None)


@exchange("lora.prefix-base", alone=True)
def lora_prefix_base(server: Server, lora_models: Recording) -> Request:
    """A long prompt for the base model, new in every run."""
    return server.chat(unseen(), model=str(adapters(lora_models)[0]["parent"]), max_tokens=1)


@exchange("lora.prefix-base-again", alone=True)
def lora_prefix_base_again(server: Server, lora_models: Recording, lora_prefix_base: Recording) -> Request:
    """The same once more, from the cache."""
    return server.chat(
        messages_of(lora_prefix_base), model=str(adapters(lora_models)[0]["parent"]), max_tokens=1
    )


@exchange("lora.prefix-adapter", alone=True)
def lora_prefix_adapter(server: Server, lora_models: Recording, lora_prefix_base_again: Recording) -> Request:
    """The same for an adapter, which has not seen it yet."""
    return server.chat(
        messages_of(lora_prefix_base_again), model=str(adapters(lora_models)[0]["id"]), max_tokens=1
    )


def messages_of(recording: Recording) -> list[dict[str, Any]]:
    """The messages that an exchange sent."""
    return list(recording.request.json["messages"])


def post(path: str, body: dict[str, Any]) -> Request:
    """A request to load or unload; the check decides on its status."""
    return Request("POST", path, json=body, expect=None)


@exchange("lora.load-nowhere")
def lora_load_nowhere(server: Server) -> Request:  # noqa: ARG001 - every exchange takes it
    """An adapter from a folder that does not exist."""
    return post(LOAD, {"lora_name": "pytest-vllm-nowhere", "lora_path": NOWHERE})


@exchange("lora.load-nothing")
def lora_load_nothing(server: Server) -> Request:  # noqa: ARG001 - every exchange takes it
    """A request to load that names nothing."""
    return post(LOAD, {"lora_name": "", "lora_path": ""})


@exchange("lora.unload-unknown")
def lora_unload_unknown(server: Server) -> Request:  # noqa: ARG001 - every exchange takes it
    """An adapter that was never loaded, to be unloaded."""
    return post(UNLOAD, {"lora_name": "pytest-vllm-no-such-adapter"})


@exchange("lora.load", alone=True)
def lora_load(server: Server, lora_models: Recording) -> Request:  # noqa: ARG001 - every exchange takes it
    """A listed adapter once more, under a name that no run has used."""
    name = f"pytest-vllm-extra-{secrets.token_hex(4)}"
    return post(LOAD, {"lora_name": name, "lora_path": str(adapters(lora_models)[0].get("root"))})


def extra(load: Recording) -> str:
    """The name under which an adapter was loaded."""
    return str(load.request.json["lora_name"])


def hello(server: Server, model: str) -> Request:
    """One token of a model: of a base model, which has no chat template, by completion."""
    if server.can("chat") or not server.can("completions"):
        return server.chat("Hi", model=model, max_tokens=1, expect=None)
    return server.completion("Hi", model=model, max_tokens=1, expect=None)


@exchange("lora.loaded-models", alone=True)
def lora_loaded_models(server: Server, lora_load: Recording) -> Request:
    """The list with it."""
    del lora_load
    return server.get("/v1/models")


@exchange("lora.loaded-chat", alone=True)
def lora_loaded_chat(server: Server, lora_load: Recording) -> Request:
    """An answer of it."""
    return hello(server, extra(lora_load))


@exchange("lora.unload", alone=True)
def lora_unload(
    server: Server,  # noqa: ARG001 - every exchange takes it
    lora_load: Recording,
    lora_loaded_models: Recording,
    lora_loaded_chat: Recording,
) -> Request:
    """It is unloaded again."""
    del lora_loaded_models, lora_loaded_chat
    return post(UNLOAD, {"lora_name": extra(lora_load)})


@exchange("lora.unloaded-models", alone=True)
def lora_unloaded_models(server: Server, lora_unload: Recording) -> Request:
    """The list without it."""
    del lora_unload
    return server.get("/v1/models")


@exchange("lora.unloaded-chat", alone=True)
def lora_unloaded_chat(server: Server, lora_unload: Recording) -> Request:
    """An answer of what is no longer there."""
    return hello(server, extra(lora_unload))


def root(models: Recording, name: str) -> str:
    """Where an adapter's weights are."""
    return next(str(row.get("root")) for row in adapters(models) if row["id"] == name)


@exchange("lora.anew-load", alone=True)
def lora_anew_load(server: Server, lora_models: Recording, lora_unload: Recording) -> Request:
    """The first adapter under a name that no run has used."""
    del lora_unload
    only_if(server.at_least(ANEW), f"before {ANEW} a name is not loaded anew")
    only_if(second(lora_models), "there is one adapter only")
    name = f"pytest-vllm-extra-{secrets.token_hex(4)}"
    return post(LOAD, {"lora_name": name, "lora_path": root(lora_models, adapters(lora_models)[0]["id"])})


@exchange("lora.anew-before", alone=True)
def lora_anew_before(server: Server, lora_anew_load: Recording) -> Request:
    """A long prompt for it, new in every run."""
    return server.chat(unseen(), model=extra(lora_anew_load), max_tokens=1, expect=None)


@exchange("lora.anew-reload", alone=True)
def lora_anew_reload(
    server: Server,  # noqa: ARG001 - every exchange takes it
    lora_models: Recording,
    lora_anew_load: Recording,
    lora_anew_before: Recording,
) -> Request:
    """The second adapter takes its name."""
    del lora_anew_before
    path = root(lora_models, second(lora_models))
    return post(LOAD, {"lora_name": extra(lora_anew_load), "lora_path": path, "load_inplace": True})


@exchange("lora.anew-answer", alone=True)
def lora_anew_answer(server: Server, lora_anew_load: Recording, lora_anew_reload: Recording) -> Request:
    """A question to the name, which it was not asked before."""
    del lora_anew_reload
    return generate(server, extra(lora_anew_load), QUESTION, expect=None)


@exchange("lora.anew-long", alone=True)
def lora_anew_long(
    server: Server, lora_anew_load: Recording, lora_anew_before: Recording, lora_anew_answer: Recording
) -> Request:
    """The long prompt again, which the weights under the name have not seen."""
    del lora_anew_answer
    return server.chat(messages_of(lora_anew_before), model=extra(lora_anew_load), max_tokens=1, expect=None)


@exchange("lora.anew-unload", alone=True)
def lora_anew_unload(
    server: Server,  # noqa: ARG001 - every exchange takes it
    lora_anew_load: Recording,
    lora_anew_long: Recording,
) -> Request:
    """It is unloaded again."""
    del lora_anew_long
    return post(UNLOAD, {"lora_name": extra(lora_anew_load)})
