"""Requests of the metrics suite: traffic of known size, with a scrape on either side."""

from pytest_vllm import Case, Recording, Request, Server, cases, exchange

TOKENS = 8
STOP_TOKEN = 1100
#: Tokens of a prompt that shows in the cache's usage, and of its answer; events after which that is left, and
#: on a machine that takes a thousandth of a second for each.
BUSY, EVENTS, QUICK = 1000, 60, 600
#: Prompts at once, and how many events they bring while one of them brings as many as that.
SEVERAL = 6
busy_scrape = cases("busy_scrape", [{"id": name} for name in ("first", "second", "third")])
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


@exchange("metrics.busy", crowd="busy")
def metrics_busy(server: Server) -> Request:
    """A stream behind a prompt of many blocks; its client leaves once it has seen enough."""
    room = server.max_model_len or 4096
    ids = [1100 + number % 50 for number in range(min(BUSY, room // 2))]
    body = server.completion(ids, max_tokens=min(BUSY, room // 3), ignore_eos=True, stream=True)
    return Request(body.method, body.path, json=body.json, abort_after=QUICK if server.simulated else EVENTS)


@exchange("metrics.busy-first", crowd="busy")
def metrics_busy_first(server: Server) -> Request:
    """Some tokens for a request beside it: once they are there, both have been computed for a while."""
    return server.completion("Hello", max_tokens=16, ignore_eos=True)


@exchange("metrics.busy-scrape", crowd="busy")
def metrics_busy_scrape(server: Server, busy_scrape: Case, metrics_busy_first: Recording) -> Request:
    """The metrics while the stream goes on."""
    del busy_scrape, metrics_busy_first
    return server.get("/metrics")


@exchange("metrics.several", crowd="several")
def metrics_several(server: Server) -> Request:
    """Six streams in one; their client leaves once it has seen enough."""
    prompts = [f"Bird {at}:" for at in range(SEVERAL)]
    most = min(BUSY, (server.max_model_len or 4096) // 3)
    body = server.completion(prompts, max_tokens=most, ignore_eos=True, stream=True)
    events = (QUICK if server.simulated else EVENTS) * SEVERAL
    return Request(body.method, body.path, json=body.json, abort_after=events)


@exchange("metrics.several-first", crowd="several")
def metrics_several_first(server: Server) -> Request:
    """Some tokens for a request beside them."""
    return server.completion("Hello", max_tokens=16, ignore_eos=True)


@exchange("metrics.several-scrape", crowd="several")
def metrics_several_scrape(server: Server, busy_scrape: Case, metrics_several_first: Recording) -> Request:
    """The metrics while they go on."""
    del busy_scrape, metrics_several_first
    return server.get("/metrics")
