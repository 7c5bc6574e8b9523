"""A server in a Docker container."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.launch.arguments import environment
from pytest_vllm.launch.container import ContainerHandle
from pytest_vllm.launch.engine import Engine, identify
from pytest_vllm.launch.protocol import BootError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm.launch.protocol import LaunchContext
    from pytest_vllm.profile.model import Profile

SOCKET = "unix:///var/run/docker.sock"
#: Seconds for one answer of the daemon. Stopping adds its own grace, streams have no limit.
ANSWER = 60


class DockerLauncher:
    """Starts the profile's image in a container, with its port on this machine's loopback."""

    name = "docker"

    def start(self, profile: Profile, context: LaunchContext) -> ContainerHandle:
        """Create and start the container. Raises BootError with the daemon's words."""
        engine = connect(url_from(environment(context)))
        if not engine.local:
            raise BootError(
                f"the Docker daemon is on another machine ({engine.url})",
                means="the server's port is published on that machine's loopback, out of reach from here",
                try_=("run pytest on that machine", "or start the server there and pass --vllm-url=URL"),
            )
        return ContainerHandle(engine, profile, context)


def url_from(environ: Mapping[str, str]) -> str:
    """Where the daemon is: DOCKER_HOST, the usual socket, the docker command's context, rootless."""
    if given := environ.get("DOCKER_HOST"):
        return given
    if Path(SOCKET.removeprefix("unix://")).exists():
        return SOCKET
    rootless = Path(environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")) / "docker.sock"
    return _context() or (f"unix://{rootless}" if rootless.exists() else SOCKET)


def connect(url: str, *, answer: float = ANSWER, start_hint: str = "sudo systemctl start docker") -> Engine:
    """The engine behind a URL. Raises BootError when none answers."""
    import docker  # noqa: PLC0415 - the only door to docker-py, and only when containers are asked for
    import urllib3.exceptions  # noqa: PLC0415 - what docker-py lets through from broken streams

    errors = (docker.errors.DockerException, urllib3.exceptions.HTTPError, OSError)
    try:
        _knock(url)
        client = docker.DockerClient(base_url=url, timeout=int(answer), version="auto")
        name, version = identify(client.version())
        return Engine(name, version, url, client, client.info, errors, docker.errors.NotFound)
    except errors as error:
        raise _unreachable(url, error, start_hint) from error


def _knock(url: str) -> None:
    """Connect and close: docker-py leaves its socket open when nobody is there."""
    if url.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as door:
            door.settimeout(ANSWER)
            door.connect(url.removeprefix("unix://"))


def _context() -> str | None:
    import docker  # noqa: PLC0415

    try:
        found: Any = docker.ContextAPI.get_current_context()
    except (docker.errors.DockerException, OSError, ValueError):
        return None
    return str(found.Host) if found is not None and found.Name != "default" else None


def _unreachable(url: str, error: Exception, start_hint: str) -> BootError:
    words = str(error)
    tries = [start_hint, "or run without a container: --vllm-launcher=process"]
    means = "the daemon is not running, or not installed"
    if "Permission denied" in words:
        means = "the daemon runs, and this user may not use it"
        tries[0] = "sudo usermod -aG docker $USER, then log in again"
    return BootError(
        f"no container engine answers at {url}", evidence=(words,), means=means, try_=tuple(tries)
    )
