"""Requests of the models suite."""

from __future__ import annotations

from typing import Any

from pytest_vllm import Recording, Request, Server, exchange, only_if

#: What a server can -> the route that shows it.
WAYS = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}


@exchange("models.list")
def models_list(server: Server) -> Request:
    """Everything that is served."""
    return server.get("/v1/models")


@exchange("models.again")
def models_again(server: Server) -> Request:
    """The same list again, from another API process where there are several."""
    return server.get("/v1/models")


@exchange("models.served")
def models_served(server: Server, models_list: Recording) -> Request:
    """A word by the last model of the list."""
    path = next((way for name, way in WAYS.items() if server.can(name)), "")
    only_if(path, "no route for words is known here")
    turns = [{"role": "user", "content": "Hello"}]
    given: dict[str, Any] = {"prompt": "Hello"} if path == WAYS["completions"] else {"messages": turns}
    name = models_list.ok["data"][-1]["id"]
    return server.post(path, {**given, "model": name, "max_tokens": 1}, expect=None)


@exchange("models.by-id")
def models_by_id(server: Server) -> Request:
    """One entry by its id, which OpenAI serves and vLLM does not."""
    return server.get(f"/v1/models/{server.model}", expect=None)
