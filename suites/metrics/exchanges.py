"""Requests of the metrics suite: traffic of known size, with a scrape on either side."""

from pytest_vllm import Recording, Request, Server, exchange

TOKENS = 8
STOP_TOKEN = 1100
#: More tokens than a GPU's usual cache block of 16 holds.
PROMPT = " ".join(str(number) for number in range(100, 130))


@exchange("metrics.completion", metrics=True)
def metrics_completion(server: Server) -> Request:
    """A completion that ends at its token limit."""
    return server.completion(PROMPT, max_tokens=TOKENS, ignore_eos=True)


@exchange("metrics.stream", metrics=True)
def metrics_stream(server: Server, metrics_completion: Recording) -> Request:
    """A chat stream that ends at its token limit."""
    del metrics_completion
    return server.chat(
        "Hello", max_tokens=TOKENS, ignore_eos=True, stream=True, stream_options={"include_usage": True}
    )


@exchange("metrics.choices", metrics=True)
def metrics_choices(server: Server, metrics_completion: Recording) -> Request:
    """Three choices for one prompt."""
    del metrics_completion
    return server.completion(PROMPT, n=3, temperature=1, max_tokens=TOKENS, ignore_eos=True)


@exchange("metrics.stopped", metrics=True)
def metrics_stopped(server: Server, metrics_completion: Recording) -> Request:
    """A completion that can only be its stop token."""
    del metrics_completion
    return server.completion(
        "Hello", max_tokens=TOKENS, allowed_token_ids=[STOP_TOKEN], stop_token_ids=[STOP_TOKEN]
    )


@exchange("metrics.refused", metrics=True)
def metrics_refused(server: Server, metrics_completion: Recording) -> Request:
    """A completion that is refused."""
    del metrics_completion
    return server.completion("Hello", max_tokens=1, temperature=-1, expect=400)


@exchange("metrics.failed", metrics=True)
def metrics_failed(server: Server, metrics_completion: Recording) -> Request:
    """A request whose constraint fails in the engine, before it is scheduled; a refused one before 0.30."""
    del metrics_completion
    schema = {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}
    constraint = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    if server.version and server.at_least("0.30.0"):
        return server.chat("Hello", max_tokens=TOKENS, response_format=constraint, expect=None)
    return server.chat("Hello", n=-1, expect=None)


@exchange("metrics.scrape")
def metrics_scrape(server: Server, metrics_completion: Recording) -> Request:
    """The metrics, once something was generated: some families appear only then."""
    del metrics_completion
    return server.get("/metrics")
