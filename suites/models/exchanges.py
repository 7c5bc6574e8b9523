"""Requests of the models suite."""

from __future__ import annotations

from pytest_vllm import Request, Server, exchange


@exchange("models.list")
def models_list(server: Server) -> Request:
    """Everything that is served."""
    return server.get("/v1/models")


@exchange("models.again")
def models_again(server: Server) -> Request:
    """The same list again, from another API process where there are several."""
    return server.get("/v1/models")


@exchange("models.by-id")
def models_by_id(server: Server) -> Request:
    """One entry by its id, which OpenAI serves and vLLM does not."""
    return server.get(f"/v1/models/{server.model}", expect=None)
