"""Defects of scripted answers that end in an error, although nothing forbade the script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.events import DONE, Event
from pytest_vllm.sim.defects.choose import failure, refused
from pytest_vllm.sim.defects.registry import add
from pytest_vllm.sim.defects.scope import CHAT, MESSAGES, RESPONSES, only

if TYPE_CHECKING:
    from pytest_vllm.sim.api.reply import Exchange, Reply

PROFILE = "sim-scripted"
#: As a server says it whose grammar forbids a script.
BROKEN = {"message": "Internal server error", "type": "InternalServerError", "param": None, "code": 500}
#: The ends of texts in calls that hold a mark of the markup.
_MARKED = ("a </tool_call> b", "a <tool_call> b", "a </think> b")


def script_of(asked: Any) -> str:
    """The script of a request; empty without one."""
    given = (asked.get("vllm_xargs") or {}).get("script") if isinstance(asked, dict) else None
    return given if isinstance(given, str) else "".join(given or ())


def marked(asked: Any) -> bool:
    """Requests whose script has a mark within an argument."""
    return any(mark in script_of(asked) for mark in _MARKED)


def calls_whole(asked: dict[str, Any]) -> bool:
    """Requests for a whole answer whose script holds a call."""
    return not asked.get("stream") and "<tool_call>" in script_of(asked)


def _break_whole(reply: Reply, exchange: Exchange) -> Reply:
    if reply.status == 200 and marked(exchange.body) and not exchange.body.get("stream"):
        reply.status, reply.body = 500, failure("Internal server error")
    return reply


def _break_stream(events: list[Event], exchange: Exchange) -> list[Event]:
    if not marked(exchange.body):
        return events
    return [*events[: len(events) // 2], Event({"error": BROKEN}), Event(DONE)]


add(
    "scripted.marks-break",
    "A mark within an argument breaks the answer off, and no grammar forbids it.",
    {"reply": only((CHAT,), _break_whole), "events": only((CHAT,), _break_stream)},
    profile=PROFILE,
    catches=[
        "scripted.answer.whole",
        "scripted.answer.stream",
        "scripted.answer.split",
        "scripted.answer.chunks",
        "scripted.answer.once",
    ],
)
refused(
    "scripted.cuts-break",
    "The reader raises over a whole answer that the token limit cuts.",
    (CHAT,),
    500,
    failure("Expecting value: line 1 column 1 (char 0)"),
    lambda asked: calls_whole(asked) and asked.get("max_tokens"),
    profile=PROFILE,
    catches=["scripted.cut.finish"],
)
refused(
    "scripted.calls-break-responses",
    "The reader of calls raises over the tools of the Responses interface.",
    (RESPONSES,),
    500,
    failure("'FunctionTool' object has no attribute 'function'"),
    calls_whole,
    profile=PROFILE,
    catches=["scripted.response.whole"],
)
refused(
    "scripted.calls-break-messages",
    "The reader of calls raises in the Messages interface, which is told as a bad request.",
    (MESSAGES,),
    400,
    failure("too many values to unpack (expected 2)", 400),
    calls_whole,
    profile=PROFILE,
    catches=["scripted.message.whole"],
)
