"""The words that start a profile's server, as every exporter needs them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.profile.errors import ProfileError
from pytest_vllm.profile.flagwords import flag_words
from pytest_vllm.profile.model import Secret

if TYPE_CHECKING:
    from pytest_vllm.profile.model import Profile

API_KEY = "VLLM_API_KEY"
INSIDE = 8000
#: Keys of `[server]` that only a container has, besides image, GPUs, volumes and shared memory.
HOST = (
    "devices",
    "cap_add",
    "cap_drop",
    "group_add",
    "ulimits",
    "privileged",
    "runtime",
    "user",
    "workdir",
)

Words = list[str | Secret]


@dataclass(frozen=True)
class Export:
    """A deployment as text, and what it cannot say of the profile.

    Args:
        text: the file, or the command.
        notes: one line each.
    """

    text: str
    notes: tuple[str, ...]


def environment(profile: Profile) -> dict[str, str | Secret]:
    """The server's variables; its API key travels as one, never on a command line."""
    key = {API_KEY: profile.server.api_key} if profile.server.api_key else {}
    return {**profile.server.env, **key}


def arguments(profile: Profile, *, positional: bool, place: Place | None = None) -> Words:
    """The arguments of vLLM.

    Args:
        profile: what is served.
        positional: `vllm serve MODEL` rather than `--model MODEL`.
        place: where a container's server is reached; None for a process.
    """
    server = profile.server
    words: Words = [] if not server.model else [server.model] if positional else ["--model", server.model]
    if server.served_model_name:
        words += ["--served-model-name", server.served_model_name]
    for name, value in server.args.items():
        if place is None or name not in place.left_out:
            words += flag_words(name, value)
    return words + (place.words if place else [])


def image_of(profile: Profile, kind: str) -> str:
    """The image. Raises ProfileError for a profile that has none."""
    if profile.server.image is None:
        raise ProfileError(
            f"profile {profile.name!r} has no image, which {kind} needs; "
            "set [server] image, or show it with --as=serve"
        )
    return profile.server.image


def starts_vllm(image: str) -> bool:
    """Whether an image of this name starts vLLM by itself: a program then replaces its entry point."""
    return "vllm-openai" in image


def name_of(profile: Profile) -> str:
    """What the container or unit is called."""
    return profile.deployment.name or re.sub(r"[^a-z0-9-]+", "-", profile.name.lower()).strip("-") or "vllm"


@dataclass(frozen=True)
class Place:
    """Where a container's server is reached.

    Args:
        ports: what is published, as Docker writes it.
        inside: the port that it listens on.
        left_out: flags that would bind it where nothing is published.
        network: the container's network, where it is not the runtime's own.
    """

    ports: tuple[str, ...]
    inside: int
    left_out: tuple[str, ...]
    network: str | None

    @property
    def words(self) -> list[str]:
        """The flag for another port than vLLM's own."""
        return [] if self.inside == INSIDE or not self.left_out else ["--port", str(self.inside)]


def place_of(profile: Profile) -> Place:
    """Host and port of a process become a published port; inside, it listens where that leads."""
    args, deployment = profile.server.args, profile.deployment
    port = int(args.get("port", INSIDE))
    if deployment.network == "host":
        return Place((), port, (), "host")
    ports = tuple(deployment.ports) or (f"127.0.0.1:{port}:{INSIDE}",)
    inside = str(deployment.listens or ports[0].rpartition(":")[2].partition("/")[0])
    left_out = ("host", "port")
    return Place(ports, int(inside) if inside.isdigit() else INSIDE, left_out, deployment.network)


def place_note(profile: Profile, place: Place) -> tuple[str, ...]:
    """What became of host and port."""
    lost = [name for name in place.left_out if name in profile.server.args]
    shown = f"the container listens on {place.inside}, published as {', '.join(place.ports)}"
    return (f"{' and '.join(lost)}: {shown}",) if lost else ()
