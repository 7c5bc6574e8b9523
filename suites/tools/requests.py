"""How the requests of this suite are built."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm import only_if

from .answers import answer
from .tools import (
    LONG,
    NOTE,
    ODD,
    ODD_ARGUMENTS,
    OSLO,
    PARIS,
    PING,
    STORE,
    WEATHER,
    WEATHER_ARGUMENTS,
    named,
    note,
    odd,
    oslo,
    paris,
    ping,
    store,
    weather,
)

if TYPE_CHECKING:
    from pytest_vllm import Case, Recording, Request, Server

OFF = {"enable_thinking": False}
USAGE = {"include_usage": True}
ROOM, ROOM_TO_THINK, ROOM_FOR_LONG = 160, 1024, 500
CALL_ID = "abcdE1234"
WINDY = "-7 degrees, light snow, wind from the north at 12 metres a second"


def choice_of(case: Case | str, name: str) -> Any:
    """The `tool_choice` of a case or a word; named ones name that function."""
    word = case if isinstance(case, str) else case.id
    return named(name) if word == "named" else word


def calm(server: Server, switch: Recording) -> dict[str, Any]:
    """Thinking off, where the model's template takes the switch."""
    return {"chat_template_kwargs": OFF} if server.can("reasoning") and switch.status == 200 else {}


def room(server: Server, switch: Recording) -> int:
    """Tokens that an answer may take: many where thinking can't be switched off.

    Less would cut the answer: a context that is too short for it is not asked.
    """
    thinks = server.can("reasoning") and (switch.status != 200 or bool(answer(switch).reasoning))
    return ROOM_TO_THINK if thinks else ROOM


def ask(server: Server, switch: Recording, text: str, tools: list[Any], choice: Any, **more: Any) -> Request:
    """A request with tools, its usage told in streams too, without thinking where that can be had."""
    streams = {"stream": True, "stream_options": USAGE} if more.pop("streams", False) else {}
    given = {"max_tokens": room(server, switch), **calm(server, switch), **streams, **more}
    return server.chat(text, tools=tools, tool_choice=choice, **given)


def weather_request(server: Server, switch: Recording, case: Case | str, **more: Any) -> Request:
    """The weather of Oslo, which can only be asked for in one way."""
    text = f"What is the weather in Oslo? Call {WEATHER} with {json.dumps(WEATHER_ARGUMENTS)}."
    return ask(server, switch, text, [weather], choice_of(case, WEATHER), **more)


def unused_request(server: Server, switch: Recording, **more: Any) -> Request:
    """A question that no tool answers, so that the model answers it in words."""
    return ask(server, switch, "Say good morning in French.", [weather], "auto", max_tokens=12, **more)


def words_request(server: Server, switch: Recording, **more: Any) -> Request:
    """A question that a tool could answer, with the tool forbidden."""
    text = "Explain in two sentences what weather is."
    return ask(server, switch, text, [weather], "none", **more)


def ping_request(server: Server, switch: Recording, case: Case | str, **more: Any) -> Request:
    """A call that takes no arguments."""
    return ask(server, switch, f"Call {PING}.", [ping], choice_of(case, PING), **more)


def crowd(server: Server) -> int:
    """How many tools to offer at once."""
    return max(4, min(64, (server.max_model_len or 4096) // 200))


def with_ids(server: Server) -> dict[str, Any]:
    """The ids of what is generated, by which the text as the model wrote it is read back."""
    return server.taken("/v1/chat/completions", return_token_ids=True)


def value_request(server: Server, switch: Recording, case: Case, choice: str, **more: Any) -> Request:
    """A tool that takes one value, and no other."""
    text = f"Call {STORE} with exactly this JSON: {json.dumps({'value': case['value']}, ensure_ascii=False)}"
    return ask(server, switch, text, [store(case["schema"])], choice_of(choice, STORE), **more)


def long_request(server: Server, switch: Recording, case: Case | str, **more: Any) -> Request:
    """A call with an argument of many tokens."""
    given = {"max_tokens": max(room(server, switch), ROOM_FOR_LONG), **more}
    return ask(server, switch, f"Call {NOTE} with this text: {LONG}", [note], choice_of(case, NOTE), **given)


def cut_request(server: Server, switch: Recording, case: Case, cut: Case, **more: Any) -> Request:
    """The same, cut by a limit of tokens: some versions refuse a whole call that was cut."""
    return long_request(server, switch, case, max_tokens=cut["tokens"], expect=None, **more)


def odd_request(server: Server, switch: Recording, **more: Any) -> Request:
    """A call that is required, of a tool whose values are what readers of streamed JSON stumble over."""
    text = f"Call {ODD} with exactly this JSON: {json.dumps(ODD_ARGUMENTS, ensure_ascii=False)}"
    given = {"max_tokens": max(room(server, switch), ROOM_FOR_LONG), **more}
    return ask(server, switch, text, [odd], "required", **given)


def two_cities(server: Server, switch: Recording, choice: str = "auto", **more: Any) -> Request:
    """Two tools, both of which are to be called."""
    text = f"What is the weather in Oslo and what is it in Paris? Call {OSLO} and call {PARIS}."
    return ask(server, switch, text, [oslo, paris], choice, **more)


def sentence_and_call(server: Server, switch: Recording, **more: Any) -> Request:
    """A call after a sentence."""
    text = f'First say "One moment, please." and then call {OSLO}.'
    return ask(server, switch, text, [oslo], "auto", **more)


def result_request(server: Server, text: str, **more: Any) -> Request:
    """A conversation that a tool's result ends."""
    function = {"name": OSLO, "arguments": '{"city": "Oslo"}'}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "What is the weather in Oslo?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": CALL_ID, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": CALL_ID, "content": text},
    ]
    return server.chat(messages, tools=[oslo], **more)


def used_result(server: Server, switch: Recording, **more: Any) -> Request:
    """The same with room for an answer."""
    given = {"max_tokens": room(server, switch), **calm(server, switch), **more}
    return result_request(server, "-7 degrees Celsius and light snow", **given)


def replayed(server: Server, message: dict[str, Any]) -> Request:
    """The server's own call of the tool without parameters, sent back to it with a result."""
    only_if(message.get("tool_calls"), "the model made no call that could be sent back")
    sent = {key: message[key] for key in ("role", "content", "tool_calls") if message.get(key) is not None}
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "up"} for call in sent.get("tool_calls", [])
    ]
    messages = [{"role": "user", "content": f"Call {PING}."}, sent, *results]
    return server.chat(messages, max_tokens=1, tools=[ping], expect=None)


def declared(recording: Recording) -> list[Any]:
    """The tools that a request offered."""
    offered = recording.request.json.get("tools") if isinstance(recording.request.json, dict) else None
    return offered if isinstance(offered, list) else []
