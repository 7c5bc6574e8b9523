"""A container engine that speaks Docker's API: Docker itself, or Podman through its compatible socket."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_vllm.launch.owner import Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_vllm.launch.protocol import LaunchContext

RUN, SCOPE, OWNER = "pytest-vllm.run", "pytest-vllm.scope", "pytest-vllm.owner"
OWNER_PID, OWNER_START, BOOT = "pytest-vllm.owner-pid", "pytest-vllm.owner-start", "pytest-vllm.boot"
KEEP = "pytest-vllm.keep"


@dataclass(frozen=True)
class Engine:
    """A reachable engine.

    Args:
        name: docker or podman, told apart by the components it lists, not by its version number.
        version: of the engine.
        url: where its API is.
        client: docker-py's client.
        ask: gives what it says about itself; Podman asks its package manager then, which takes seconds.
        errors: exceptions that its client raises.
        missing: the exception for a thing that is not there.
    """

    name: str
    version: tuple[int, ...]
    url: str
    client: Any = field(repr=False)
    ask: Callable[[], Mapping[str, Any]] = field(repr=False)
    errors: tuple[type[Exception], ...] = field(repr=False)
    missing: type[Exception] = field(repr=False)

    @cached_property
    def info(self) -> Mapping[str, Any]:
        """Runtimes, CDI folders, … Raises one of `errors`."""
        return self.ask()

    @property
    def local(self) -> bool:
        """Whether its containers' loopback ports are on this machine."""
        return self.url.startswith(("unix://", "http+unix://", "npipe://"))

    @property
    def shown(self) -> str:
        """`docker 28.2.2`."""
        return f"{self.name} {'.'.join(map(str, self.version))}"

    def containers(self, label: str) -> list[Any]:
        """All its containers with this label, running or not."""
        filters = {"label": label}
        found: list[Any] = self.client.containers.list(all=True, filters=filters, ignore_removed=True)
        return found


def identify(answer: Mapping[str, Any]) -> tuple[str, tuple[int, ...]]:
    """Engine name and version from the answer to `/version`."""
    parts = {part["Name"]: part.get("Version", "") for part in answer.get("Components") or ()}
    name = "podman" if "Podman Engine" in parts else "docker"
    text = parts.get("Podman Engine") or answer.get("Version") or "0"
    numbers = [part for part in text.split("+")[0].split("-")[0].split(".") if part.isdigit()]
    return name, tuple(int(part) for part in numbers)


def labels_for(context: LaunchContext, profile_name: str) -> dict[str, str]:
    """What marks a container as this run's. The owner is written out for people and as one word."""
    owner = Owner.of(context.owner_pid)
    found = {
        RUN: context.run_id,
        SCOPE: context.scope,
        OWNER: str(owner),
        OWNER_PID: str(owner.pid),
        OWNER_START: owner.start,
        BOOT: owner.boot,
        "pytest-vllm.profile": profile_name,
    }
    return found | ({KEEP: "1"} if context.keep else {})


def words_of(error: Exception) -> str:
    """What the daemon said, without docker-py's frame around it."""
    return str(getattr(error, "explanation", None) or error).strip()
