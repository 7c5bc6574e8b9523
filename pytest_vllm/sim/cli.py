"""The command line: the simulator's own options, then vLLM's."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass, field

from pytest_vllm.sim.arguments import UsageError, parse
from pytest_vllm.sim.boot.start import serve
from pytest_vllm.sim.defects.failure import BootFailure
from pytest_vllm.sim.defects.registry import hooks_of, needed
from pytest_vllm.sim.versions import DEFAULT, Version

_OWN = ("--sim-version", "--sim-hardware", "--sim-seed", "--sim-defect", "--sim-speed", "--sim-model", "--sim-step")


@dataclass
class Options:
    """The simulator's own options.

    `speed` "auto" lets slow hardware run faster than life; `step` above 0 is the time of every engine step in
    virtual seconds, whatever it computes.
    """

    version: str = DEFAULT
    hardware: str = ""
    model: str = ""
    seed: int = 0
    speed: str = "auto"
    step: float = 0.0
    defects: list[str] = field(default_factory=list)


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
        elif key == "step":
            options.step = float(value)
        else:
            setattr(options, key, value)
    return options, rest


def main(argv: list[str]) -> int:
    """Serve until a signal ends it; the exit status is vLLM's."""
    try:
        options, rest = own_options(argv)
        version = Version(options.version)
        hooks = hooks_of(options.defects)
        words, environ = needed(options.defects)
        rest = hooks.run("argv", [*rest, *words])
        if rest[:1] == ["serve"]:
            rest = rest[1:]
        arguments = parse(rest, version)
    except (UsageError, ValueError) as error:
        print("usage: vllm serve [model_tag] [options]", file=sys.stderr)
        print(f"vllm serve: error: {error}", file=sys.stderr)
        return 2
    try:
        return asyncio.run(serve(arguments, version, options, hooks, {**os.environ, **environ}))
    except BootFailure as failure:
        for line in failure.lines:
            print(line, file=sys.stderr)
        return failure.status
    except KeyboardInterrupt:
        return 0
