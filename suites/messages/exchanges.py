"""Requests of the Messages suite.

Answers that are compared with each other run alone: a greedy text may change with the batch it is computed
in. What agents send is replayed in small; calls leave a model no choice.
"""

from __future__ import annotations

import json
from typing import Any

from pytest_vllm import Case, Recording, Request, Server, case_file, cases, exchange, only_if

PATH = "/v1/messages"
COUNT = "/v1/messages/count_tokens"
QUESTION = "Count from one to a hundred."
RULE = "Answer in one short sentence, and in English."
TOKENS, ROOM = 12, 640
WORD = "heron"
#: How the templates of several families switch thinking on.
THINK = {"enable_thinking": True, "thinking": True}
TOOL, OTHER_TOOL = "note_bird", "find_bird"
ARGUMENTS = {"bird": WORD}

message_refusal = cases("message_refusal", case_file("messages-refusals"))
agent_request = cases("agent_request", case_file("messages-agents"))
WINDY = "-7 degrees, light snow, wind from the north at 12 metres a second"
RESULTS: list[dict[str, Any]] = [
    {"id": "short", "content": "-7"},
    {"id": "long", "content": WINDY},
    {"id": "blocks", "content": [{"type": "text", "text": WINDY}]},
]
tool_result = cases("tool_result", RESULTS)


def user(content: Any) -> list[dict[str, Any]]:
    """A conversation of one user turn."""
    return [{"role": "user", "content": content}]


def say(server: Server, content: Any = QUESTION, *, expect: int | None = 200, **more: Any) -> Request:
    """A greedy request."""
    body = {"messages": user(content), "max_tokens": 1, "temperature": 0, **more}
    return server.post(PATH, body, expect=expect)


@exchange("messages.plain", alone=True)
def messages_plain(server: Server) -> Request:
    """A question."""
    return say(server, max_tokens=TOKENS)


@exchange("messages.again", alone=True)
def messages_again(server: Server, messages_plain: Recording) -> Request:
    """The same once more."""
    del messages_plain
    return say(server, max_tokens=TOKENS)


@exchange("messages.stream", alone=True)
def messages_stream(server: Server, messages_again: Recording) -> Request:
    """The same, streamed."""
    del messages_again
    return say(server, max_tokens=TOKENS, stream=True)


@exchange("messages.chat", alone=True)
def messages_chat(server: Server, messages_again: Recording) -> Request:
    """The same over chat."""
    del messages_again
    return server.chat(QUESTION, max_tokens=TOKENS, expect=None)


@exchange("messages.cut")
def messages_cut(server: Server) -> Request:
    """An answer that may take one token."""
    return say(server)


@exchange("messages.cut-stream")
def messages_cut_stream(server: Server) -> Request:
    """The same, streamed."""
    return say(server, stream=True)


@exchange("messages.stopped", alone=True)
def messages_stopped(server: Server, messages_again: Recording) -> Request:
    """The question, stopped by a piece of its own answer."""
    return say(server, max_tokens=TOKENS, stop_sequences=[stop_of(messages_again)])


@exchange("messages.stopped-among", alone=True)
def messages_stopped_among(server: Server, messages_again: Recording) -> Request:
    """The question, stopped by that piece, which is one of several."""
    stops = ["no such words, one", stop_of(messages_again), "no such words, two"]
    return say(server, max_tokens=TOKENS, stop_sequences=stops)


@exchange("messages.stopped-stream", alone=True)
def messages_stopped_stream(server: Server, messages_again: Recording) -> Request:
    """The same, streamed."""
    return say(server, max_tokens=TOKENS, stop_sequences=[stop_of(messages_again)], stream=True)


def stop_of(whole: Recording) -> str:
    """Five characters of an answer's text, after its first ones."""
    blocks = whole.ok.get("content") or []
    text = "".join(str(block.get("text") or "") for block in blocks if block.get("type") == "text").strip()
    begin = max(len(text) // 2 - 2, 1)
    return text[begin : begin + 5] or "the"


@exchange("messages.thinking", alone=True)
def messages_thinking(server: Server) -> Request:
    """The question, with thinking switched on; some templates and versions refuse the switch."""
    return say(server, max_tokens=TOKENS, chat_template_kwargs=THINK, expect=None)


@exchange("messages.thinking-stream", alone=True)
def messages_thinking_stream(server: Server, messages_thinking: Recording) -> Request:
    """The same, streamed."""
    only_if(messages_thinking.status == 200, "the switch is refused")
    return say(server, max_tokens=TOKENS, chat_template_kwargs=THINK, stream=True, expect=None)


@exchange("messages.thought")
def messages_thought(server: Server, reasoning_plain: Recording) -> Request:
    """A question that a chat was thought about for, with as much room for both."""
    asked = reasoning_plain.request.json
    more = {name: asked[name] for name in ("max_tokens", "chat_template_kwargs") if name in asked}
    return say(server, asked["messages"][-1]["content"], **more, expect=None)


@exchange("messages.parts")
def messages_parts(server: Server) -> Request:
    """The question in a block."""
    return say(server, [{"type": "text", "text": QUESTION}])


@exchange("messages.system")
def messages_system(server: Server) -> Request:
    """The question with a rule; some templates refuse it."""
    return say(server, system=RULE, expect=None)


@exchange("messages.system-twice")
def messages_system_twice(server: Server) -> Request:
    """The same with twice as long a rule."""
    return say(server, system=f"{RULE} {RULE}", expect=None)


@exchange("messages.system-block")
def messages_system_block(server: Server) -> Request:
    """The same with the rule in a block."""
    return say(server, system=[{"type": "text", "text": RULE}], expect=None)


@exchange("messages.agent")
def messages_agent(server: Server, agent_request: Case) -> Request:
    """What agents send."""
    tools = {"tools": [tool()]} if agent_request.get("tools") else {}
    body = {"max_tokens": 1, **tools, **agent_request["set"]}
    built = server.post(PATH, body, expect=None)
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "prompt-caching-2024-07-31"}
    return Request("POST", PATH, json=built.json, headers=headers, expect=None)


