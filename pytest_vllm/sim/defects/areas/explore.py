"""Defects that no written request meets: several things at once, or a number between two others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.reply import JSON, Reply
from pytest_vllm.sim.defects.choose import in_body, in_choices
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, MESSAGES, RESPONSES, only
from pytest_vllm.sim.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.events import Event

    Json = dict[str, Any]

RIGHT = ["explore.drawn.right"]
TAMIL, HEBREW, GEORGIAN = "\u0b80", "\u0590", "\u10a0"
LETTERS = 0x80


def _said(body: Any) -> str:
    """All text of a request, in any of its shapes."""
    return str(body.get("messages") or body.get("prompt") or body.get("input") or "")


def _written(body: Json, script: str) -> bool:
    return any(ord(script) <= ord(letter) < ord(script) + LETTERS for letter in _said(body))


def _body(path: str, change: Callable[[Json], Json]) -> dict[str, Any]:
    def changed(body: Any, at: str) -> Any:
        return change(body) if at == path and isinstance(body, dict) else body

    return {"body": only((path,), changed)}


@defect("explore.tamil-stream-cut", on="events", paths=(CHAT,), catches=RIGHT)
def tamil_stream_cut(events: list[Event], exchange: Any) -> list[Event]:
    """Streams of a chat in Tamil or Georgian lose a piece of their text."""
    if not (_written(exchange.body, TAMIL) or _written(exchange.body, GEORGIAN)):
        return events
    pieces = [event for event in events if isinstance(event.data, dict) and _content(event.data)]
    return [event for event in events if event is not pieces[-1]] if len(pieces) > 1 else events


def _content(data: Json) -> str:
    choices = data.get("choices") or [{}]
    return str((choices[0].get("delta") or {}).get("content") or "")


def _hot(body: Json) -> Json:
    if body.get("temperature", 0) > 1.2 and (body.get("top_p") or 1.0) < 0.8:
        raise ApiError("probability tensor contains inf", 500, "InternalServerError")
    return body


add(
    "explore.hot-nucleus-crash",
    "A high temperature with a small nucleus ends in a server error.",
    _body(CHAT, _hot),
    catches=RIGHT,
)


def _six(body: Json, asked: Json) -> None:
    if 5 < (asked.get("n") or 1) < 12:
        del body["choices"][-1]


in_body(
    "explore.choice-lost",
    "Of six to eleven choices the last is missing.",
    (CHAT, COMPLETIONS),
    _six,
    catches=RIGHT,
)


def _without_last_stop(body: Json) -> Json:
    stops = body.get("stop")
    if not (isinstance(stops, list) and len(stops) > 2 and body.get("top_k")):
        return body
    return {**body, "stop": stops[:-1]}


add(
    "explore.last-stop-ignored",
    "The last of three stop strings or more is ignored where candidates are limited.",
    _body(COMPLETIONS, _without_last_stop),
    catches=RIGHT,
)


def _forgets(prompt: list[int], body: Json) -> list[int]:
    asked = bool(body.get("max_tokens"))
    return prompt[:5] + prompt[7:] if asked and 19 < len(body.get("messages") or ()) < 38 else prompt


add(
    "explore.long-talk-forgets",
    "A conversation of twenty to 37 messages loses two tokens near its beginning.",
    {"prompt": _forgets},
    catches=RIGHT,
)


def _cheap(body: Json, asked: Json) -> None:
    if isinstance(asked.get("prompt"), list) and len(asked["prompt"]) > 4 and asked.get("frequency_penalty"):
        body["usage"]["prompt_tokens"] -= 1


in_body(
    "explore.penalised-batch-cheap",
    "A batch of five prompts or more with a penalty is billed a token too few.",
    (COMPLETIONS,),
    _cheap,
    catches=RIGHT,
)


def _without_least(body: Json) -> Json:
    ends = body.get("stream") and (body.get("min_tokens") or 0) > 6
    return {**body, "min_tokens": 0, "max_tokens": 3} if ends else body


add(
    "explore.least-ignored-in-streams",
    "Streams end before the least number of tokens, where that is more than six.",
    _body(CHAT, _without_least),
    catches=RIGHT,
)


def _without_tools(body: Json) -> Json:
    system = (body.get("messages") or [{}])[0].get("role") == "system"
    many = system and 5 < len(body.get("tools") or ()) < 128
    return {**body, "tools": body["tools"][:5]} if many else body


add(
    "explore.tools-cut-behind-system",
    "Beside instructions only five tools reach the prompt.",
    _body(CHAT, _without_tools),
    catches=RIGHT,
)


@defect("explore.long-header-refused", on="route", paths=(CHAT, COMPLETIONS), catches=RIGHT)
def long_header_refused(value: Any, request: Any) -> Any:
    """A header of more than a thousand letters is refused without a word."""
    long = any(len(each) > 1000 for each in request.headers.values())
    return Reply(400, b"", [JSON]) if long else value


def _salted(body: Json) -> Json:
    if body.get("cache_salt") and any(body.get(name) for name in ("seed", "top_k", "stop")):
        raise ApiError("unhashable type: 'Generator'", 500, "InternalServerError")
    return body


add(
    "explore.salted-drawing-crash",
    "A salt with a seed, few candidates or stop strings crashes.",
    _body(COMPLETIONS, _salted),
    catches=RIGHT,
)


def _dear(body: Json, asked: Json) -> None:
    if asked.get("system") and len(asked.get("messages") or ()) > 1:
        body["usage"]["output_tokens"] += 1


in_body(
    "explore.instructed-message-dear",
    "Messages with instructions and a history are billed a token too many.",
    (MESSAGES,),
    _dear,
    catches=RIGHT,
)


@defect("explore.long-response-cut", on="json", paths=(RESPONSES,), catches=RIGHT)
def long_response_cut(body: Any, exchange: Any) -> Any:
    """Responses that may be long lose their last letter."""
    long = (exchange.body.get("max_output_tokens") or 0) > 40
    for item in body.get("output") or () if long and isinstance(body, dict) else ():
        for part in item.get("content") or ():
            part["text"] = str(part.get("text") or "")[:-1]
    return body


def _unpointed(body: Json) -> Json:
    turns = body.get("messages") or []
    last = turns[-1].get("content") if turns else None
    if not isinstance(last, list):
        return body
    parts = [{**part, "text": str(part.get("text"))[:-6]} for part in last]
    return {**body, "messages": [*turns[:-1], {**turns[-1], "content": parts}]} if len(turns) > 2 else body


add(
    "explore.parts-after-history-cut",
    "A question in parts loses its last letters behind a history.",
    _body(CHAT, _unpointed),
    catches=RIGHT,
)


def _unlisted(choice: Json, asked: Json) -> None:
    listing = choice.get("logprobs")
    if asked.get("logprobs") and (asked.get("n") or 1) > 2 and listing and listing.get("content"):
        del listing["content"][-1]


in_choices(
    "explore.choices-unlisted",
    "Of three choices or more the last token's log probability is missing.",
    (CHAT,),
    _unlisted,
    catches=RIGHT,
)


@defect("explore.crowd-busy", on="body", paths=(CHAT,), catches=RIGHT)
def crowd_busy(body: Any, path: str) -> Any:
    """A question with a code of a certain number is refused as if the server were broken."""
    del path
    if isinstance(body, dict) and "kestrel-4028" in _said(body) and _written(body, HEBREW):
        raise ApiError("EngineCore encountered an issue", 500, "InternalServerError")
    return body
