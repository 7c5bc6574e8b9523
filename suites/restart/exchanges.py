"""Requests of the restart suite: the same three before the server is stopped and once it runs again."""

from pytest_vllm import Recording, Request, Server, exchange

OPENING = "The quick brown fox jumps over the lazy dog. The"


def canary(server: Server) -> Request:
    """A greedy continuation with what else was likely."""
    return server.completion(OPENING, max_tokens=24, ignore_eos=True, logprobs=5)


@exchange("restart.models-before")
def restart_models_before(server: Server) -> Request:
    """The list of models."""
    return server.get("/v1/models")


@exchange("restart.models-after", restarted=True)
def restart_models_after(server: Server) -> Request:
    """The list of models once it runs again."""
    return server.get("/v1/models")


@exchange("restart.text-before", alone=True)
def restart_text_before(server: Server) -> Request:
    """The canary."""
    return canary(server)


@exchange("restart.text-again", alone=True)
def restart_text_again(server: Server, restart_text_before: Recording) -> Request:
    """The canary again, which shows whether this server repeats itself at all."""
    del restart_text_before
    return canary(server)


@exchange("restart.text-after", alone=True, restarted=True)
def restart_text_after(server: Server) -> Request:
    """The canary once it runs again."""
    return canary(server)


@exchange("restart.metrics-before")
def restart_metrics_before(server: Server) -> Request:
    """The metrics, which tell the size of the cache."""
    return server.get("/metrics")


@exchange("restart.metrics-after", restarted=True)
def restart_metrics_after(server: Server) -> Request:
    """The metrics once it runs again."""
    return server.get("/metrics")