@exchange("messages.refusal")
def messages_refusal(server: Server, message_refusal: Case) -> Request:
    """A request that makes no sense."""
    body = {"messages": user("Hi"), "max_tokens": 1, **message_refusal["set"]}
    for name in message_refusal.get("without", ()):
        del body[name]
    return server.post(PATH, body, expect=None)


@exchange("messages.count")
def messages_count(server: Server) -> Request:
    """How many tokens the question has."""
    return server.post(COUNT, {"messages": user(QUESTION)}, expect=None)


@exchange("messages.count-tools")
def messages_count_tools(server: Server) -> Request:
    """How many it has with a tool."""
    return server.post(COUNT, {"messages": user(QUESTION), "tools": [tool()]}, expect=None)


@exchange("messages.tools")
def messages_tools(server: Server) -> Request:
    """The question with a tool."""
    return say(server, tools=[tool()], expect=None)


@exchange("messages.result")
def messages_result(server: Server, tool_result: Case) -> Request:
    """A conversation that a tool's result ends; some templates take none."""
    used = {"type": "tool_use", "id": "abcdE1234", "name": TOOL, "input": ARGUMENTS}
    given = {"type": "tool_result", "tool_use_id": used["id"], "content": tool_result["content"]}
    turns = [*user(QUESTION), {"role": "assistant", "content": [used]}, *user([given])]
    return server.post(PATH, {"messages": turns, "tools": [tool()], "max_tokens": 1}, expect=None)


@exchange("messages.models")
def messages_models(server: Server) -> Request:
    """The list of models, which gives the context length."""
    return server.get("/v1/models")


@exchange("messages.x-api-key")
def messages_x_api_key(server: Server) -> Request:
    """A request with the key where Anthropic's clients put it."""
    headers = {"Authorization": None, "x-api-key": server.api_key}
    return Request("POST", PATH, json=say(server).json, headers=headers, expect=None)


def tool() -> dict[str, Any]:
    """A tool that can be called in one way only."""
    schema = {
        "type": "object",
        "properties": {"bird": {"type": "string", "const": WORD}},
        "required": ["bird"],
        "additionalProperties": False,
    }
    return {"name": TOOL, "description": "Notes down a bird.", "input_schema": schema, "strict": True}


def call_request(server: Server, switch: Recording, **more: Any) -> Request:
    """A call that is forced, without thinking where that can be had."""
    able = server.can("reasoning") and switch.status == 200 and server.at_least("0.20.0")
    calm = {"chat_template_kwargs": {"enable_thinking": False}} if able else {}
    given: dict[str, Any] = {"tools": [tool()], "tool_choice": {"type": "any"}, "max_tokens": ROOM, **calm}
    return say(server, f"Call {TOOL} with the bird {WORD}.", **given, **more)


@exchange("messages.call")
def messages_call(server: Server, tools_thinking_off: Recording) -> Request:
    """A forced call."""
    return call_request(server, tools_thinking_off)


@exchange("messages.call-stream")
def messages_call_stream(server: Server, tools_thinking_off: Recording) -> Request:
    """The same, streamed."""
    return call_request(server, tools_thinking_off, stream=True)


@exchange("messages.uncalled")
def messages_uncalled(server: Server, tools_thinking_off: Recording) -> Request:
    """The same call, forbidden; some versions do not know how."""
    asked = call_request(server, tools_thinking_off, expect=None).json
    return server.post(PATH, {**asked, "tool_choice": {"type": "none"}, "max_tokens": 64}, expect=None)


