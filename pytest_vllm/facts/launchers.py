"""What sets the launchers apart. One row each: `launch/NAME.py` does what the row says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LauncherKind:
    """A kind of launcher.

    Args:
        name: as `--vllm-launcher` and profiles spell it; the module `launch/NAME.py` holds it.
        starts_vllm: whether it starts a vLLM on this machine, with its GPUs, memory and ports.
        container: whether the server runs in a container, with files and ports of its own.
        simulated: whether it starts the simulator.
    """

    name: str
    starts_vllm: bool = False
    container: bool = False
    simulated: bool = False

    @property
    def starts(self) -> bool:
        """Whether the server belongs to this run, which may stop it and start it again."""
        return self.starts_vllm or self.simulated


LAUNCHERS = {
    kind.name: kind
    for kind in (
        LauncherKind("docker", starts_vllm=True, container=True),
        LauncherKind("podman", starts_vllm=True, container=True),
        LauncherKind("process", starts_vllm=True),
        LauncherKind("attach"),
        LauncherKind("sim", simulated=True),
    )
}
