"""The first chat of a server's life, and the same once it has answered everything else."""

from __future__ import annotations

from pytest_vllm import Recording, Request, Server, exchange

TOKENS = 8


def short(server: Server) -> Request:
    """A short chat: its prompt is read, and a few tokens follow."""
    return server.chat("Tell me about the sea.", max_tokens=TOKENS)


@exchange("throughput.first-request", first=True)
def throughput_first_request(server: Server) -> Request:
    """The first that a server which was started here is asked to generate."""
    return short(server)


@exchange("throughput.later-request", alone=True)
def throughput_later_request(server: Server) -> Request:
    """The same, once it has answered everything else."""
    return short(server)


@exchange("throughput.later-request-again", alone=True)
def throughput_later_request_again(server: Server, throughput_later_request: Recording) -> Request:
    """And once more."""
    del throughput_later_request
    return short(server)