def two_calls(server: Server, switch: Recording) -> tuple[dict[str, Any], dict[str, Any]]:
    """A conversation in which two tools have to be called, over this interface and over chat."""
    able = server.can("reasoning") and switch.status == 200 and server.at_least("0.20.0")
    calm = {"chat_template_kwargs": {"enable_thinking": False}} if able else {}
    first, second = tool(), {**tool(), "name": OTHER_TOOL}
    asked = f"Call {TOOL} with the bird {WORD}, and call {OTHER_TOOL} with the bird {WORD}."
    shared = {"messages": user(asked), "max_tokens": ROOM, "temperature": 0, **calm}
    functions = [
        {"name": one["name"], "description": one["description"], "parameters": one["input_schema"]}
        for one in (first, second)
    ]
    chat = [{"type": "function", "function": {**one, "strict": True}} for one in functions]
    return (
        {**shared, "tools": [first, second], "tool_choice": {"type": "any"}},
        {**shared, "tools": chat, "tool_choice": "required"},
    )


@exchange("messages.calls", alone=True)
def messages_calls(server: Server, tools_thinking_off: Recording) -> Request:
    """Two tools, both of which are to be called."""
    return server.post(PATH, two_calls(server, tools_thinking_off)[0], expect=None)


@exchange("messages.calls-again", alone=True)
def messages_calls_again(server: Server, messages_calls: Recording) -> Request:
    """The same once more."""
    return server.post(PATH, messages_calls.request.json, expect=None)


@exchange("messages.calls-stream", alone=True)
def messages_calls_stream(server: Server, messages_calls: Recording) -> Request:
    """The same, streamed."""
    return server.post(PATH, {**messages_calls.request.json, "stream": True}, expect=None)


@exchange("messages.calls-chat", alone=True)
def messages_calls_chat(server: Server, messages_calls: Recording, tools_thinking_off: Recording) -> Request:
    """The same over chat."""
    del messages_calls
    return server.post("/v1/chat/completions", two_calls(server, tools_thinking_off)[1], expect=None)


@exchange("messages.named")
def messages_named(server: Server, tools_thinking_off: Recording) -> Request:
    """A greeting, to which one tool has to be called and no other: nobody would by himself."""
    shared = two_calls(server, tools_thinking_off)[0]
    named = {"messages": user("Good morning."), "tool_choice": {"type": "tool", "name": OTHER_TOOL}}
    return server.post(PATH, {**shared, **named}, expect=None)


#: What routes turn most easily: line breaks, blanks in a row, marks of HTML, letters beyond ASCII.
LINES = 'red & green\n\n  blue <b>naïve</b> 東京\n- "grey"\nend'
LINES_TOKENS = 80


@exchange("messages.lines", alone=True)
def messages_lines(server: Server) -> Request:
    """Several lines, to be said again."""
    return say(server, f"Repeat this text: {LINES}", max_tokens=LINES_TOKENS)


@exchange("messages.lines-stream", alone=True)
def messages_lines_stream(server: Server, messages_lines: Recording) -> Request:
    """The same, streamed."""
    return server.post(PATH, {**messages_lines.request.json, "stream": True})


@exchange("messages.lines-chat", alone=True)
def messages_lines_chat(server: Server, messages_lines: Recording) -> Request:
    """The same over chat."""
    del messages_lines
    return server.chat(f"Repeat this text: {LINES}", max_tokens=LINES_TOKENS, expect=None)


#: Parts of a conversation, each of more tokens than all that may stand between two of them.
_HEADS = ("Rule 1", "Rule 2", "Log 3", "Log 4", "Note 5", "Find 6", "Find 7")
SAID = tuple(
    f"{head}: {', '.join(f'{17 * number + at} knots of wind' for at in range(8))}."
    for number, head in enumerate(_HEADS, start=1)
)


@exchange("messages.several")
def messages_several(server: Server) -> Request:
    """A conversation in which all that can have several parts has two; some templates refuse it."""
    part = [{"type": "text", "text": text} for text in SAID]
    used = {"type": "tool_use", "id": "abcdE1234", "name": TOOL, "input": ARGUMENTS}
    given = {"type": "tool_result", "tool_use_id": used["id"], "content": part[5:]}
    turns = [*user(part[2:4]), {"role": "assistant", "content": [part[4], used]}, *user([given])]
    body = {"system": part[:2], "messages": turns, "tools": [tool()], "max_tokens": 1}
    return server.post(PATH, body, expect=None)


@exchange("messages.several-count")
def messages_several_count(server: Server) -> Request:
    """The tokens of the same conversation as a chat."""
    function = {"name": TOOL, "arguments": json.dumps(ARGUMENTS)}
    called = [{"id": "abcdE1234", "type": "function", "function": function}]
    turns = [
        {"role": "system", "content": "".join(SAID[:2])},
        {"role": "user", "content": "\n".join(SAID[2:4])},
        {"role": "assistant", "content": SAID[4], "tool_calls": called},
        {"role": "tool", "tool_call_id": "abcdE1234", "content": "\n".join(SAID[5:])},
    ]
    offered = {"name": TOOL, "description": tool()["description"], "parameters": tool()["input_schema"]}
    body = {"messages": turns, "tools": [{"type": "function", "function": offered}]}
    return server.post("/tokenize", body, expect=None)
