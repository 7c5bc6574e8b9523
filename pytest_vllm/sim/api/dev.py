"""Control routes: sleep and wake, pause and resume, cache resets, server information (development mode)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from pytest_vllm.sim.api.reply import Reply
from pytest_vllm.sim.errors import ApiError

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.http.server import Call


ALL_TAGS = ("weights", "kv_cache")
#: The level of sleep from which the weights do not come back by themselves.
WEIGHTLESS = 2


async def sleep(server: Server, call: Call) -> Reply:
    """The engine stops at once; requests wait until it is woken. Level 2 throws the weights away."""
    level = int(parse_qs(call.request.query).get("level", ["1"])[0])
    if not 0 <= level <= 2:
        raise ApiError("level must be 0, 1 or 2", 400, "Bad Request", "query.level")
    for engine in server.engines:
        if level == 0:
            engine.paused = True
            continue
        engine.asleep, engine.bare = True, engine.bare or level == WEIGHTLESS
        engine.pool.forget()
    if server.settings.version < "0.26.0":
        return Reply(200)
    return Reply.json({"status": "sleeping", "level": level})


async def wake_up(server: Server, call: Call) -> Reply:
    """The engine goes on."""
    tags = parse_qs(call.request.query).get("tags")
    server.awake |= {*(tags or ALL_TAGS)}
    whole = server.awake >= {*ALL_TAGS}
    if whole:
        server.awake = set()
        for engine in server.engines:
            engine.asleep = engine.paused = False
            engine.wake()
    if server.settings.version < "0.26.0":
        return Reply(200)
    return Reply.json({"status": "awake" if whole else "sleeping", "tags": tags})


async def is_sleeping(server: Server, call: Call) -> Reply:
    """Whether the engine sleeps."""
    del call
    return Reply.json({"is_sleeping": server.engine.asleep})


async def pause(server: Server, call: Call) -> Reply:
    """No new steps until resumed."""
    del call
    for engine in server.engines:
        engine.paused = True
    return Reply.json({"status": "paused"})


async def resume(server: Server, call: Call) -> Reply:
    """Steps go on."""
    del call
    for engine in server.engines:
        engine.paused = False
        engine.wake()
    return Reply.json({"status": "resumed"})


async def is_paused(server: Server, call: Call) -> Reply:
    """Whether the engine is paused."""
    del call
    return Reply.json({"is_paused": server.engine.paused})


async def reset_prefix_cache(server: Server, call: Call) -> Reply:
    """Forget all prefixes, unless blocks are in use."""
    del call
    forgotten = [engine.pool.forget() for engine in server.engines]
    done = all(forgotten)
    return Reply.json({"success": done}) if server.settings.version >= "0.16.0" else Reply(200)


async def nothing(server: Server, call: Call) -> Reply:
    """A reset of something that the simulator does not have."""
    del server, call
    return Reply(200)


async def server_info(server: Server, call: Call) -> Reply:
    """The configuration."""
    del call
    settings = server.settings
    return Reply.json(
        {"vllm_config": f"model='{settings.model}', max_model_len={settings.max_model_len}", "vllm_env": {}}
    )


async def collective_rpc(server: Server, call: Call) -> Reply:
    """A call of a worker's method: of those only `reload_weights` does anything."""
    try:
        body = json.loads(call.request.body or b"null")
    except ValueError as error:
        raise ApiError(f"JSON decode error: {error}", 400, "Bad Request") from None
    if not isinstance(body, dict):
        raise ApiError("Request body must be a JSON object", 400, "Bad Request")
    if body.get("method") is None:
        raise ApiError("Missing 'method' in request body", 400, "Bad Request")
    if body["method"] == "reload_weights":
        for engine in server.engines:
            engine.bare = False
    return Reply.json({"results": [None] * len(server.engines)})
