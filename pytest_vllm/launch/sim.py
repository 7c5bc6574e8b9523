"""The simulated `vllm serve` as a process: the same arguments, no model, no GPU, no container."""

from __future__ import annotations

import json
import os
import re
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pytest_vllm.launch import processes
from pytest_vllm.launch.arguments import environment, order_for
from pytest_vllm.launch.ports import LOOPBACK, free_port
from pytest_vllm.launch.process import ProcessHandle
from pytest_vllm.locate import PACKAGE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm.launch.protocol import LaunchContext
    from pytest_vllm.profile.model import Profile

SEED = 0
#: Names the file that holds the simulated accelerator's memory.
DEVICE = "VLLM_SIM_DEVICE"
#: Holds the address behind the simulated proxy, where the profile has one.
DIRECT = "VLLM_SIM_DIRECT"
_RELEASE = re.compile(r"\d+(\.\d+)+\S*")


class SimLauncher:
    """Rehearses a profile: image, GPUs, volumes, a fixed port and most of the environment are left out.

    Args:
        program: what runs instead of the simulator, for tests.
    """

    name = "sim"

    def __init__(self, program: Sequence[str] = (sys.executable, "-m", "pytest_vllm.sim", "serve")) -> None:
        """The simulator of this installation."""
        self._program = tuple(program)

    def start(self, profile: Profile, context: LaunchContext) -> SimHandle:
        """Start the simulator with the profile's serve arguments."""
        port = free_port()
        order = order_for(profile, context, host=LOOPBACK, port=port, positional=True, with_env=False)
        environ = {**environment(context), **_import_path(environment(context))}
        told = (*order.arguments, *sim_arguments(profile, context))
        device = context.folder.absolute() / f"device-{port}.json"
        env = {**switches(profile), **order.env, DEVICE: str(device)}
        reached = port
        if profile.deployment.proxy:
            reached = free_port()
            told = (*told, "--sim-proxy", str(reached))
            env[DIRECT] = f"http://{LOOPBACK}:{port}"
        order = replace(order, arguments=told, env=env)
        return SimHandle(
            self._program, order, f"http://{LOOPBACK}:{reached}", replace(context, environ=environ)
        )


class SimHandle(ProcessHandle):
    """A running simulator."""

    noun: ClassVar[str] = "simulator"

    def facts(self) -> Mapping[str, Any]:
        """As of a process, marked as simulated; `direct` is the address behind a simulated proxy."""
        direct = self._start[1].env.get(DIRECT)
        return {**super().facts(), "simulated": True, **({"direct": direct} if direct else {})}

    def bench(self) -> None:
        """The simulator has no `vllm bench serve`."""
        return

    def free_memory(self) -> int | None:
        """Free bytes of the simulated accelerator; None where that is none."""
        found = self.memory()
        return found[0] if found else None

    def memory(self) -> tuple[int, int] | None:
        """Free and all bytes of the simulated accelerator; None where that is none."""
        try:
            body = json.loads(Path(self._start[1].env[DEVICE]).read_text("utf-8"))
        except (OSError, ValueError, KeyError):
            return None
        held = [size for who, size in body["held"].items() if not who.isdigit() or processes.alive(int(who))]
        return (int(body["total"] - sum(held)), int(body["total"])) if body["total"] else None


def sim_arguments(profile: Profile, context: LaunchContext) -> list[str]:
    """What the simulator is told beside vLLM's own arguments: version, hardware, model, defects, seed."""
    version = profile.server.vllm_version or profile.expect.version or ""
    told: list[str] = []
    if _RELEASE.fullmatch(version):
        told += ["--sim-version", version]
    if profile.hardware:
        told += ["--sim-hardware", profile.hardware]
    if profile.model:
        told += ["--sim-model", profile.model]
    for defect in dict.fromkeys((*profile.defects, *context.defects)):
        told += ["--sim-defect", defect]
    return [*told, "--sim-seed", str(profile.server.args.get("seed", SEED))]


def switches(profile: Profile) -> dict[str, str]:
    """The variables of `[server.env]` that are vLLM's own and no secrets: they decide on routes."""
    env = profile.server.env.items()
    return {name: str(value) for name, value in env if name.startswith("VLLM_") and isinstance(value, str)}


def _import_path(environ: Mapping[str, str]) -> dict[str, str]:
    """The child imports this very installation, also when it was found through the working directory."""
    installed = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")}
    root = PACKAGE.parent.resolve()
    if root in installed:
        return {}
    rest = environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(root), *([rest] if rest else [])])}
