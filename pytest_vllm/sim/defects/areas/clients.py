"""Defects that a client's own parser stumbles over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.make import MISSING, spoil, spoil_events, without_events
from pytest_vllm.sim.defects.registry import add
from pytest_vllm.sim.defects.scope import CHAT, MESSAGES, MODELS, RESPONSES, only

if TYPE_CHECKING:
    from pytest_vllm.sim.api.reply import Exchange, Reply

#: What nothing but a client shows needs a client: the profile expects one.
CAUGHT: dict[str, Any] = {"area": "clients", "profile": "sim-clients", "catches": ["clients.works"]}

spoil("clients.models-bare", "The list of models has no `data`.", (MODELS,), "data", **CAUGHT)
spoil("clients.created-none", "Completions tell no time.", (CHAT,), "created", None, **CAUGHT)
spoil("clients.usage-none", "Completions have no usage.", (CHAT,), "usage", None, **CAUGHT)
spoil(
    "clients.call-unnamed", "Calls have no id.", (CHAT,), "choices.*.message.tool_calls.*.id", None, **CAUGHT
)
spoil_events(
    "clients.call-index",
    "Streamed calls have no index.",
    (CHAT,),
    "choices.*.delta.tool_calls.*.index",
    **CAUGHT,
)
spoil_events(
    "clients.choices-none", "Events of a stream have no list of choices.", (CHAT,), "choices", **CAUGHT
)
without_events(
    "clients.never-completed",
    "A streamed response is never said to be complete.",
    (RESPONSES,),
    lambda event: isinstance(event.data, dict) and event.data.get("type") == "response.completed",
    **CAUGHT,
)
spoil(
    "clients.output-flat",
    "A response's text is no list of parts.",
    (RESPONSES,),
    "output.*.content",
    "",
    **CAUGHT,
)


def _plain(reply: Reply, exchange: Exchange) -> Reply:
    """A refusal as text: an SDK reads its message from JSON."""
    del exchange
    if reply.status == 400:
        reply.body, reply.headers = b"Bad Request", [("content-type", "text/plain")]
    return reply


add("clients.refusal-text", "Refusals are plain text.", {"reply": only((CHAT,), _plain)}, **CAUGHT)
spoil_events(
    "clients.message-uncounted",
    "A streamed message begins without usage.",
    (MESSAGES,),
    "message.usage",
    MISSING,
    **CAUGHT,
)
