"""One line for a shell: `vllm serve`, `docker run`, `podman run`."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from pytest_vllm.profile.exporters.words import (
    HOST,
    Export,
    arguments,
    environment,
    image_of,
    name_of,
    place_note,
    place_of,
    starts_vllm,
)
from pytest_vllm.profile.flagwords import takes_position
from pytest_vllm.profile.model import Secret

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.profile.exporters.words import Words
    from pytest_vllm.profile.model import Profile, ServerPart

_NO_PLACE = ("image", "gpus", "volumes", "shm", "ipc", "entrypoint", *HOST)
_LONGEST = 88


def serve(profile: Profile) -> Export:
    """A `vllm serve` line with its environment."""
    program = profile.server.command or ["vllm", "serve"]
    words = arguments(profile, positional=takes_position(program))
    env = [f"{name}={_quoted(value)}" for name, value in environment(profile).items()]
    lost = [name for name in _NO_PLACE if getattr(profile.server, name)]
    notes = (f"{', '.join(lost)}: a command line of vLLM cannot say it",) if lost else ()
    groups = [*env, " ".join([*map(shlex.quote, program), *map(_quoted, words[:1])]), *_grouped(words[1:])]
    if words and str(words[0]).startswith("-"):
        groups = [*env, shlex.join(program), *_grouped(words)]
    return Export(_folded(groups), notes)


def run(profile: Profile, engine: str) -> Export:
    """A `docker run` or `podman run` line."""
    options, words, notes = run_words(profile, engine)
    start = f"{engine} run -d" if not profile.deployment.remove else f"{engine} run --rm"
    image, *rest = words
    return Export(_folded([start, *_grouped(options), _quoted(image), *_grouped(rest)]), notes)


def run_words(profile: Profile, engine: str) -> tuple[Words, Words, tuple[str, ...]]:
    """Options, then image and what follows it; and notes."""
    server, deployment, place = profile.server, profile.deployment, place_of(profile)
    image = image_of(profile, f"{engine}-run")
    options: Words = ["--name", name_of(profile)]
    options += ["--restart", deployment.restart] if deployment.restart and not deployment.remove else []
    options += _gpus(server.gpus, engine)
    options += [f"--security-opt={one}" for one in deployment.security_opt]
    options += ["--network", place.network] if place.network else []
    options += ["--ipc", server.ipc] if server.ipc else []
    options += ["--shm-size", server.shm] if server.shm else []
    options += _host(server)
    for port in place.ports:
        options += ["-p", port]
    for volume in server.volumes:
        options += ["-v", volume]
    for name, value in environment(profile).items():
        options += ["-e", _variable(name, value)]
    before, program = start_of(profile)
    options += ["--entrypoint", before[0]] if before else []
    whole = [*before, *program]
    rest = arguments(profile, positional=takes_position(whole), place=place)
    return options, [image, *before[1:], *program, *rest], place_note(profile, place)


def _host(server: ServerPart) -> Words:
    """Devices, rights and limits."""
    many = {"device": server.devices, "cap-add": server.cap_add, "cap-drop": server.cap_drop}
    many |= {"group-add": server.group_add}
    many |= {"ulimit": [f"{name}={limit}" for name, limit in server.ulimits.items()]}
    words: Words = [
        word for option, values in many.items() for one in values for word in (f"--{option}", one)
    ]
    words += ["--privileged"] if server.privileged else []
    for option in ("runtime", "user", "workdir"):
        if value := getattr(server, option):
            words += [f"--{option}", value]
    return words


def start_of(profile: Profile) -> tuple[list[str], list[str]]:
    """What replaces the image's entry point (empty keeps it), and what stands before the arguments."""
    server = profile.server
    if server.entrypoint:
        return list(server.entrypoint), list(server.command or [])
    if server.command and starts_vllm(server.image or ""):
        return list(server.command), []
    return [], list(server.command or [])


def _gpus(gpus: str | int | list[str] | None, engine: str) -> Words:
    if gpus is None:
        return []
    if isinstance(gpus, list) and any("=" in one for one in gpus):
        return [word for one in gpus for word in ("--device", one)]
    if engine == "podman":
        counted = ["all"] if gpus == "all" else []
        ids = gpus if isinstance(gpus, list) else counted or [str(one) for one in range(int(gpus))]
        return [word for one in ids for word in ("--device", f"nvidia.com/gpu={one}")]
    return ["--gpus", f'"device={",".join(gpus)}"' if isinstance(gpus, list) else str(gpus)]


class _Reference(Secret):
    """A secret behind `NAME=`."""

    before: str = ""


def _variable(name: str, value: str | Secret) -> str | Secret:
    if not isinstance(value, Secret):
        return f"{name}={value}"
    return name if value.from_env == name else _Reference(from_env=value.from_env, before=f"{name}=")


def shown(word: str | Secret, reference: str) -> str:
    """A word with its secret as a reference such as `${%s}`."""
    if isinstance(word, Secret):
        return (word.before if isinstance(word, _Reference) else "") + reference % word.from_env
    return word


def _quoted(word: str | Secret) -> str:
    if isinstance(word, Secret):
        return f'"{shown(word, "$%s")}"'
    if re.fullmatch(r"~/[\w./:@%+=-]*", word):
        return word  # quoted, the shell would not fill in the home folder
    return shlex.quote(word)


def _grouped(words: Words) -> Iterator[str]:
    """Each flag with its values, for one line each."""
    group: list[str] = []
    for word in words:
        if isinstance(word, str) and word.startswith("-") and group:
            yield " ".join(group)
            group = []
        group.append(_quoted(word))
    if group:
        yield " ".join(group)


def _folded(groups: list[str]) -> str:
    """Groups over lines of a readable width, each but the last ending in a backslash."""
    lines: list[str] = []
    for group in groups:
        if lines and len(lines[-1]) + len(group) < _LONGEST and len(lines) > 1:
            lines[-1] += f" {group}"
        else:
            lines.append(group if not lines else f"  {group}")
    return " \\\n".join(lines) + "\n"
