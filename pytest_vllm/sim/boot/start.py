"""Start-up: from arguments to a serving process, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from typing import TYPE_CHECKING

from pytest_vllm.sim.api.lora import static_adapters
from pytest_vllm.sim.api.routes import add_routes
from pytest_vllm.sim.api.server import Server
from pytest_vllm.sim.boot import log
from pytest_vllm.sim.boot.deployment import Deployment
from pytest_vllm.sim.boot.rules import Rule, broken
from pytest_vllm.sim.clock import Clock
from pytest_vllm.sim.defects.failure import BootFailure
from pytest_vllm.sim.engine.core import Engine
from pytest_vllm.sim.http.server import Connection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm.sim.arguments import Arguments
    from pytest_vllm.sim.cli import Options
    from pytest_vllm.sim.defects.hooks import Hooks
    from pytest_vllm.sim.versions import Version


class Printer:
    """Prints log lines with virtual times, after what defects do to them."""

    def __init__(self, deployment: Deployment, clock: Clock, hooks: Hooks) -> None:
        """For one server."""
        self.deployment, self.clock, self.hooks = deployment, clock, hooks

    def __call__(self, line: log.Line) -> None:
        """Print one line."""
        text = log.formatted(line, self.deployment, self.clock.wall())
        for shown in self.hooks.run("log", [text], self.deployment):
            print(shown, file=sys.stderr, flush=True)


async def serve(
    arguments: Arguments, version: Version, options: Options, hooks: Hooks, environ: Mapping[str, str]
) -> int:
    """Boot and serve. Raises BootFailure."""
    deployment = Deployment.of(arguments, version, options, environ)
    starting = list(log.engine(deployment))
    clock = Clock(deployment.speed, ahead=sum(seconds for seconds, _ in starting))
    printer = Printer(deployment, clock, hooks)
    faults = list(broken(deployment))
    _refuse(faults, ("arguments",), deployment)
    for line in log.opening(deployment):
        printer(line)
    _refuse(faults, ("config",), deployment)
    settings = deployment.settings()
    hooks.run("boot", None, settings)
    engine = Engine(settings.capacity, clock, hooks)
    server = Server(settings, engine, clock, hooks)
    add_routes(server)
    server.loras |= static_adapters(arguments.get("lora_modules"))
    host = arguments.get("host") or "0.0.0.0"  # noqa: S104 - vLLM's default
    port = arguments.get("port", 8000)
    connections: set[Connection] = set()
    loop = asyncio.get_running_loop()
    try:
        listening = await loop.create_server(
            lambda: Connection(server.handle, connections), host, port, backlog=2048, start_serving=False
        )
    except OSError as error:
        raise BootFailure([*_traceback("launcher.py", "create_server_socket"), f"OSError: {error}"]) from None
    for seconds, line in starting:
        clock.skip(seconds)
        if "KV cache size" in line[3] or "Available KV cache memory" in line[3]:
            _refuse(faults, ("engine",), deployment)
        printer(line)
    _refuse(faults, ("engine",), deployment)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server.started = clock.wall()
    server.meters.started = server.started
    await _until_ready(hooks.run("ready", 0.0, settings), stop)
    await listening.start_serving()
    for line in log.listening(deployment, server, host, listening.sockets[0].getsockname()[1]):
        printer(line)
    await stop.wait()
    return await _end(listening, connections, server, printer)


async def _until_ready(seconds: float, stop: asyncio.Event) -> None:
    if seconds > 0:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), seconds)


async def _end(
    listening: asyncio.Server, connections: set[Connection], server: Server, printer: Printer
) -> int:
    printer(("APIServer", "INFO", "launcher.py:254", "[shutdown] API server: shutdown triggered"))
    listening.close()
    server.engine.paused = True
    for text in ("Shutting down", "Waiting for application shutdown.", "Application shutdown complete."):
        printer(("", "", "", f"INFO:     {text}"))
    for connection in list(connections):
        connection.transport.abort()
    return 0


def _refuse(faults: list[tuple[Rule, str]], stages: tuple[str, ...], deployment: Deployment) -> None:
    for rule, message in faults:
        if rule.stage in stages:
            raise BootFailure(_last_words(rule, message, deployment))


def _last_words(rule: Rule, message: str, d: Deployment) -> list[str]:
    if rule.stage == "arguments":
        return [*_traceback("cli_args.py", "validate_parsed_serve_args"), f"{rule.exception}: {message}"]
    if rule.stage == "config":
        wrapped = d.version >= "0.10.0" and rule.exception == "ValueError"
        last = [f"{rule.exception}: {message}"]
        if wrapped:
            last = [
                "pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig",
                f"  Value error, {message} [type=value_error, input_value=ArgsKwargs((), {{...}})]",
                "    For further information visit https://errors.pydantic.dev/2.12/v/value_error",
            ]
        return [*_traceback("arg_utils.py", "create_engine_config"), *last]
    core = [
        "EngineCore failed to start.",
        *_traceback("core.py", "run_engine_core"),
        f"{rule.exception}: {message}",
    ]
    wall = Clock().wall()
    lines = [log.formatted(("EngineCore", "ERROR", "core.py:1345", text), d, wall) for text in core]
    failed = (
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): "
        "{'EngineCore': 1}"
    )
    return [*lines, *_traceback("utils.py", "wait_for_engine_startup"), failed]


def _traceback(file: str, function: str) -> list[str]:
    return [
        "Traceback (most recent call last):",
        f'  File "/usr/local/lib/python3.12/dist-packages/vllm/{file}", line 1, in {function}',
    ]
