"""Requests of the health suite: what probes ask, and beside it a real generation."""

from pytest_vllm import Case, Recording, Request, Server, cases, exchange

#: Before it, `/ping` is not a route.
PINGS = "0.7.3"


@exchange("health.health")
def health_health(server: Server) -> Request:
    """What most probes ask."""
    return server.get("/health")


@exchange("health.ping")
def health_ping(server: Server) -> Request:
    """What SageMaker asks."""
    return server.get("/ping", expect=200 if server.at_least(PINGS) else None)


@exchange("health.ping-post")
def health_ping_post(server: Server) -> Request:
    """What SageMaker may ask as well."""
    return Request("POST", "/ping", expect=200 if server.at_least(PINGS) else None)


@exchange("health.version")
def health_version(server: Server) -> Request:
    """The version."""
    return server.get("/version")


health_askings = cases("health_askings", [{"id": str(number)} for number in range(1, 7)])


@exchange("health.version-again")
def health_version_again(server: Server, health_askings: Case) -> Request:
    """The version, each time over a connection of its own: whoever balances load may send it elsewhere."""
    del health_askings
    return server.get("/version", expect=None)


@exchange("health.models")
def health_models(server: Server) -> Request:
    """What load balancers ask."""
    return server.get("/v1/models")


@exchange("health.head")
def health_head(server: Server) -> Request:  # noqa: ARG001 - every exchange takes it
    """The head of the health route only."""
    return Request("HEAD", "/health", expect=None)


@exchange("health.generates")
def health_generates(server: Server) -> Request:
    """One token: the only sign of life that proves an engine."""
    return server.completion("Hello", max_tokens=1, ignore_eos=True, expect=None)


@exchange("health.described")
def health_described(server: Server) -> Request:
    """What the server says of its own routes."""
    return server.get("/openapi.json", expect=None)


@exchange("health.work")
def health_work(server: Server) -> Request:
    """A stream of some length, for others to run beside."""
    return server.completion("Hello", max_tokens=32, ignore_eos=True, stream=True)


@exchange("health.busy")
def health_busy(server: Server, health_generates: Recording) -> Request:
    """The health of a server that generates; after one token, so that other answers have begun."""
    del health_generates
    return server.get("/health")


@exchange("health.busy-again")
def health_busy_again(server: Server, health_busy: Recording) -> Request:
    """The same a moment later. What has something after it is sent early, while much else is generated."""
    del health_busy
    return server.get("/health")


@exchange("health.busy-still")
def health_busy_still(server: Server, health_busy_again: Recording) -> Request:
    """And once more."""
    del health_busy_again
    return server.get("/health")
