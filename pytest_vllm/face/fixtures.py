"""Fixtures for people's own tests: a booted server, clients that talk to it, its recordings and metrics."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.face.options import SESSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    import httpx
    import openai

    from pytest_vllm.decide.baseline import Baseline
    from pytest_vllm.declare.explorations import Explored
    from pytest_vllm.declare.measurements import Measurements
    from pytest_vllm.declare.recordings import Recordings
    from pytest_vllm.face.session import GateSession
    from pytest_vllm.face.side import SideServers
    from pytest_vllm.launch.notable import StartupWarning
    from pytest_vllm.preflight.roofline import Roofline
    from pytest_vllm.profile.derived import Figures
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.run.gauges import Reading
    from pytest_vllm.run.restart import Restart
    from pytest_vllm.wire.metrics import Metrics
    from pytest_vllm.wire.policy import Route
    from pytest_vllm.wire.server import Capability, Server

TIMEOUT = 120.0


@pytest.fixture(scope="session")
def vllm_session(request: pytest.FixtureRequest) -> GateSession:
    """This run. Errors when no server was asked for."""
    session = request.config.stash.get(SESSION, None)
    if session is None:
        raise pytest.UsageError("this test needs a server: pass --vllm-profile=NAME or --vllm-url=URL")
    return session


@pytest.fixture(scope="session")
def vllm_profile_name(vllm_session: GateSession) -> str:
    """The name of the profile under test; several profiles parametrise it."""
    return vllm_session.default_profile


@pytest.fixture(scope="session")
def vllm_profile(vllm_session: GateSession, vllm_profile_name: str) -> Profile:
    """The profile under test, as loaded."""
    return vllm_session.every_profile[vllm_profile_name]


@pytest.fixture(scope="session")
def vllm_server(vllm_session: GateSession, vllm_profile_name: str) -> Server:
    """The server under test: URL, model, version, capabilities, request builders.

    Booted once per run and profile, before the first test, also under xdist.
    """
    return vllm_session.state(vllm_profile_name).server


@pytest.fixture(scope="session")
def vllm_capabilities(vllm_server: Server) -> Mapping[str, Capability]:
    """What the server can do, and how that is known, by name."""
    return vllm_server.capabilities


@pytest.fixture
def vllm_recordings(vllm_session: GateSession, vllm_profile_name: str) -> Recordings:
    """The recordings of this run: `.get(key)` and `.of(prefix)`."""
    return vllm_session.recordings(vllm_profile_name)


@pytest.fixture
def vllm_measurements(vllm_session: GateSession, vllm_profile_name: str) -> Measurements:
    """The measurements of this run: `.get(key)` and `.keys()`."""
    return vllm_session.measurements(vllm_profile_name)


@pytest.fixture(scope="session")
def vllm_log(vllm_session: GateSession, vllm_profile_name: str) -> tuple[tuple[float, str], ...]:
    """The server's log until the end of the recording: (seconds since the epoch, line); empty for attach."""
    return vllm_session.state(vllm_profile_name).log()


@pytest.fixture(scope="session")
def vllm_death(vllm_session: GateSession, vllm_profile_name: str) -> str:
    """How the server ended or hung while it was tested, in words; empty when it lived to the end."""
    return vllm_session.state(vllm_profile_name).died


@pytest.fixture(scope="session")
def vllm_startup_warnings(vllm_log: tuple[tuple[float, str], ...]) -> tuple[StartupWarning, ...] | None:
    """What the start logged that matters although it succeeded; None where the server runs already."""
    from pytest_vllm.launch.notable import startup_warnings  # noqa: PLC0415 - only such checks pay for it

    return tuple(startup_warnings(line for _, line in vllm_log)) if vllm_log else None


@pytest.fixture(scope="session")
def vllm_restart(vllm_session: GateSession, vllm_profile_name: str) -> Restart | None:
    """What stopping the server and starting it again showed; None when it was not restarted in this run.

    It is restarted once everything else was recorded, if a selected check takes an exchange that is declared
    with `restarted=True`.
    """
    from pytest_vllm.run.restart import read_restart  # noqa: PLC0415 - only such checks pay for it

    return read_restart(vllm_session.state(vllm_profile_name).folder)


