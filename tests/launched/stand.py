"""A launcher with all it takes to start the stand-in server."""

from __future__ import annotations

import dataclasses
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from pytest_vllm.launch import docker, engine
from pytest_vllm.launch.registry import launcher_for
from pytest_vllm.launch.sim import SimLauncher
from pytest_vllm.profile.model import Profile, ServerPart
from tests.launched import fake_server
from tests.launched.engines import IMAGE

if TYPE_CHECKING:
    from pytest_vllm.launch.protocol import Handle, LaunchContext, Launcher

SCRIPT = Path(fake_server.__file__)
INSIDE = "/fake_server.py"


@dataclass
class Stand:
    """One launcher and how it is to be used.

    Args:
        launcher: starts the stand-in.
        context: of the run.
        server: entries of `[server]`.
        engine: where its containers are, for launchers that make some.
    """

    launcher: Launcher
    context: LaunchContext
    server: dict[str, Any] = field(default_factory=dict)
    engine: engine.Engine | None = None

    def start(self, mode: str = "well", **args: Any) -> Handle:
        """Start the stand-in in one of its modes, with these serve arguments."""
        named = {name.replace("_", "-"): value for name, value in args.items()}
        profile = Profile(name="stand", server=ServerPart(model=f"fake/{mode}", args=named, **self.server))
        return self.launcher.start(profile, self.context)


def as_process(context: LaunchContext) -> Stand:
    """By the process launcher."""
    return Stand(launcher_for("process"), context, {"command": [sys.executable, str(SCRIPT), "serve"]})


def as_simulator(context: LaunchContext) -> Stand:
    """By the sim launcher, in place of the simulator."""
    return Stand(SimLauncher((sys.executable, str(SCRIPT), "serve")), context)


def as_container(name: str, url: str, context: LaunchContext) -> Stand:
    """By the docker or podman launcher, from an image that holds nothing but Python."""
    server = {
        "image": IMAGE,
        "command": ["python3", INSIDE, "serve"],
        "volumes": [f"{SCRIPT}:{INSIDE}:ro"],
    }
    environ = {**os.environ, "DOCKER_HOST": url, "CONTAINER_HOST": url}
    context = dataclasses.replace(context, environ=environ)
    return Stand(launcher_for(name), context, server, docker.connect(url))


def get(handle: Handle, path: str) -> str:
    """Ask the stand-in."""
    assert handle.url is not None
    with httpx.Client(trust_env=False) as client:
        return client.get(handle.url + path, timeout=10).text
