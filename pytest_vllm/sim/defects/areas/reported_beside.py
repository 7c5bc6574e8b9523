"""Faults of public reports that show where two things meet: a size, a turn, a neighbour, what went before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.reply import JSON, Reply
from pytest_vllm.sim.defects.calls import asked, deltas, messages, turns
from pytest_vllm.sim.defects.choose import failure, in_body, refused
from pytest_vllm.sim.defects.edit import choices
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, RESPONSES, only, remembering

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange
    from pytest_vllm.sim.generation import Output

Json = dict[str, Any]
BOTH = (CHAT, COMPLETIONS)
DEAD = "EngineCore encountered an issue"
#: Tokens, and characters, from which on a prompt is read in several steps.
STEP, CHARACTERS = 2048, 8000


def _mute(body: Json, given: Json) -> None:
    left = ("tools", "ignore_eos", "logprobs", "response_format", "include_reasoning")
    if any(name in given for name in left):
        return
    for choice, message in messages(body):
        if choice["finish_reason"] == "stop" and not message.get("reasoning"):
            message["content"] = None if body["usage"]["completion_tokens"] > 12 else message["content"]


in_body(
    "oracle.long-answers-mute",
    "A longer chat answer that ends by itself says nothing, and is billed.",
    (CHAT,),
    _mute,
    faults=["vllm-project/vllm#41902"],
    catches=["oracle.tokens.shown", "spelling.blanks"],
)


def _listed(body: Any, exchange: Exchange) -> Any:
    if any(turn.get("role") == "tool" for turn in turns(exchange.body)):
        for _, message in messages(body):
            message.setdefault("tool_calls", [])
    return body


add(
    "oracle.empty-list-of-calls",
    "After a tool's result an answer in words holds an empty list of calls.",
    {"json": only((CHAT,), _listed)},
    faults=["vllm-project/vllm#44104"],
    catches=["oracle.calls.empty"],
)


@defect(
    "tools.silent-after-result",
    on="events",
    paths=(CHAT,),
    faults=["vllm-project/vllm#27641"],
    catches=["tools.result.answered-stream"],
)
def silent_after_result(events: list[Event], exchange: Exchange) -> list[Event]:
    """After a tool's result a stream ends with nothing said."""
    if any(turn.get("role") == "tool" for turn in turns(exchange.body)):
        for _, _, delta in deltas(events):
            for name in ("content", "reasoning", "tool_calls"):
                delta.pop(name, None)
    return events


def _several(given: Json) -> bool:
    return (given.get("n") or 1) > 1


refused(
    "pairs.priority-of-several",
    "A request for several choices with a priority ends in a server error.",
    BOTH,
    500,
    failure(DEAD),
    lambda given: given.get("priority") is not None and _several(given),
    faults=["vllm-project/vllm#21519"],
    catches=["pairs.engine"],
)


def _unbound(body: Json, given: Json) -> None:
    if given.get("structured_outputs") and body["usage"]["prompt_tokens"] > STEP:
        for choice in body["choices"]:
            choice["text"] = "Sure, here it is."


in_body(
    "sizes.unbound-behind-much",
    "Behind a prompt that is read in several steps a constraint is not kept.",
    (COMPLETIONS,),
    _unbound,
    catches=["sizes.prompt.written"],
)


@defect(
    "ranking.long-beside-others",
    on="json",
    paths=("/rerank",),
    profile="sim-rerank",
    faults=["vllm-project/vllm#48831"],
    catches=["ranking.deep"],
)
def long_beside_others(body: Any, exchange: Exchange) -> Any:
    """Among others a document that is read in several steps is less relevant."""
    given = asked(exchange, "documents") or []
    for row in (body.get("results") or ()) if isinstance(body, dict) and len(given) > 1 else ():
        if len(given[row["index"]]) > CHARACTERS:
            row["relevance_score"] /= 3
    return body


