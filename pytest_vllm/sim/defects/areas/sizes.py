"""Defects beyond a size: what is small is right."""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.reply import JSON, Reply
from pytest_vllm.sim.defects.choose import failure, in_body, in_choices
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, MESSAGES, RESPONSES, only

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.events import Event

EVENTS, TURNS, RESULTS, TOOLS, CHOICES, PROMPT = 300, 5, 2, 20, 4, 3000
#: Characters of a long prompt.
FAR = 4_000


@defect(
    "sizes.stream-thins-out",
    on="events",
    paths=(CHAT, COMPLETIONS),
    catches=["sizes.stream", "spelling.long"],
)
def stream_thins_out(events: list[Event], exchange: Any) -> list[Event]:
    """Of a stream's events after the three hundredth each tenth is lost."""
    del exchange
    kept = [event for at, event in enumerate(events[:-2]) if at < EVENTS or at % 10]
    return [*kept, *events[-2:]]


def _without_middle(prompt: list[int], body: dict[str, Any]) -> list[int]:
    long = "messages" in body and len(prompt) > PROMPT
    return [*prompt[:1000], *prompt[1100:]] if long else prompt


add(
    "sizes.prompt-middle-lost",
    "A conversation of more than 3,000 tokens loses a hundred in its middle.",
    {"prompt": _without_middle},
    catches=["sizes.prompt"],
)


