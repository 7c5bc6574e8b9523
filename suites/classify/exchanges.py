"""Requests of the classify suite, for servers that class texts."""

from __future__ import annotations

from typing import Any

from pytest_vllm import Case, Request, Server, cases, exchange, only_if

GOOD = "I love this wonderful film, it is great."
BAD = "A terrible, slow and useless film, I hated it."
PLAIN = "The film lasts two hours."
LONG = f"{GOOD} {' '.join(f'Scene {number} shows the harbour again.' for number in range(1, 16))}"
TEXTS = (GOOD, LONG, BAD, PLAIN, GOOD)
#: Characters of a text that no batch reads at once: 2,500 tokens and more, where the context holds them.
DEEP, EACH = 12_000, 2.5
#: How often they stand in a large batch.
TIMES = 7

classed_form = cases("classed_form", [{"id": "text"}, {"id": "list"}])


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


@exchange("classify.single")
def classify_single(server: Server, classed_form: Case) -> Request:
    """A long text, as it is and as a list of one."""
    return classed(server, LONG if classed_form.id == "text" else [LONG])


@exchange("classify.raw")
def classify_raw(server: Server) -> Request:
    """The same as the numbers that probabilities are made of."""
    only_if(server.at_least("0.11.1"), "before 0.11.1 such numbers are asked for otherwise")
    return server.post("/classify", {"input": list(TEXTS), "use_activation": False}, expect=None)


@exchange("classify.nothing")
def classify_nothing(server: Server) -> Request:
    """No text at all."""
    return server.post("/classify", {"input": []}, expect=None)


@exchange("classify.deep")
def classify_deep(server: Server) -> Request:
    """A text that is read in several steps, between short ones."""
    only_if(server.max_model_len or 0, "how long the context is, is not known")
    room = min(DEEP, int((server.max_model_len or 0) * EACH))
    only_if(room > 2 * len(LONG), f"a context of {server.max_model_len} tokens holds no longer text")
    return classed(server, [GOOD, f"{GOOD} {'The harbour again. ' * DEEP}"[:room], BAD])