@defect(
    "structured.first-ends-all",
    on="events",
    paths=(COMPLETIONS,),
    faults=["vllm-project/vllm#11898"],
    catches=["structured.crowd.stream"],
)
def first_ends_all(events: list[Event], exchange: Exchange) -> list[Event]:
    """Of several constrained choices in a stream all but the first lack what comes once that has ended."""
    if asked(exchange, "structured_outputs") and _several(exchange.body):
        spoken = [choice for _, choice in choices(events) if choice["index"] and choice.get("text")]
        for last in {choice["index"]: choice for choice in spoken}.values():
            last["text"] = ""
    return events


def _split(body: Any, path: str) -> Any:
    items = body.get("input") if isinstance(body, dict) and path == RESPONSES else None
    if not isinstance(items, list):
        return body
    made: list[Any] = []
    for item in items:
        if made and isinstance(item, dict) and item.get("type") == "function_call" and _spoke(made[-1]):
            made.append({"role": "user", "content": ""})
        made.append(item)
    return {**body, "input": made}


def _spoke(item: Any) -> bool:
    return isinstance(item, dict) and item.get("role") == "assistant"


add(
    "responses.turn-split",
    "Words and a call of one turn become two turns of the prompt.",
    {"body": _split},
    faults=["vllm-project/vllm#37167"],
    catches=["responses.input.calls-merged"],
)


@defect(
    "responses.answer-forgotten",
    on="json",
    paths=(RESPONSES,),
    environ=["VLLM_ENABLE_RESPONSES_API_STORE=1"],
    faults=["sgl-project/sglang#25302"],
    catches=["responses.state.whole"],
)
def answer_forgotten(body: Any, exchange: Exchange) -> Any:
    """What goes on from a response lacks its answer in the prompt."""
    if asked(exchange, "previous_response_id") and isinstance(body, dict) and body.get("usage"):
        body["usage"]["input_tokens"] -= 3
        body["usage"]["total_tokens"] -= 3
    return body


def _after_stop() -> Callable[..., Any]:
    stopped: set[str] = set()

    def spoiled(output: Output, body: Json) -> Output:
        prompt = str(body.get("prompt"))
        if prompt in stopped and prompt.startswith("[") and len(output.ids) > 2:
            output.ids[1], output.pieces[1] = output.ids[0], output.pieces[0]
        if isinstance(output.stop_reason, str):
            stopped.add(prompt)
        return output

    return spoiled


add(
    "cache.other-after-stop",
    "Once a stop string ended its answer a cached prompt has another one.",
    {"output": remembering(_after_stop)},
    faults=["vllm-project/vllm#5543"],
    catches=["cache.stopped.same-answer"],
)


def _once() -> Callable[..., Any]:
    seen: set[str] = set()

    def answered(value: Any, request: Any) -> Any:
        brought = request.headers.get("x-request-id", "")
        if brought and brought in seen:
            return Reply(500, failure(DEAD), [JSON])
        seen.add(brought)
        return value

    return answered


add(
    "completions.twins-break",
    "A second request with an `X-Request-Id` that is known ends in a server error.",
    {"route": remembering(_once)},
    faults=["vllm-project/vllm#15041"],
    catches=["completions.id.twins"],
)


def _formless(body: Json, given: Json) -> None:
    said = [turn for turn in turns(given) if turn.get("role") == "assistant"]
    for _, message in messages(body) if said and given.get("response_format") else ():
        message["content"] = None


in_body(
    "structured.empty-after-turns",
    "A form at the end of a conversation is empty.",
    (CHAT,),
    _formless,
    faults=["vllm-project/vllm#30557"],
    catches=["structured.turns.valid"],
)


def _many(given: Json) -> bool:
    texts = given.get("input")
    return isinstance(texts, list) and sum(isinstance(one, str) and len(one) > 3000 for one in texts) > 8


refused(
    "embeddings.many-long-break",
    "More than eight long texts at once end in a server error.",
    ("/v1/embeddings",),
    500,
    failure(DEAD),
    _many,
    profile="sim-embed",
    faults=["vllm-project/vllm#48214"],
    catches=["embeddings.many-long"],
)
