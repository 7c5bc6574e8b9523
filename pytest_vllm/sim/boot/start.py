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
from pytest_vllm.sim.boot.lastwords import last_words, traceback
from pytest_vllm.sim.boot.rules import Rule, broken
from pytest_vllm.sim.clock import Clock
from pytest_vllm.sim.defects.failure import BootFailure
from pytest_vllm.sim.engine.core import Engine
from pytest_vllm.sim.http.relay import Relay
from pytest_vllm.sim.http.server import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.boot.deployment import Deployment
    from pytest_vllm.sim.defects.hooks import Hooks


class Boot:
    """One server from its first log line to its last.

    `up` starts it and returns once it listens, `down` ends it; `port` is where it listens then.
    """

    def __init__(self, deployment: Deployment, hooks: Hooks, show: Callable[[str], None]) -> None:
        """`show` gets every log line."""
        self.deployment, self.hooks, self._show = deployment, hooks, show
        self._starting = list(log.engine(deployment))
        self.clock = Clock(deployment.speed, ahead=sum(seconds for seconds, _ in self._starting))
        self.connections: set[Connection] = set()
        self.server: Server
        self.port = 0
        self._listening: asyncio.Server
        self._relay: Relay | None = None

    def say(self, line: log.Line) -> None:
        """Print a log line, after what defects do to it."""
        text = log.formatted(line, self.deployment, self.clock.wall())
        for shown in self.hooks.run("log", [text], self.deployment):
            self._show(shown)

    async def up(self, stop: asyncio.Event | None = None) -> None:
        """Boot and listen. Raises BootFailure; setting `stop` ends a start that hangs."""
        deployment, hooks = self.deployment, self.hooks
        faults = list(broken(deployment))
        _refuse(faults, "arguments", deployment)
        for line in log.opening(deployment):
            self.say(line)
        _refuse(faults, "config", deployment)
        settings = deployment.settings()
        hooks.run("boot", None, settings)
        self.server = Server(settings, Engine(settings.capacity, self.clock, hooks), self.clock, hooks)
        ranks = settings.args.get("data_parallel_size", 1)
        self.server.engines += [Engine(settings.capacity, self.clock, hooks) for _ in range(ranks - 1)]
        add_routes(self.server)
        self.server.loras |= static_adapters(settings.args.get("lora_modules"))
        host = settings.args.get("host") or "0.0.0.0"  # noqa: S104 - vLLM's default
        await self._bind(host, settings.args.get("port", 8000))
        try:
            self._start_engine(faults)
        except BootFailure:
            self._listening.close()
            raise
        machine = deployment.machine
        deployment.device.take(deployment.footprint, 0.0 if machine.is_cpu else machine.memory)
        self.server.started = self.server.meters.started = self.clock.wall()
        hanging = hooks.run("ready", 0.0, settings)
        if hanging > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for((stop or asyncio.Event()).wait(), hanging)
                return
        await self._listening.start_serving()
        if deployment.options.proxy:
            self._relay = Relay(self.port, hooks)
            await self._relay.up(host, deployment.options.proxy)
        for line in log.listening(deployment, self.server, host, self.port):
            self.say(line)

    def _start_engine(self, faults: list[tuple[Rule, str]]) -> None:
        for seconds, line in self._starting:
            self.clock.skip(seconds)
            if "KV cache" in line[3]:
                _refuse(faults, "engine", self.deployment)
            self.say(line)
        _refuse(faults, "engine", self.deployment)

    async def _bind(self, host: str, port: int) -> None:
        def connection() -> Connection:
            return Connection(self.server.handle, self.connections)

        loop = asyncio.get_running_loop()
        if path := self.server.settings.args.get("uds"):
            self._listening = await loop.create_unix_server(
                connection, path, backlog=2048, start_serving=False
            )
            return
        try:
            self._listening = await loop.create_server(
                connection, host, port, backlog=2048, start_serving=False
            )
        except OSError as error:
            words = [*traceback("launcher.py", "create_server_socket"), f"OSError: {error}"]
            raise BootFailure(words) from None
        self.port = self._listening.sockets[0].getsockname()[1]

    async def down(self) -> None:
        """End: the engine stops at once, connections are cut."""
        self.say(("APIServer", "INFO", "launcher.py:254", "[shutdown] API server: shutdown triggered"))
        self._listening.close()
        if self._relay:
            self._relay.down()
        for engine in self.server.engines:
            engine.paused = True
        for text in ("Shutting down", "Waiting for application shutdown.", "Application shutdown complete."):
            self.say(("", "", "", f"INFO:     {text}"))
        for connection in list(self.connections):
            connection.transport.abort()
        self.deployment.device.leave(self.hooks.run("left", "", self.deployment))


async def serve(deployment: Deployment, hooks: Hooks) -> int:
    """Boot, serve until a signal comes, end. Raises BootFailure."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    boot = Boot(deployment, hooks, lambda text: print(text, file=sys.stderr, flush=True))
    await boot.up(stop)
    await stop.wait()
    await asyncio.sleep(hooks.run("stop", 0.0, deployment))
    await boot.down()
    return 0


def _refuse(faults: list[tuple[Rule, str]], stage: str, deployment: Deployment) -> None:
    for rule, message in faults:
        if rule.stage == stage:
            raise BootFailure(last_words(rule, message, deployment))
