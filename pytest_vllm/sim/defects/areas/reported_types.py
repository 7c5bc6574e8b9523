"""Faults of public reports that show in types by reference, in empty wishes, and in texts around pictures."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.calls import (
    asked,
    broken_off,
    deltas,
    joined,
    offered,
    spread,
    threads,
    turns,
    whole_calls,
)
from pytest_vllm.sim.defects.choose import asks, failure, refused
from pytest_vllm.sim.defects.make import ignores
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, MESSAGES, RESPONSES, live, only, remembering
from pytest_vllm.sim.vision import pictures, url_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange, Reply

Json = dict[str, Any]
DEAD = failure("EngineCore encountered an issue. See stack trace (above) for the root cause.")
#: Characters of a text whose blocks a cache outside keeps.
CHUNKS = 1000
DATA = re.compile(r'data:[^"]*')


def _referring(exchange: Exchange) -> set[str]:
    """The parameters of the offered tools whose schema is somewhere else; none where a call is forced."""
    functions = [tool.get("function") for tool in offered(exchange.body)]
    schemas = [one.get("parameters") for one in functions if isinstance(one, dict)]
    found: set[str] = set()
    for schema in schemas if asked(exchange, "tool_choice") in (None, "auto") else ():
        parts = schema.get("properties") if isinstance(schema, dict) else None
        for key, part in parts.items() if isinstance(parts, dict) else ():
            found |= {key} if isinstance(part, dict) and "$ref" in part else set()
    return found


def _as_texts(text: str, keys: set[str]) -> str:
    try:
        given = json.loads(text)
    except ValueError:
        return text
    turned = {
        key: json.dumps(value) if key in keys and isinstance(value, dict | list) else value
        for key, value in given.items()
    }
    return json.dumps(turned)


def _whole(body: Any, exchange: Exchange) -> Any:
    keys = _referring(exchange)
    for call in whole_calls(body) if keys else ():
        call["function"]["arguments"] = _as_texts(call["function"]["arguments"], keys)
    return body


def _streamed(events: list[Event], exchange: Exchange) -> list[Event]:
    keys = _referring(exchange)
    for parts in threads(events).values() if keys else ():
        spread(parts, _as_texts(joined(parts), keys))
    return events


add(
    "tools.references-as-texts",
    "Objects of a call whose schema stands under a reference come as texts.",
    {"json": only((CHAT,), _whole), "events": only((CHAT,), _streamed)},
    faults=["vllm-project/vllm#46924"],
    needs=["--tool-call-parser", "qwen3_coder"],
    catches=["oracle.calls.tagged"],
)


def _degenerate(exchange: Exchange) -> bool:
    wish = asked(exchange, "structured_outputs")
    return isinstance(wish, dict) and (wish.get("json_object") is False or wish.get("json") == "")


def _dying() -> Callable[..., Any]:
    dead: list[bool] = []

    def answered(reply: Reply, exchange: Exchange) -> Reply:
        if _degenerate(exchange):
            dead.append(True)
        if dead and exchange.method == "POST":
            reply.status, reply.body = 500, DEAD
        return reply

    return answered


add(
    "structured.empty-wish-kills",
    "A constraint that says nothing ends the engine.",
    {"reply": only(("/v1/",), remembering(_dying)), "ready": live},
    faults=["vllm-project/vllm#45346"],
    area="profile",
    catches=["profile.server.stays-up", "structured.refused"],
)


def _taken() -> Callable[..., Any]:
    seen: dict[str, tuple[list[str], str]] = {}

    def answered(body: Any, exchange: Exchange) -> Any:
        given = asked(exchange, "messages")
        shown = [str(url_of(part)) for part in pictures(given)]
        text = DATA.sub("", json.dumps(given)) if shown else ""
        if len(text) > CHUNKS and isinstance(body, dict) and body.get("choices"):
            before, choices = seen.setdefault(text, (shown, json.dumps(body["choices"])))
            body["choices"] = body["choices"] if before == shown else json.loads(choices)
        return body

    return answered


add(
    "vision.long-taken-for-other",
    "Within a long text a picture is taken for the one that stood there before.",
    {"json": only((CHAT,), remembering(_taken)), "ready": live},
    faults=["LMCache/LMCache#4086"],
    profile="spark-qwen35",
    catches=["vision.mixed-up.amid"],
)


def _lettered(given: Json) -> bool:
    wish = given.get("structured_outputs")
    rule = wish.get("regex") if isinstance(wish, dict) else None
    return isinstance(rule, str) and not rule.isascii()


refused(
    "structured.letters-refused",
    "A regular expression with letters beyond ASCII is refused.",
    (CHAT, COMPLETIONS),
    400,
    failure("Regex parsing error at position 2: Unclosed [", 400),
    _lettered,
    faults=["vllm-project/vllm#15210"],
    catches=["structured.answered"],
)
refused(
    "responses.kept-not-found",
    "Nothing can be gone on from a response, though responses are kept.",
    (RESPONSES,),
    404,
    failure("Response with that id not found.", 404),
    asks("previous_response_id"),
    faults=["BerriAI/litellm#26147"],
    environ=["VLLM_ENABLE_RESPONSES_API_STORE=1"],
    catches=["responses.state.kept"],
)


@defect(
    "messages.blocks-as-notation",
    on="body",
    paths=(MESSAGES,),
    faults=["vllm-project/vllm#34053"],
    profile="sim-agents",
    catches=["messages.result.blocks"],
)
def blocks_as_notation(body: Any, path: str) -> Any:
    """Over Messages what a tool brought in blocks reaches the prompt in a program's notation."""
    del path
    for turn in turns(body):
        for block in turn["content"] if isinstance(turn.get("content"), list) else ():
            if isinstance(block, dict) and isinstance(block.get("content"), list):
                block["content"] = str(block["content"])
    return body


