"""What a compose service asks of its host: GPUs, devices, rights, volumes, ports, limits."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import container

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.yamlaccount import Part
    from pytest_vllm.profile.importers.yamlnodes import Node

    Filled = Callable[[Part], str]


def read_host(draft: Draft, part: Part, text: Filled) -> None:
    """Volumes, shared memory, devices, rights, ports."""
    for volume in part.get("volumes").items:
        if volume.is_table:
            parts = {key: text(one) for key, one in volume.pairs if not one.is_table}
            read_only = ",readonly" if parts.get("read_only") == "true" else ""
            mount = ",".join(f"{key}={parts.get(key, '')}" for key in ("type", "source", "target"))
            container.read_mount(draft, mount + read_only, volume.line)
        else:
            container.read_volume(draft, text(volume), volume.line)
    for key, read in (("ipc", container.read_ipc), ("shm_size", container.read_shm)):
        if part.get(key):
            read(draft, text(part.get(key)), part.get(key).line)
    _rights(draft, part, text)
    draft.deployment |= {
        "ports": [_port(one, text) for one in part.get("ports").items],
        "restart": text(part.get("restart")) or None,
        "network": text(part.get("network_mode")) or None,
        "security-opt": [text(one) for one in part.get("security_opt").items],
    }
    for limit in (part.get("mem_limit"), part.get("deploy", "resources", "limits", "memory")):
        if limit:
            container.read_memory(draft, text(limit), limit.line)
    _healthcheck(draft, part.get("healthcheck"))


def _rights(draft: Draft, part: Part, text: Filled) -> None:
    """Devices, capabilities, groups, limits, and who it runs as."""
    _devices(draft, part, text)
    for key in ("cap_add", "cap_drop", "group_add"):
        for one in part.get(key).items:
            container.add(draft, key.replace("_", "-"), text(one), one.line)
    for name, limit in part.get("ulimits").pairs:
        both = [text(limit.get("soft")), text(limit.get("hard"))]
        container.read_ulimit(
            draft, f"{name}={text(limit) or ':'.join(one for one in both if one)}", limit.line
        )
    for key in ("user", "working_dir"):
        if part.get(key):
            draft.set({"working_dir": "workdir"}.get(key, key), text(part.get(key)), part.get(key).line)
    privileged = part.get("privileged")
    if text(privileged) == "true":
        draft.set("privileged", value=True, line=privileged.line)
    elif privileged and text(privileged) != "false":
        draft.lost(privileged.line, f"privileged: {text(privileged)}")


def _devices(draft: Draft, part: Part, text: Filled) -> None:
    for device in part.get("devices").items:
        if device.is_table:
            parts = {key: text(one) for key, one in device.pairs}
            written = ":".join(parts[key] for key in ("source", "target", "permissions") if parts.get(key))
            container.read_device(draft, written, device.line)
        else:
            container.read_device(draft, text(device), device.line)


def _healthcheck(draft: Draft, check: Part) -> None:
    if check:
        period = check.take().get("start_period").text
        what = "the healthcheck is not carried over: /health is asked anyway"
        draft.note(
            check.line,
            what + (f"; its start_period {period} is what [boot] timeout is for" if period else ""),
        )


def read_gpus(draft: Draft, part: Part, text: Filled) -> None:
    """`gpus`, `deploy`, `runtime`; what was reserved that is not a GPU is left to the account."""
    deploy = part.get("deploy")
    replicas = text(deploy.get("replicas"))
    if replicas.isdigit():
        draft.deployment["replicas"] = int(replicas)
    for device in deploy.get("resources", "reservations", "devices").items:
        _reserved(draft, device, text)
    gpus = part.get("gpus")
    if written := text(gpus):
        container.read_gpus(draft, written, gpus.line)
    for entry in gpus.items if gpus.is_list else ():
        _reserved(draft, entry, text)
    runtime = part.get("runtime")
    if runtime:
        container.read_runtime(draft, text(runtime), runtime.line)


def _reserved(draft: Draft, device: Part, text: Filled) -> None:
    """A reservation of devices: by id, or by count."""
    driver = text(device.get("driver"))
    kinds = [text(one) for one in device.get("capabilities").items]
    ids = [text(one) for one in device.get("device_ids").items]
    count = text(device.get("count")) or "all"
    if driver not in ("", "nvidia", "cdi") or (kinds and "gpu" not in kinds and driver != "cdi"):
        draft.lost(
            device.line, f"the reservation of {driver or ', '.join(kinds)} devices {', '.join(ids) or count}"
        )
    elif ids:
        draft.set("gpus", ids, device.line)
    else:
        container.read_gpus(draft, "all" if count == "-1" else count, device.line)


def read_mounted(draft: Draft, part: Part, document: Node, text: Filled) -> None:
    """`secrets` and `configs`: files of this machine that appear in the container."""
    for kind, folder in (("secrets", "/run/secrets/"), ("configs", "/")):
        for one in part.get(kind).items:
            source = text(one.get("source")) if one.is_table else text(one)
            target = text(one.get("target")) if one.is_table else ""
            known = document.get(kind, source)
            inside = target if target.startswith("/") else f"{folder}{target or source}"
            if file := known.get("file").text:
                container.read_volume(
                    draft,
                    f"{file if file[0] in '/~$' else './' + file.removeprefix('./')}:{inside}:ro",
                    one.line,
                )
            else:
                what = f"the {kind.removesuffix('s')} {source}, which is not a file of this machine,"
                draft.deployment["mounts"] = [*draft.deployment.get("mounts", []), inside]
                draft.lost(one.line, what)


def _port(part: Part, text: Filled) -> str:
    if part.is_table:
        parts = [text(part.get(key)) for key in ("host_ip", "published", "target")]
        return ":".join(one for one in parts if one)
    return re.sub(r"/tcp$", "", text(part))
