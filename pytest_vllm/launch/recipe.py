"""From a profile and an image to the arguments of the engine's create call."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.launch.arguments import environment, fixed_port, order_for
from pytest_vllm.launch.engine import labels_for
from pytest_vllm.launch.gpus import GpuRequest, gpu_request
from pytest_vllm.launch.ports import LOOPBACK
from pytest_vllm.launch.protocol import BootError
from pytest_vllm.profile.flagwords import takes_position

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm.launch.engine import Engine
    from pytest_vllm.launch.protocol import LaunchContext
    from pytest_vllm.profile.model import Profile, ServerPart

INSIDE = 8000
#: Inside the container only: what is published is on the loopback.
ANYWHERE = "0.0.0.0"  # noqa: S104


@dataclass(frozen=True)
class Recipe:
    """One container to be made.

    Args:
        create: arguments of the create call.
        shown: the command line for people, secrets replaced.
        secrets: what must never be printed.
        gpus: how GPUs were asked for.
        notes: what was changed against the profile, and why.
    """

    create: Mapping[str, Any] = field(repr=False)
    shown: str
    secrets: tuple[str, ...] = field(repr=False)
    gpus: GpuRequest | None
    notes: tuple[str, ...]


def recipe_for(
    engine: Engine, profile: Profile, context: LaunchContext, image: Mapping[str, Any], name: str
) -> Recipe:
    """The container for a profile, given the image's configuration (`Config` of its inspection)."""
    server = profile.server
    entrypoint, command = start_of(server, image.get("Entrypoint") or [])
    whole = (*(image.get("Entrypoint") or [] if entrypoint is None else entrypoint), *command)
    order = order_for(profile, context, host=ANYWHERE, port=INSIDE, positional=takes_position(whole))
    gpus = gpu_request(engine, server.gpus)
    notes: list[str] = []
    create: dict[str, Any] = {
        "image": server.image,
        "name": name,
        "command": [*command, *order.arguments],
        "environment": {**order.env, **(gpus.env if gpus else {})},
        "labels": labels_for(context, profile.name),
        "ports": {f"{INSIDE}/tcp": (LOOPBACK, fixed_port(profile))},
        "volumes": [volume_of(text, engine, environment(context)) for text in server.volumes],
        **(gpus.create if gpus else {}),
    }
    if entrypoint is not None:
        create["entrypoint"] = entrypoint
    if engine.name == "docker":
        # whatever the daemon's default is: only this driver's log can be followed everywhere
        create["log_config"] = {"type": "json-file", "config": {}}
    labels = ["label=disable"] if engine.name == "podman" and gpus else []
    if security := list(dict.fromkeys([*labels, *profile.deployment.security_opt])):
        create["security_opt"] = security
    create |= host_of(server)
    if server.ipc:
        create["ipc_mode"] = server.ipc
    if server.shm and server.ipc == "host":
        notes.append('shm is left out: with ipc = "host" the container has the host\'s /dev/shm')
    elif server.shm:
        create["shm_size"] = server.shm
    return Recipe(create, order.shown(whole), order.secrets, gpus, tuple(notes))


def host_of(server: ServerPart) -> dict[str, Any]:
    """Devices, rights and limits, as the create call takes them."""
    given: dict[str, Any] = {
        "devices": list(server.devices),
        "cap_add": list(server.cap_add),
        "cap_drop": list(server.cap_drop),
        "group_add": list(server.group_add),
        "ulimits": [_ulimit(name, text) for name, text in server.ulimits.items()],
        "privileged": server.privileged,
        "runtime": server.runtime,
        "user": server.user,
        "working_dir": server.workdir,
    }
    return {key: value for key, value in given.items() if value}


def _ulimit(name: str, text: str) -> dict[str, Any]:
    """`nofile = "1024:4096"`: soft and hard limit. Raises BootError for what is not a number."""
    soft, _, hard = text.partition(":")
    try:
        return {"Name": name, "Soft": int(soft), "Hard": int(hard or soft)}
    except ValueError as error:
        shape = '[server] ulimits = { memlock = "-1", nofile = "1024:4096" }'
        raise BootError(f"the limit {name} = {text!r} is not a number", try_=(shape,)) from error


def start_of(server: ServerPart, image: Sequence[str]) -> tuple[list[str] | None, list[str]]:
    """Entrypoint to set (None keeps the image's) and what stands before the arguments.

    An image that starts vLLM by itself gets the arguments alone; one that does not, or whose entrypoint only
    wraps a command, gets `vllm serve`. A command in the profile is a whole program: it takes the place of an
    entrypoint that would start vLLM.
    """
    starts_vllm = list(image[-2:]) == ["vllm", "serve"] or any("api_server" in word for word in image)
    entrypoint, command = server.entrypoint, list(server.command or ())
    if entrypoint is None and starts_vllm and command:
        entrypoint = []
    if entrypoint is None and not command:
        return None, [] if starts_vllm else ["vllm", "serve"]
    if entrypoint == [] and command:
        # engines differ in what an empty entrypoint means; a program in its place does not
        entrypoint, command = command[:1], command[1:]
    return list(entrypoint) if entrypoint else None, command


def volume_of(text: str, engine: Engine, environ: Mapping[str, str]) -> str:
    """`~/models:/models:ro` with the home folder filled in. Raises BootError for a missing folder."""
    source, colon, rest = text.partition(":")
    if not colon:
        raise BootError(
            f"volume {text!r} names no place inside the container",
            try_=(f'[server] volumes = ["{text}:/models:ro"]',),
        )
    if source.startswith("~"):
        source = environ.get("HOME", os.path.expanduser("~")) + source[1:]  # noqa: PTH111 - "~" itself
    if not source.startswith(("/", ".")):
        return text
    path = Path(source).absolute()
    if engine.local and not path.exists():
        raise BootError(
            f"the volume {path} is not there",
            means="the engine would make an empty folder of that name, owned by root",
            try_=(f"mkdir -p {path}", "or correct [server] volumes"),
        )
    return f"{path}:{rest}"