@defect(
    "messages.only-thinking",
    on="json",
    paths=(MESSAGES,),
    faults=["QwenLM/Qwen3.8#162"],
    catches=["messages.thinking.answered"],
)
def only_thinking(body: Any, exchange: Exchange) -> Any:
    """Over Messages an answer that was thought about lacks what was said then."""
    del exchange
    blocks = body.get("content") if isinstance(body, dict) else None
    thoughts = [one for one in blocks or () if one.get("type") == "thinking"]
    if thoughts:
        body["content"] = thoughts
    return body


ignores(
    "ranking.limit-dropped",
    "What stands in front of a server drops the limit for tokens.",
    ["truncate_prompt_tokens"],
    ("/rerank", "/v1/rerank", "/v2/rerank"),
    profile="sim-rerank",
    faults=["BerriAI/litellm#39363"],
    catches=["ranking.cut"],
)
ignores(
    "embeddings.limit-dropped",
    "A text is embedded as a whole, whatever it may have.",
    ["truncate_prompt_tokens"],
    ("/v1/embeddings",),
    profile="sim-embed",
    catches=["embeddings.cut"],
)


def _now_and_then() -> Callable[..., Any]:
    drawn: list[bool] = []

    def broken(events: list[Event], exchange: Exchange) -> list[Event]:
        if not offered(exchange.body) or asked(exchange, "temperature") == 0:
            return events
        drawn.append(True)
        error = "Unexpected token 200012 while expecting start token 200006"
        return events if len(drawn) % 6 else broken_off(events, lambda one: not any(deltas([one])), error)

    return broken


add(
    "streaming.drawn-breaks",
    "One of six drawn streams that offer a tool ends in an error.",
    {"events": only((CHAT,), remembering(_now_and_then)), "ready": live},
    faults=["vllm-project/vllm#27243"],
    catches=["stream.no-error"],
)


@defect(
    "usage.none-beside-pictures",
    on="events",
    paths=(CHAT,),
    profile="spark-qwen35",
    faults=["vllm-project/vllm#6705"],
    catches=["usage.every.streamed"],
)
def none_beside_pictures(events: list[Event], exchange: Exchange) -> list[Event]:
    """A stream about a picture does not tell its usage, though it was asked for."""
    seen = any(pictures(asked(exchange, "messages")))
    told = [isinstance(one.data, dict) and bool(one.data.get("usage")) for one in events]
    return [one for one, tells in zip(events, told, strict=True) if not (seen and tells)]
