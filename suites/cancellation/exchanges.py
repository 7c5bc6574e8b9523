"""Requests of the cancellation suite: asked for at length, then left by their client."""

from typing import Any

from pytest_vllm import Recording, Request, Server, cases, exchange

PROMPT = "One, two, three,"
#: Long enough that a server which goes on generating is seen at it.
MANY = 4000
#: With fewer a client may come too late to leave.
ENOUGH = 1000
NEIGHBOUR = 40

cancel_round = cases(
    "cancel_round", [{"id": name} for name in ("first", "second", "third", "fourth", "fifth")]
)


def many(server: Server) -> int:
    """As many tokens as half the context holds, a few thousand at most."""
    return min(MANY, (server.max_model_len or MANY * 2) // 2)


def asked(recording: Recording) -> int:
    """How many tokens the client that left had asked for."""
    body = recording.request.json
    return int(body["max_tokens"]) * int(body.get("n", 1))


def left(server: Server, *, abort_after: int, **params: Any) -> Request:
    """A long stream whose client goes away after some events."""
    body = server.completion(PROMPT, max_tokens=many(server), ignore_eos=True, stream=True, **params)
    return Request(body.method, body.path, json=body.json, abort_after=abort_after)


@exchange("cancellation.stream", metrics=True)
def cancellation_stream(server: Server) -> Request:
    """A stream that is left after three events."""
    return left(server, abort_after=3)


@exchange("cancellation.whole", metrics=True)
def cancellation_whole(server: Server) -> Request:
    """An answer whose client waits for half a second only."""
    body = server.completion(PROMPT, max_tokens=many(server), ignore_eos=True)
    return Request(body.method, body.path, json=body.json, timeout=0.5, expect=None)


@exchange("cancellation.choices", metrics=True)
def cancellation_choices(server: Server) -> Request:
    """A stream of four choices that is left after eight events."""
    return left(server, abort_after=8, n=4, temperature=1, seed=1)


@exchange("cancellation.round", crowd="left")
def cancellation_round(server: Server, cancel_round: object) -> Request:
    """One of several streams that are left after two events."""
    del cancel_round
    return left(server, abort_after=2)


@exchange("cancellation.after-round")
def cancellation_after_round(server: Server, cancellation_round: Recording) -> Request:
    """One token, asked for once a stream was left."""
    del cancellation_round
    return server.completion("Hello", max_tokens=1)


@exchange("cancellation.after-neighbour")
def cancellation_after_neighbour(server: Server, cancellation_neighbour: Recording) -> Request:
    """One token after it. What has something after it is sent early, beside the streams that are left."""
    del cancellation_neighbour
    return server.completion("Hello", max_tokens=1)


@exchange("cancellation.neighbour", crowd="left")
def cancellation_neighbour(server: Server) -> Request:
    """A stream that runs to its end while others, sent at the same moment, are left."""
    return server.completion(
        PROMPT,
        max_tokens=NEIGHBOUR,
        ignore_eos=True,
        stream=True,
        stream_options={"include_usage": True},
    )
