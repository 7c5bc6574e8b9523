"""Requests of the profile suite."""

from pytest_vllm import Request, Server, exchange


@exchange("profile.models")
def profile_models(server: Server) -> Request:
    """The list of served models."""
    return server.get("/v1/models")


@exchange("profile.version")
def profile_version(server: Server) -> Request:
    """The server's version."""
    return server.get("/version")


@exchange("profile.still-there", alone=True)
def profile_still_there(server: Server) -> Request:
    """A tiny answer, asked for once everything else was recorded."""
    if server.can("embeddings") and not server.can("completions"):
        return server.post("/v1/embeddings", {"input": "Hello"})
    return server.completion("Hello", max_tokens=1)
