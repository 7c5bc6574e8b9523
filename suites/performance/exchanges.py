"""Requests of the performance suite: three streams, alone, and a long prompt twice.

Few and short: they tell what is far off, not how fast the server is.
"""

import secrets

from pytest_vllm import Recording, Request, Server, exchange

TOKENS = 24
#: Tokens of the long prompt, as far as the context holds them.
LONG = 2000


def stream(server: Server) -> Request:
    """A stream of some tokens after a short prompt."""
    return server.completion(
        "Once upon a time",
        max_tokens=TOKENS,
        ignore_eos=True,
        stream=True,
        stream_options={"include_usage": True},
    )


@exchange("performance.first", metrics=True)
def performance_first(server: Server) -> Request:
    """A stream that has the server to itself."""
    return stream(server)


@exchange("performance.second", metrics=True)
def performance_second(server: Server, performance_first: Recording) -> Request:
    """The same once more."""
    del performance_first
    return stream(server)


@exchange("performance.third", metrics=True)
def performance_third(server: Server, performance_second: Recording) -> Request:
    """And once more."""
    del performance_second
    return stream(server)


@exchange("performance.cold", metrics=True)
def performance_cold(server: Server, performance_third: Recording) -> Request:
    """A long prompt that was never sent."""
    del performance_third
    length = min(LONG, (server.max_model_len or LONG * 2) // 2)
    prompt = [1100 + secrets.randbelow(50) for _ in range(length)]
    return server.completion(prompt, max_tokens=1, ignore_eos=True)


@exchange("performance.warm", metrics=True)
def performance_warm(server: Server, performance_cold: Recording) -> Request:
    """The same long prompt again."""
    return server.completion(performance_cold.request.json["prompt"], max_tokens=1, ignore_eos=True)