@pytest.fixture(scope="session")
def vllm_figures(vllm_profile: Profile, request: pytest.FixtureRequest) -> Figures | None:
    """What hardware and model of the profile allow: ceilings; None when it names none that are known."""
    from pytest_vllm.profile.derived import figures_of  # noqa: PLC0415 - only checks of speed pay for it

    return figures_of(vllm_profile, request.config.rootpath)


@pytest.fixture(scope="session")
def vllm_baseline(vllm_session: GateSession, vllm_profile_name: str) -> Baseline | None:
    """What `--vllm-baseline` knows of the profile: verdicts and speeds; None without it.

    An empty one where it knows nothing of this profile, so that what is compared with it is undecided.
    """
    path = vllm_session.options.baseline
    found = vllm_session.baselines.get(vllm_profile_name)
    if found is not None or path is None:
        return found
    from pytest_vllm.decide.baseline import Baseline  # noqa: PLC0415 - few runs need it

    return Baseline(vllm_profile_name, "", path.name, simulated=False, verdicts={})


@pytest.fixture(scope="session")
def vllm_roofline(vllm_figures: Figures | None, vllm_log: tuple[tuple[float, str], ...]) -> Roofline | None:
    """How measured speeds stand to what hardware and model allow; None when the profile names none."""
    from pytest_vllm.preflight.roofline import Roofline  # noqa: PLC0415 - only checks of speed pay for it

    return Roofline(vllm_figures, (line for _, line in vllm_log)) if vllm_figures else None


@pytest.fixture(scope="session")
def vllm_timeline(vllm_session: GateSession, vllm_profile_name: str) -> tuple[Reading, ...]:
    """Memory, KV cache and queue from before the start of the server to the end of this run's recording."""
    from pytest_vllm.run.gauges import read_timeline  # noqa: PLC0415 - only such checks pay for it

    return read_timeline(vllm_session.state(vllm_profile_name).folder)


@pytest.fixture(scope="session")
def vllm_again(vllm_session: GateSession, vllm_profile_name: str) -> Recordings:
    """What the canary and tools suites record once more after the load of a soak."""
    from pytest_vllm.declare.recordings import Recordings  # noqa: PLC0415 - only such checks pay for it
    from pytest_vllm.wire.store import RecordingStore  # noqa: PLC0415

    return Recordings(RecordingStore(vllm_session.state(vllm_profile_name).folder / "recordings-again"))


@pytest.fixture(scope="session")
def vllm_explored(vllm_session: GateSession, vllm_profile_name: str) -> Explored:
    """What was asked at random, or again because it had failed; nothing where neither was done."""
    from pytest_vllm.declare.explorations import EXPLORED, Explored, read_explored  # noqa: PLC0415
    from pytest_vllm.wire.store import RecordingStore  # noqa: PLC0415

    folder = vllm_session.state(vllm_profile_name).folder
    return read_explored(folder, RecordingStore(folder / EXPLORED)) or Explored()


@pytest.fixture(scope="session")
def vllm_client_runs(vllm_session: GateSession, vllm_profile_name: str) -> Recordings:
    """What became of real clients, and their exchanges as the relay recorded them."""
    from pytest_vllm.declare.recordings import Recordings  # noqa: PLC0415 - only such checks pay for it
    from pytest_vllm.wire.store import RecordingStore  # noqa: PLC0415

    return Recordings(RecordingStore(vllm_session.state(vllm_profile_name).folder / "clients"))


@pytest.fixture(scope="session")
def vllm_live_server(vllm_session: GateSession, vllm_server: Server) -> Server:
    """The server under test, which can be talked to; skips under `--vllm-replay`."""
    if vllm_session.replaying:
        pytest.skip("this test talks to a live server, and a replay has none")
    return vllm_server


@pytest.fixture(scope="session")
def vllm_servers(vllm_session: GateSession) -> Iterator[SideServers]:
    """Servers of several profiles at once, to compare them: call it with the names of profiles."""
    from contextlib import ExitStack  # noqa: PLC0415 - few tests compare servers

    from pytest_vllm.face.side import SideServers  # noqa: PLC0415

    with ExitStack() as stack:
        yield SideServers(vllm_session, stack)


