"""A server in a Podman container, through Podman's Docker-compatible socket."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.launch.arguments import environment
from pytest_vllm.launch.container import ContainerHandle
from pytest_vllm.launch.docker import connect
from pytest_vllm.launch.protocol import BootError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm.launch.protocol import LaunchContext
    from pytest_vllm.profile.model import Profile

_START = "systemctl --user start podman.socket, or: podman system service --time=0 &"


class PodmanLauncher:
    """Starts the profile's image with Podman."""

    name = "podman"

    def start(self, profile: Profile, context: LaunchContext) -> ContainerHandle:
        """Create and start the container. Raises BootError with the engine's words."""
        url = url_from(environment(context))
        engine = connect(url, start_hint=_START)
        if engine.name != "podman":
            raise BootError(
                f"{url} is {engine.shown}, not podman",
                try_=("use --vllm-launcher=docker", "or point CONTAINER_HOST at podman's socket"),
            )
        return ContainerHandle(engine, profile, context)


def url_from(environ: Mapping[str, str]) -> str:
    """Where Podman's API is: CONTAINER_HOST, this user's socket, the system's."""
    if given := environ.get("CONTAINER_HOST"):
        return given
    own = Path(environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")) / "podman/podman.sock"
    system = Path("/run/podman/podman.sock")
    return f"unix://{system if system.exists() and not own.exists() else own}"
