"""Start-up: from arguments to a serving process, and its end."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.routes import add_routes
from pytest_vllm.sim.api.server import Server
from pytest_vllm.sim.boot.capacity import Capacity
from pytest_vllm.sim.clock import Clock
from pytest_vllm.sim.engine.core import Engine
from pytest_vllm.sim.http.server import Connection
from pytest_vllm.sim.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm.sim.arguments import Arguments
    from pytest_vllm.sim.cli import Options
    from pytest_vllm.sim.defects.hooks import Hooks
    from pytest_vllm.sim.versions import Version


class BootFailure(Exception):  # noqa: N818 - it is how vLLM ends, not an error of ours
    """The server does not come up: what it prints, and the exit status."""

    def __init__(self, lines: list[str], status: int = 1) -> None:
        """Keep both."""
        super().__init__(lines[-1])
        self.lines, self.status = lines, status


async def serve(arguments: Arguments, version: Version, options: Options, hooks: Hooks, environ: Mapping[str, str]) -> int:
    """Boot and serve. Raises BootFailure."""
    clock = Clock(1.0 if options.speed == "auto" else float(options.speed))
    settings = settings_of(arguments, version, options, environ)
    hooks.run("boot", None, settings)
    engine = Engine(settings.capacity, clock, hooks)
    server = Server(settings, engine, clock, hooks)
    add_routes(server)
    loop = asyncio.get_running_loop()
    connections: set[Connection] = set()
    host = arguments.get("host") or "0.0.0.0"  # noqa: S104 - vLLM's default
    port = arguments.get("port", 8000)
    try:
        listening = await loop.create_server(lambda: Connection(server.handle, connections), host, port, backlog=2048)
    except OSError as error:
        raise BootFailure([f"OSError: {error}"]) from None
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    print("INFO:     Application startup complete.", file=sys.stderr, flush=True)  # noqa: T201
    await stop.wait()
    listening.close()
    for connection in list(connections):
        connection.transport.abort()
    return 0


def settings_of(arguments: Arguments, version: Version, options: Options, environ: Mapping[str, str]) -> Settings:
    """The deployment that the arguments describe."""
    model = str(arguments.get("model", "simulated"))
    names = arguments.get("served_model_name") or [model]
    keys: Any = arguments.get("api_key") or environ.get("VLLM_API_KEY") or []
    limit = arguments.get("max_model_len", 4096)
    capacity = Capacity(
        max_model_len=4096 if isinstance(limit, str) else limit,
        max_num_seqs=arguments.get("max_num_seqs", 256),
        prefix_caching=arguments.values.get("enable_prefix_caching") is not False,
        block_size=int(arguments.get("block_size", 16)),
    )
    return Settings(
        version=version,
        model=model,
        names=[names] if isinstance(names, str) else names,
        args=arguments,
        capacity=capacity,
        seed=options.seed,
        environ=environ,
        api_keys=[keys] if isinstance(keys, str) else list(keys),
        reasoning_parser=arguments.get("reasoning_parser", ""),
        tool_parser=arguments.get("tool_call_parser", ""),
        auto_tools=bool(arguments.get("enable_auto_tool_choice")),
        max_logprobs=arguments.get("max_logprobs", 20),
    )
