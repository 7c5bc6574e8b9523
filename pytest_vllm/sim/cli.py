"""The command line: the simulator's own options, then vLLM's."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from pytest_vllm.sim.arguments import UsageError, parse
from pytest_vllm.sim.boot.deployment import Deployment
from pytest_vllm.sim.boot.device import Device
from pytest_vllm.sim.boot.machine import GIB
from pytest_vllm.sim.boot.start import serve
from pytest_vllm.sim.defects.failure import BootFailure
from pytest_vllm.sim.defects.registry import hooks_of, needed
from pytest_vllm.sim.options import Options
from pytest_vllm.sim.versions import Version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm.sim.defects.hooks import Hooks

_OWN = tuple(
    f"--sim-{name}" for name in ("version", "hardware", "seed", "defect", "speed", "model", "step", "proxy")
)


HELP = """Usage: pytest-vllm sim serve MODEL [VLLM OPTIONS] [SIMULATOR OPTIONS]

Serve like `vllm serve`, without a model and without a GPU. It takes vLLM's own options for the version that
it simulates, and some of its own:

  --sim-version VERSION    vLLM's version, such as 0.27.0
  --sim-hardware NAME      speeds and memory of this hardware file
  --sim-model NAME         sizes of this model
  --sim-seed NUMBER        of its answers (default 0)
  --sim-defect NAME        break it by this defect; repeatable. `pytest-vllm defects` lists them
  --sim-speed FACTOR       how many times faster than life; auto is the default
  --sim-step SECONDS       let every engine step take so long
  --sim-proxy PORT         let a proxy listen there, in front of the server

GET /health answers 200 once it is ready. Ctrl-C ends it."""


def own_options(argv: list[str]) -> tuple[Options, list[str]]:
    """Split off the `--sim-…` options. Raises UsageError."""
    options, rest, words = Options(), [], list(argv)
    while words:
        word = words.pop(0)
        name, equals, value = word.partition("=")
        if name not in _OWN:
            rest.append(word)
            continue
        if not equals:
            if not words:
                raise UsageError(f"argument {name}: expected one argument")
            value = words.pop(0)
        key = name.removeprefix("--sim-")
        if key == "defect":
            options.defects += [part for part in value.split(",") if part]
        elif key == "seed":
            options.seed = int(value)
        elif key == "proxy":
            options.proxy = int(value)
        elif key == "step":
            options.step = float(value)
        else:
            setattr(options, key, value)
    return options, rest


def configured(argv: list[str], environ: Mapping[str, str]) -> tuple[Deployment, Hooks]:
    """The deployment and the defects that a command line asks for. Raises UsageError, ValueError."""
    options, rest = own_options(argv)
    version = Version(options.version)
    hooks = hooks_of(options.defects)
    words, needs = needed(options.defects)
    rest = hooks.run("argv", [*rest, *words])
    device = Device.of(environ)
    if device.starts:
        rest = hooks.run("again", rest)
    arguments = parse(rest[1:] if rest[:1] == ["serve"] else rest, version)
    environ = {**environ, **needs}
    if device.taken:
        environ["SIM_MEMORY_TAKEN_GIB"] = f"{device.taken / GIB}"
    return Deployment.of(arguments, version, options, environ, device), hooks


def main(argv: list[str]) -> int:
    """Serve until a signal ends it; the exit status is vLLM's."""
    if {"-h", "--help"} & set(argv):
        print(HELP)
        return 0
    try:
        deployment, hooks = configured(argv, os.environ)
    except (UsageError, ValueError) as error:
        print("usage: vllm serve [model_tag] [options]", file=sys.stderr)
        print(f"vllm serve: error: {error}", file=sys.stderr)
        return 2
    try:
        return asyncio.run(serve(deployment, hooks))
    except BootFailure as failure:
        print("\n".join(failure.lines), file=sys.stderr)
        return failure.status
    except KeyboardInterrupt:
        return 0
