"""Requests of the crowd suite: each alone, and all of them at the same moment."""

from __future__ import annotations

from pytest_vllm import Case, Recording, Request, Server, cases, exchange

from .kinds import BEGUN, BESIDE_LONG, KINDS, asked

crowd_kind = cases("crowd_kind", [{"id": kind} for kind in KINDS])
crowd_short = cases("crowd_short", [{"id": kind} for kind in KINDS if kind != "long"])
crowd_beside_long = cases("crowd_beside_long", [{"id": kind} for kind in BESIDE_LONG])
#: Who draws at random beside the others, and is not judged.
crowd_wild = cases(
    "crowd_wild",
    [{"id": "hot", "temperature": 1.8, "top_p": 1.0}, {"id": "narrow", "temperature": 0.7, "top_p": 0.8}],
)


@exchange("crowd.alone", alone=True)
def crowd_alone(
    server: Server,
    crowd_kind: Case,
    canary_colours: Recording,
    tokenize_word: Recording,
    tokenize_other_word: Recording,
) -> Request:
    """A request of the crowd with the server to itself."""
    return _asked(server, crowd_kind.id, canary_colours, tokenize_word, tokenize_other_word)


@exchange("crowd.short", crowd="short")
def crowd_short_(
    server: Server,
    crowd_short: Case,
    canary_colours: Recording,
    tokenize_word: Recording,
    tokenize_other_word: Recording,
) -> Request:
    """The same request at the moment at which all the others with short prompts are sent."""
    return _asked(server, crowd_short.id, canary_colours, tokenize_word, tokenize_other_word)


@exchange("crowd.beside-long", crowd="long")
def crowd_beside_long_(
    server: Server,
    crowd_beside_long: Case,
    canary_colours: Recording,
    tokenize_word: Recording,
    tokenize_other_word: Recording,
) -> Request:
    """The same request at the moment at which a long prompt is sent."""
    return _asked(server, crowd_beside_long.id, canary_colours, tokenize_word, tokenize_other_word)


@exchange("crowd.wild", crowd="short")
def crowd_wild_(server: Server, crowd_wild: Case) -> Request:
    """Who draws at random beside them."""
    drawing = {name: crowd_wild[name] for name in ("temperature", "top_p")}
    return server.completion(
        f"{BEGUN}Once upon a time", expect=None, max_tokens=12, ignore_eos=True, **drawing
    )


def _asked(server: Server, kind: str, colours: Recording, word: Recording, other: Recording) -> Request:
    return asked(server, kind, colours.ok["tokens"], word.ok["tokens"][-1], other.ok["tokens"][-1])