@pytest.fixture(scope="session")
def vllm_http(vllm_live_server: Server, vllm_session: GateSession) -> Iterator[httpx.Client]:
    """An httpx client with the server's base URL and key: `vllm_http.get("/health")`."""
    import httpx  # noqa: PLC0415

    key = vllm_live_server.api_key
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    route, way = _way(vllm_live_server, httpx.Client, vllm_session)
    with httpx.Client(base_url=route.http_url, headers=headers, timeout=TIMEOUT, **way) as client:
        yield client


@pytest.fixture(scope="session")
def vllm_client(vllm_live_server: Server, vllm_session: GateSession) -> Iterator[openai.OpenAI]:
    """An openai client of the server; it does not retry, so that a failure is seen."""
    import openai  # noqa: PLC0415

    route, way = _way(vllm_live_server, openai.DefaultHttpxClient, vllm_session)
    with (
        openai.DefaultHttpxClient(**way) as carrier,
        openai.OpenAI(**_openai(vllm_live_server, route), http_client=carrier) as client,
    ):
        yield client


@pytest.fixture
def vllm_async_client(vllm_live_server: Server, vllm_session: GateSession) -> openai.AsyncOpenAI:
    """An async openai client of the server, for whatever plugin runs async tests; it does not retry.

    Nothing is left to be closed: none of its connections outlives its request.
    """
    import openai  # noqa: PLC0415

    route, way = _way(vllm_live_server, openai.DefaultAsyncHttpxClient, vllm_session)
    carrier = openai.DefaultAsyncHttpxClient(**way)
    return openai.AsyncOpenAI(**_openai(vllm_live_server, route), http_client=carrier)


@pytest.fixture
def vllm_metrics(vllm_http: httpx.Client) -> Callable[[], AbstractContextManager[MetricsDelta]]:
    """How counters move, in a `with` block: `delta("vllm:prompt_tokens_total")` after it."""

    @contextmanager
    def measure() -> Iterator[MetricsDelta]:
        delta = MetricsDelta(vllm_http)
        yield delta
        delta.end()

    return measure


class MetricsDelta:
    """How far counters moved between entering and leaving the `with` block."""

    def __init__(self, client: httpx.Client) -> None:
        """Scrape now."""
        self._client = client
        self.before = self._scrape()
        self.after: Metrics | None = None

    def end(self) -> None:
        """Scrape again."""
        self.after = self._scrape()

    def __call__(self, name: str, **labels: str) -> float:
        """The growth of a counter. Raises LookupError on a name that the server does not export."""
        if self.after is None:
            raise LookupError("ask for a delta after the `with vllm_metrics()` block has ended")
        grown = self.after.delta(self.before, name, **labels)
        if grown is None:
            raise LookupError(f"the server exports no metric {name!r} with labels {labels}")
        return grown

    def _scrape(self) -> Metrics:
        from pytest_vllm.wire.metrics import Metrics  # noqa: PLC0415

        return Metrics(self._client.get("/metrics").raise_for_status().text)


def _way(server: Server, client: type, session: GateSession) -> tuple[Route, dict[str, Any]]:
    """The route to the server, and settings of an HTTP client that follows it and is evidence of a failure.

    The client's own library makes the transport: newer versions of openai use another one than httpx.
    """
    from pytest_vllm.wire.policy import route_to  # noqa: PLC0415 - only such tests pay for it

    library: Any = next(
        sys.modules[one.__module__.partition(".")[0]]
        for one in client.__mro__
        if one.__module__.startswith("httpx")
    )
    route = route_to(server.url, server.access)
    way: dict[str, Any] = {"verify": route.tls} if route.tls else {}
    if route.unix:
        way["uds"] = route.unix
    if route.proxy:
        login = {"Proxy-Authorization": route.proxy.login} if route.proxy.login else {}
        way["proxy"] = library.Proxy(route.proxy.url, headers=login)
    later = issubclass(client, library.AsyncClient)
    made = library.AsyncHTTPTransport if later else library.HTTPTransport
    if (
        later
    ):  # no connection outlives its request: a plugin may run the test in another loop than its fixtures
        way["limits"] = library.Limits(max_keepalive_connections=0)
    hooks = session.traffic.hooks(library, later=later)
    return route, {"transport": made(**way), "trust_env": False, "event_hooks": hooks}


def _openai(server: Server, route: Route) -> dict[str, Any]:
    return {
        "base_url": f"{route.http_url}/v1",
        "api_key": server.api_key or "not-needed",
        "max_retries": 0,
        "timeout": TIMEOUT,
    }
