"""Responses that are kept: in the background, to be asked for again, to be gone on from, to be cancelled."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.reply import Reply
from pytest_vllm.sim.errors import ApiError
from pytest_vllm.sim.http.server import Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.chat import ChatRequest
    from pytest_vllm.sim.api.server import Server

Body = dict[str, Any]


def stores(server: Server) -> bool:
    """Whether the server keeps responses."""
    return server.settings.environ.get("VLLM_ENABLE_RESPONSES_API_STORE") == "1"


def keep(server: Server, body: Body, response: Body, messages: list[Body]) -> None:
    """Keep a response with the messages that led to it, where the server stores and the request lets it."""
    if stores(server) and body.get("store") is not False:
        server.stored[response["id"]] = {"response": response, "messages": messages}


def found(server: Server, response_id: str) -> Body:
    """What is kept of a response. Raises ApiError."""
    if response_id not in server.stored:
        text = f"Response with id '{response_id}' not found."
        raise ApiError(text, 404, "invalid_request_error", "response_id")
    kept: Body = server.stored[response_id]
    return kept


def detached(call: Call) -> Call:
    """The same request, whose client can't leave any more."""
    return Call(call.connection, call.request)


def begin(
    server: Server, request: ChatRequest, made: Body, messages: list[Body], end: Callable[[Body], Body]
) -> Reply:
    """Answer at once that a response is queued, and generate it; `end` makes the response of the answer."""
    queued = {**made, "status": "queued"}
    entry = server.stored[made["id"]] = {"response": queued, "messages": messages, "request": request}

    async def generate() -> None:
        with contextlib.suppress(ApiError):
            answer = await request.whole()
            if answer is not None and entry["response"]["status"] != "cancelled":
                entry["response"] = {**end(answer), "background": True}
            return
        entry["response"] = {**entry["response"], "status": "failed"}

    task = asyncio.get_running_loop().create_task(generate())
    server.background.add(task)
    task.add_done_callback(server.background.discard)
    return Reply.json(queued)


async def retrieve(server: Server, call: Call) -> Reply:
    """A response that is kept."""
    return Reply.json(found(server, call.request.path.rsplit("/", 1)[-1])["response"])


async def cancel(server: Server, call: Call) -> Reply:
    """Stop a response that is generated in the background; others can't be cancelled."""
    entry = found(server, call.request.path.split("/")[-2])
    if entry["response"]["status"] not in ("queued", "in_progress"):
        raise ApiError("Cannot cancel a synchronous response.", 400, "invalid_request_error", "response_id")
    entry["response"] = {**entry["response"], "status": "cancelled"}
    entry["request"].cancel()
    return Reply.json(entry["response"])
