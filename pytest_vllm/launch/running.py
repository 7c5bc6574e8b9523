"""A container that runs: what `inspect` says about it, less what its image brings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.launch.docker import connect
from pytest_vllm.launch.docker import url_from as docker_url
from pytest_vllm.launch.podman import url_from as podman_url
from pytest_vllm.launch.protocol import BootError
from pytest_vllm.profile.importers import container
from pytest_vllm.profile.importers.draft import Draft
from pytest_vllm.profile.importers.origin import ImportProblem, Origin
from pytest_vllm.profile.importers.shellwords import Word
from pytest_vllm.profile.importers.variables import Variables
from pytest_vllm.profile.words import unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "container:"
_ANYWHERE = ("0.0.0.0", "::")  # noqa: S104 - as the engine says it
_USUAL_SHM = 64 * 1024**2


def read_running(name: str, environ: Mapping[str, str]) -> Draft:
    """The draft of a running (or stopped) container. Raises ImportProblem without an engine or container."""
    engine = _engine(name, environ)
    try:
        found = engine.client.containers.get(name)
        image = engine.client.images.get(found.attrs["Image"]).attrs
    except engine.missing as error:
        known = sorted(one.name for one in engine.client.containers.list(all=True, ignore_removed=True))
        words = unknown("container", name, known) if known else f"no container {name!r}: there is none at all"
        raise ImportProblem(f"{PREFIX}{name}: {words}") from error
    return draft_of(name, found.attrs, image.get("Config") or {}, engine.name, environ)


def _engine(name: str, environ: Mapping[str, str]) -> Any:
    try:
        return connect(docker_url(environ))
    except BootError as first:
        try:
            return connect(podman_url(environ))
        except BootError:
            text = f"{PREFIX}{name}: {first.what}; {first.try_[0]}"
            raise ImportProblem(text) from first


def draft_of(
    name: str, found: Mapping[str, Any], image: Mapping[str, Any], engine: str, environ: Mapping[str, str]
) -> Draft:
    """The draft of an inspection.

    Args:
        name: as it was asked for.
        found: the container's attributes.
        image: its image's `Config`.
        engine: docker or podman.
        environ: the environment, for the origin.
    """
    origin = Origin("", f"{PREFIX}{name}", Path.cwd(), environ)
    draft = Draft(origin, engine, f"{engine}-run")
    config, host = found["Config"], found["HostConfig"]
    draft.set("image", config["Image"], 0)
    draft.deployment["name"] = found["Name"].lstrip("/")
    usual = set(image.get("Env") or ())
    for pair in config.get("Env") or ():
        if pair not in usual:
            key, _, value = pair.partition("=")
            draft.set_env(key, value, 0)
    entrypoint = config.get("Entrypoint") or []
    own = [] if entrypoint == (image.get("Entrypoint") or []) else entrypoint
    command = [] if config.get("Cmd") == image.get("Cmd") and not own else config.get("Cmd") or []
    if not container.runs_vllm(config["Image"], [*entrypoint, *(config.get("Cmd") or [])]):
        raise origin.problem(0, f"the container runs {config['Image']}, not vLLM", "name one that does")
    words = [[Word(word, 0) for word in part] for part in (own, command)]
    container.read_start(draft, words[0], words[1], Variables(origin, draft.note), cleared=True)
    _host(draft, found, host)
    return draft


def _host(draft: Draft, found: Mapping[str, Any], host: Mapping[str, Any]) -> None:
    for mount in found.get("Mounts") or ():
        source = mount.get("Name") if mount.get("Type") == "volume" else mount.get("Source")
        read_only = "" if mount.get("RW", True) else ":ro"
        container.read_volume(draft, f"{source}:{mount['Destination']}{read_only}", 0)
    for request in host.get("DeviceRequests") or ():
        ids = request.get("DeviceIDs") or []
        count = request.get("Count", 0)
        draft.set("gpus", ids or ("all" if count == -1 else count or None), 0)
    _rights(draft, host)
    if host.get("IpcMode") == "host":
        draft.set("ipc", "host", 0)
    elif host.get("ShmSize") not in (None, 0, _USUAL_SHM):
        draft.set("shm", _size(int(host["ShmSize"])), 0)
    ports = []
    for inside, bindings in (host.get("PortBindings") or {}).items():
        for binding in bindings or ():
            address = binding.get("HostIp") or ""
            shown = "" if address in _ANYWHERE else address
            parts = [shown, binding.get("HostPort"), inside.partition("/")[0]]
            if binding.get("HostPort"):  # else the engine chose one
                ports.append(":".join(part for part in parts if part))
    policy = (host.get("RestartPolicy") or {}).get("Name")
    draft.deployment |= {
        "ports": ports,
        "restart": policy if policy not in ("", "no") else None,
        "network": "host" if host.get("NetworkMode") == "host" else None,
        "security-opt": host.get("SecurityOpt") or [],
        "remove": bool(host.get("AutoRemove")),
    }


def _rights(draft: Draft, host: Mapping[str, Any]) -> None:
    for device in host.get("Devices") or ():
        places = [device.get(key) for key in ("PathOnHost", "PathInContainer", "CgroupPermissions")]
        container.read_device(draft, ":".join(one for one in places if one), 0)
    for key, name in (("CapAdd", "cap-add"), ("CapDrop", "cap-drop"), ("GroupAdd", "group-add")):
        for one in host.get(key) or ():
            container.add(draft, name, str(one), 0)
    for limit in host.get("Ulimits") or ():
        container.read_ulimit(draft, f"{limit['Name']}={limit['Soft']}:{limit['Hard']}", 0)
    if host.get("Privileged"):
        draft.set("privileged", value=True, line=0)


def _size(size: int) -> str:
    for unit, scale in (("g", 1024**3), ("m", 1024**2), ("k", 1024)):
        if size % scale == 0:
            return f"{size // scale}{unit}"
    return f"{size}b"