def _asked(path: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """A hook that changes the requests of one path, and of none that begins with it."""

    def changed(body: Any, at: str) -> Any:
        return change(body) if at == path and isinstance(body, dict) else body

    return {"body": only((path,), changed)}


def _without_sixth(body: dict[str, Any]) -> dict[str, Any]:
    turns = list(body.get("messages") or ())
    return {**body, "messages": [*turns[:TURNS], *turns[TURNS + 1 :]]} if len(turns) > TURNS else body


add(
    "sizes.sixth-message-dropped",
    "The sixth message of a conversation never reaches the prompt.",
    _asked(CHAT, _without_sixth),
    catches=["sizes.turns", "sizes.agent"],
)


def _emptied(turns: list[Any], result: Callable[[Any], bool], field: str) -> list[Any]:
    """The conversation with nothing in its results after the second."""
    places = [at for at, turn in enumerate(turns) if result(turn)][RESULTS:]
    return [{**turn, field: ""} if at in places else turn for at, turn in enumerate(turns)]


def _chat_results(body: dict[str, Any]) -> dict[str, Any]:
    turns = list(body.get("messages") or ())
    return {**body, "messages": _emptied(turns, lambda turn: turn.get("role") == "tool", "content")}


add(
    "sizes.third-result-emptied",
    "The results of tools after the second reach a chat prompt empty.",
    _asked(CHAT, _chat_results),
    catches=["sizes.agent"],
)


def _message_results(body: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(body.get("messages"), list):
        return body
    turns, seen = [], 0
    for turn in body["messages"]:
        blocks = turn.get("content")
        results = (
            [one for one in blocks if one.get("type") == "tool_result"] if isinstance(blocks, list) else []
        )
        seen += len(results)
        turns.append({**turn, "content": "(cut)"} if results and seen > RESULTS else turn)
    return {**body, "messages": turns}


add(
    "sizes.third-result-cut-messages",
    "The results of tools after the second are cut from a Messages prompt.",
    _asked(MESSAGES, _message_results),
    catches=["sizes.agent.messages"],
)


def _response_results(body: dict[str, Any]) -> dict[str, Any]:
    items = body.get("input")
    if not isinstance(items, list):
        return body
    pairs = ("function_call", "function_call_output")
    places = [at for at, item in enumerate(items) if item.get("type") in pairs][2 * RESULTS :]
    return {**body, "input": [item for at, item in enumerate(items) if at not in places]}


add(
    "sizes.third-call-dropped-responses",
    "Calls and results after the second are dropped from a Responses prompt.",
    _asked(RESPONSES, _response_results),
    catches=["sizes.agent.responses"],
)


def _free(body: dict[str, Any]) -> dict[str, Any]:
    many = len(body.get("tools") or ()) > TOOLS and not isinstance(body.get("tool_choice"), dict)
    return {**body, "tools": body["tools"][:TOOLS]} if many else body


def _forced(body: dict[str, Any]) -> dict[str, Any]:
    many = len(body.get("tools") or ()) > TOOLS and isinstance(body.get("tool_choice"), dict)
    first = {"type": "function", "function": {"name": body["tools"][0]["function"]["name"]}} if many else None
    return {**body, "tool_choice": first} if many else body


add(
    "sizes.tools-cut",
    "More than twenty tools are cut to twenty.",
    _asked(CHAT, _free),
    catches=["sizes.tools"],
)
add(
    "sizes.tools-first-called",
    "Among more than twenty tools the first is called, whichever is forced.",
    _asked(CHAT, _forced),
    catches=["sizes.tools.last"],
)


def _copied(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for choice in body["choices"][CHOICES:]:
        choice["message"] = body["choices"][choice["index"] % CHOICES]["message"]


in_body(
    "sizes.choices-copied",
    "Choices after the fourth are copies of the first four.",
    (CHAT,),
    _copied,
    catches=["sizes.choices"],
)


@defect("sizes.choices-unstreamed", on="events", paths=(CHAT,), catches=["sizes.choices.stream"])
def choices_unstreamed(events: list[Event], exchange: Any) -> list[Event]:
    """Choices after the eighth are not streamed."""
    del exchange
    choices = [event.data.get("choices") if isinstance(event.data, dict) else None for event in events]
    return [one for one, of in zip(events, choices, strict=True) if not of or of[0]["index"] < 2 * CHOICES]


def _bare(text: Any) -> Any:
    """A text without the signs that belong to the letter before them."""
    if not isinstance(text, str):
        return text
    return "".join(letter for letter in text if not unicodedata.category(letter).startswith("M"))


def _bare_choice(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    choice["text"] = _bare(choice.get("text"))


in_choices(
    "sizes.signs-lost",
    "Answers lose the vowel signs of Thai, Hindi and their like.",
    (COMPLETIONS,),
    _bare_choice,
    catches=["sizes.script"],
)


@defect("sizes.signs-lost-in-streams", on="events", paths=(COMPLETIONS,), catches=["sizes.script.stream"])
def signs_lost_in_streams(events: list[Event], exchange: Any) -> list[Event]:
    """Streams lose the vowel signs of Thai, Hindi and their like."""
    del exchange
    for event in events:
        for choice in event.data.get("choices") or () if isinstance(event.data, dict) else ():
            choice["text"] = _bare(choice.get("text"))
    return events


def _bare_turns(body: dict[str, Any]) -> dict[str, Any]:
    turns = body.get("messages")
    if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
        return body
    bare = [{**turn, "content": _bare(turn.get("content"))} if "content" in turn else turn for turn in turns]
    return {**body, "messages": bare}


add(
    "sizes.signs-lost-in-prompts",
    "Questions lose the vowel signs of Thai, Hindi and their like.",
    _asked(CHAT, _bare_turns),
    catches=["sizes.script.prompt"],
)


def _refusing(start: str, status: int) -> Callable[[Any, Any], Any]:
    def refusing(value: Any, request: Any) -> Any:
        named = any(name.startswith(start) for name in request.headers)
        return Reply(status, failure("Bad header", status), [JSON]) if named else value

    return refusing


add(
    "sizes.sdk-headers-refused",
    "Requests with the headers of OpenAI's SDK are refused.",
    {"route": only((CHAT,), _refusing("x-stainless-", 400))},
    catches=["sizes.headers"],
)
add(
    "sizes.trace-crashes",
    "Requests that carry a trace end in a server error.",
    {"route": only((CHAT,), _refusing("traceparent", 500))},
    catches=["sizes.headers"],
)


@defect(
    "sizes.beyond-window",
    on="output",
    catches=["sizes.prompt.words", "sizes.prompt.code"],
)
def beyond_window(output: Any, body: dict[str, Any]) -> Any:
    """Behind a prompt of some thousand tokens an answer is one word over and over."""
    if len(json.dumps(body.get("messages") or body.get("prompt") or "")) > FAR:
        output.pieces[:] = [piece and " zu" for piece in output.pieces]
    return output
