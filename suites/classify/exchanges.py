"""Requests of the classify suite, for servers that class texts."""

from __future__ import annotations

from typing import Any

from pytest_vllm import Request, Server, exchange

GOOD = "I love this wonderful film, it is great."
BAD = "A terrible, slow and useless film, I hated it."
PLAIN = "The film lasts two hours."
LONG = f"{GOOD} {' '.join(f'Scene {number} shows the harbour again.' for number in range(1, 16))}"
TEXTS = (GOOD, LONG, BAD, PLAIN, GOOD)
#: How often they stand in a large batch.
TIMES = 7


def classed(server: Server, given: Any, **more: Any) -> Request:
    """Texts, to be classed."""
    return server.post("/classify", {"input": given, **more})


@exchange("classify.alone")
def classify_alone(server: Server) -> Request:
    """One text."""
    return classed(server, GOOD)


@exchange("classify.batch")
def classify_batch(server: Server) -> Request:
    """Five texts of unequal lengths, one of them twice."""
    return classed(server, list(TEXTS))


@exchange("classify.reversed")
def classify_reversed(server: Server) -> Request:
    """The same in reverse, several times over: a large batch."""
    return classed(server, [*reversed(TEXTS)] * TIMES)


@exchange("classify.probable")
def classify_probable(server: Server) -> Request:
    """The same, as probabilities whatever the server's default is."""
    named = {"use_activation": True} if server.at_least("0.11.1") else {}
    return classed(server, list(TEXTS), **named)


@exchange("classify.nothing")
def classify_nothing(server: Server) -> Request:
    """No text at all."""
    return server.post("/classify", {"input": []}, expect=None)
