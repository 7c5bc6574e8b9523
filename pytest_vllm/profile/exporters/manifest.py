"""A compose file, and a Kubernetes Deployment."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import yaml

from pytest_vllm.profile.exporters.line import start_of
from pytest_vllm.profile.exporters.words import (
    HOST,
    Export,
    arguments,
    environment,
    image_of,
    name_of,
    place_note,
    place_of,
)
from pytest_vllm.profile.flagwords import takes_position
from pytest_vllm.profile.model import Secret

if TYPE_CHECKING:
    from pytest_vllm.profile.exporters.words import Words
    from pytest_vllm.profile.model import Profile, ServerPart

_PROBE_EVERY = 10
#: Keys of a container that the manifest says.
_IN_A_POD = ("cap_add", "cap_drop", "privileged", "workdir")


def compose(profile: Profile) -> Export:
    """A compose file with one service."""
    server, deployment, place = profile.server, profile.deployment, place_of(profile)
    image = image_of(profile, "compose")
    before, program = start_of(profile)
    words = arguments(profile, positional=takes_position([*before, *program]), place=place)
    devices, reservation = _compose_gpus(server.gpus)
    service: dict[str, Any] = {
        "image": image,
        "container_name": name_of(profile),
        "restart": deployment.restart,
        "ports": list(place.ports),
        "network_mode": place.network,
        "ipc": server.ipc,
        "shm_size": server.shm,
        "security_opt": deployment.security_opt,
        "environment": {name: _compose(value) for name, value in environment(profile).items()},
        "entrypoint": [_compose(word) for word in before],
        "command": [_compose(word) for word in [*program, *words]],
        "volumes": list(server.volumes),
        "devices": [*devices, *server.devices],
        "cap_add": server.cap_add,
        "cap_drop": server.cap_drop,
        "group_add": server.group_add,
        "ulimits": {name: _ulimit(limit) for name, limit in server.ulimits.items()},
        "privileged": server.privileged,
        "runtime": server.runtime,
        "user": server.user,
        "working_dir": server.workdir,
        "deploy": {"resources": {"reservations": {"devices": [reservation]}}} if reservation else None,
    }
    named = [one.partition(":")[0] for one in server.volumes if not one.startswith(("/", "~", "."))]
    file: dict[str, Any] = {"services": {name_of(profile): {k: v for k, v in service.items() if v}}}
    file |= {"volumes": dict.fromkeys(named)} if named else {}
    return Export(_yaml(file), place_note(profile, place))


def _ulimit(text: str) -> int | dict[str, int]:
    soft, colon, hard = text.partition(":")
    return {"soft": int(soft), "hard": int(hard)} if colon else int(soft)


def _compose_gpus(gpus: str | int | list[str] | None) -> tuple[list[str], dict[str, Any]]:
    """CDI devices, or a reservation."""
    if gpus is None:
        return [], {}
    if isinstance(gpus, list) and any("=" in one for one in gpus):
        return gpus, {}
    which = {"device_ids": gpus} if isinstance(gpus, list) else {"count": gpus}
    return [], {"driver": "nvidia", **which, "capabilities": ["gpu"]}


def _compose(word: str | Secret) -> str:
    if isinstance(word, Secret):
        return f"${{{word.from_env}{':-' if word.optional else ''}}}"
    return word.replace("$", "$$")


def kubernetes(profile: Profile) -> Export:
    """A Deployment; secrets come from a Secret named after it."""
    server, name, place = profile.server, name_of(profile), place_of(profile)
    before, program = start_of(profile)
    words: Words = [
        *program,
        *arguments(profile, positional=takes_position([*before, *program]), place=place),
    ]
    notes = list(place_note(profile, place))
    lost = [name.replace("_", "-") for name in HOST if name not in _IN_A_POD and getattr(server, name)]
    notes += (
        [f"{', '.join(lost)}: a manifest needs a device plugin or a security context for it"] if lost else []
    )
    volumes, mounts = _volumes(profile)
    port = place.inside
    gpus = _gpu_count(server.gpus, notes)
    secret = f"{name}-secrets"
    container: dict[str, Any] = {
        "name": "vllm",
        "image": image_of(profile, "k8s"),
        "command": before,
        "args": [_kubernetes(word) for word in words],
        "env": [_env(key, value, secret) for key, value in environment(profile).items()],
        "ports": [{"containerPort": port}],
        "resources": {"limits": {"nvidia.com/gpu": gpus}} if gpus else None,
        "startupProbe": {
            "httpGet": {"path": "/health", "port": port},
            "periodSeconds": _PROBE_EVERY,
            "failureThreshold": math.ceil(profile.boot.timeout / _PROBE_EVERY),
        },
        "volumeMounts": mounts,
        "workingDir": server.workdir,
        "securityContext": _rights(server),
    }
    pod: dict[str, Any] = {
        "hostIPC": True if server.ipc == "host" else None,
        "hostNetwork": True if profile.deployment.network == "host" else None,
        "containers": [{key: value for key, value in container.items() if value}],
        "volumes": volumes,
    }
    labels = {"app": name}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": profile.deployment.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {key: value for key, value in pod.items() if value},
            },
        },
    }
    keys = sorted({value.from_env for value in environment(profile).values() if isinstance(value, Secret)})
    if keys:
        literals = " ".join(f'--from-literal={key}="${key}"' for key in keys)
        notes.append(f"make its secret first: kubectl create secret generic {secret} {literals}")
    return Export(_yaml(deployment), tuple(notes))


def _rights(server: ServerPart) -> dict[str, Any]:
    """The security context of a container."""
    capabilities = {"add": server.cap_add, "drop": server.cap_drop}
    given = {key: value for key, value in capabilities.items() if value}
    return {
        **({"capabilities": given} if given else {}),
        **({"privileged": True} if server.privileged else {}),
    }


def _gpu_count(gpus: str | int | list[str] | None, notes: list[str]) -> int:
    if gpus is None:
        return 0
    if isinstance(gpus, int):
        return gpus
    count = 1 if gpus == "all" else len(gpus)
    notes.append(f"gpus: Kubernetes counts GPUs and does not name them; {gpus!r} became {count}")
    return count


def _env(name: str, value: str | Secret, secret: str) -> dict[str, Any]:
    if isinstance(value, Secret):
        more = {"optional": True} if value.optional else {}
        return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": value.from_env, **more}}}
    return {"name": name, "value": value.replace("$(", "$$(")}


def _kubernetes(word: str | Secret) -> str:
    return f"$({word.from_env})" if isinstance(word, Secret) else word.replace("$(", "$$(")


def _volumes(profile: Profile) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    volumes: list[dict[str, Any]] = []
    mounts: list[dict[str, Any]] = []
    for number, text in enumerate(profile.server.volumes):
        host, inside, *options = text.split(":")
        path = host.startswith(("/", "~", "."))
        source = {"hostPath": {"path": host}} if path else {"persistentVolumeClaim": {"claimName": host}}
        volumes.append({"name": f"volume-{number}", **source})
        read_only = {"readOnly": True} if "ro" in ",".join(options).split(",") else {}
        mounts.append({"name": f"volume-{number}", "mountPath": inside, **read_only})
    if profile.server.shm:
        size = re.sub(r"([kmgt])i?b?$", lambda found: f"{found[1].upper()}i", profile.server.shm.lower())
        volumes.append({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": size.removesuffix("b")}})
        mounts.append({"name": "shm", "mountPath": "/dev/shm"})  # noqa: S108 - where vLLM's processes meet
    return volumes, mounts


class _Dumper(yaml.SafeDumper):
    """Writes the same value twice rather than an anchor and an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return data is not None or super().ignore_aliases(data)


def _yaml(content: dict[str, Any]) -> str:
    text: str = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return text
