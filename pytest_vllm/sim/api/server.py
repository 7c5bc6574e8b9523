"""The simulated server: everything that a request handler needs, and the way from a call to its handler."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.admission import track
from pytest_vllm.sim.api.auth import cors_headers, preflight, refused
from pytest_vllm.sim.api.reply import HANG, JSON, Exchange, Reply
from pytest_vllm.sim.api.shapes import Shapes
from pytest_vllm.sim.errors import ApiError, Detail, encode, envelope
from pytest_vllm.sim.ids import Ids
from pytest_vllm.sim.meters.http import HttpMeters
from pytest_vllm.sim.tokens.tokenizer import load

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pytest_vllm.sim.clock import Clock
    from pytest_vllm.sim.defects.hooks import Hooks
    from pytest_vllm.sim.engine.core import Engine
    from pytest_vllm.sim.http.server import Call
    from pytest_vllm.sim.settings import Settings


class Server:
    """One simulated server."""

    def __init__(self, settings: Settings, engine: Engine, clock: Clock, hooks: Hooks) -> None:
        """Put the parts together; `routes` are added by the modules of each area."""
        self.settings, self.engine, self.clock, self.hooks = settings, engine, clock, hooks
        #: Of several data-parallel engines all, the first in front.
        self.engines = [engine]
        self._turn = 0
        self.tokens = load()
        self.ids = Ids(settings.seed, settings.environ.get("VLLM_SIM_REPLICA", ""))
        self.shapes = Shapes(settings.version)
        self.meters = HttpMeters(clock.wall())
        self.routes: dict[str, dict[str, Callable[[Server, Call], Awaitable[Reply | None]]]] = {}
        self.patterns: list[str] = []
        self.asked: Counter[str] = Counter()
        self.load = 0
        self.generations = 0
        self.started = clock.wall()
        self.parser_calls: Counter[tuple[str, str, str]] = Counter()
        self.loras: dict[str, str] = {}
        self.stored: dict[str, Any] = {}
        #: What of a sleeping server was woken so far.
        self.awake: set[str] = set()
        #: Digest of a script -> the token from which on a grammar forbade it.
        self.forbidden: dict[str, int] = {}
        self.background: set[asyncio.Task[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, call: Call) -> None:
        """Answer a call, in a task of its own."""
        task = asyncio.get_running_loop().create_task(self._answer(call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, call: Call) -> None:
        path = self.route_of(call.request.path)
        call.on_end.append(lambda status, sent: self.meters.count(call, path, status, sent))
        track(self, call, path)
        try:
            reply = self.hooks.run("route", None, call.request)
            if reply == HANG:
                return
            if reply is None:
                reply = self._before(call)
            if reply is None:
                reply = await self._handler(call, path)(self, call)
        except ApiError as error:
            reply = Reply.json(envelope(error, self.settings.version), error.status)
        except Detail as error:
            reply = Reply.json({"detail": error.detail}, error.status)
            reply.headers += error.headers
        except Exception as error:  # noqa: BLE001 - a server answers 500 whatever happens
            print(f"sim: {type(error).__name__} in {call.request.path}: {error}", flush=True)
            refusal = ApiError(str(error), 500, "InternalServerError")
            reply = Reply.json(envelope(refusal, self.settings.version), 500)
        if reply is not None:
            self.send(call, reply)

    def _before(self, call: Call) -> Reply | None:
        if refused(call.request, self.settings):
            return Reply.json({"error": "Unauthorized"}, 401)
        return preflight(call.request, self.settings)

    def _handler(self, call: Call, path: str) -> Callable[[Server, Call], Awaitable[Reply | None]]:
        methods = self.routes.get(path)
        if methods is None:
            request = call.request
            if request.path.endswith("/") and self.route_of(request.path.rstrip("/")) in self.routes:
                target = f"http://{request.headers.get('host', '')}{request.path.rstrip('/')}"
                return partial(_redirect, target)
            raise Detail(404, "Not Found")
        method = call.request.method
        if method not in methods and "*" not in methods:
            raise Detail(405, "Method Not Allowed", (("allow", ", ".join(sorted(methods))),))
        return methods.get(method) or methods["*"]

    def route_of(self, path: str) -> str:
        """The declared path that one matches, with `--root-path` or without; itself when none does."""
        root = (self.settings.args.get("root_path") or "").rstrip("/")
        if root and path.startswith(f"{root}/"):
            path = path.removeprefix(root)
        if path in self.routes:
            return path
        for pattern in self.patterns:
            before, _, after = pattern.partition("{response_id}")
            middle = path[len(before) : len(path) - len(after)]
            if path.startswith(before) and path.endswith(after) and middle and "/" not in middle:
                return pattern
        return "/metrics" if path.startswith("/metrics") else path

    def least_busy(self) -> Engine:
        """The engine that a request goes to: the one with the least to do, of equals one after the other."""
        self._turn += 1
        at = self._turn % len(self.engines)
        return min(
            (*self.engines[at:], *self.engines[:at]), key=lambda one: 4 * len(one.waiting) + len(one.running)
        )

    def exchange(self, call: Call) -> Exchange:
        """The exchange that a call belongs to; its body as it was sent, nothing filled in or dropped."""
        request = call.request
        return Exchange(request.method, request.path, request.headers, call.asked, self.settings)

    def send(self, call: Call, reply: Reply) -> None:
        """Send a whole answer, after what defects do to it."""
        if self.hooks.has("json") or self.hooks.has("reply"):
            reply = self._spoiled(call, reply)
        headers = [*reply.headers, *self.extra_headers(call)]
        if self.hooks.has("late"):
            late = self.hooks.run("late", 0.0, self.exchange(call))
            asyncio.get_running_loop().call_later(late, call.reply, reply.status, reply.body, headers)
        else:
            call.reply(reply.status, reply.body, headers)

    def _spoiled(self, call: Call, reply: Reply) -> Reply:
        exchange = self.exchange(call)
        if JSON in reply.headers:
            reply.body = encode(self.hooks.run("json", json.loads(reply.body), exchange))
        spoiled: Reply = self.hooks.run("reply", reply, exchange)
        return spoiled

    def extra_headers(self, call: Call) -> list[tuple[str, str]]:
        """Headers that middleware adds: CORS, request id, and the simulator's own clock."""
        request = call.request
        headers = cors_headers(request, self.settings)
        if self.settings.args.get("enable_request_id_headers"):
            headers.append(("X-Request-Id", request.headers.get("x-request-id") or self.ids.hex(32)))
        if self.clock.speed != 1:
            headers += [("x-sim-speed", f"{self.clock.speed:g}"), ("x-sim-time", f"{self.clock.now():.6f}")]
        return headers


async def _redirect(target: str, server: Server, call: Call) -> Reply:
    del server, call
    return Reply(307, b"", [("location", target)])
