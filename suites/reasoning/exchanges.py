"""Requests of the reasoning suite.

Pairs of a streamed and a whole answer run alone, the whole one twice: that tells whether the server repeats
itself at all. Reasoning of real models is long, so there is room for some hundred tokens; what does not come
to its end within them is left undecided.
"""

from __future__ import annotations

from typing import Any

from pytest_vllm import Case, Recording, Request, Server, case_file, cases, exchange, only_if

QUESTION = "What is 7 plus 5? Answer with the number."
#: Tokens for reasoning and answer.
ROOM, FEW = 700, 4
BUDGET = 6
#: Tokens of an answer that goes on behind its budget, and a question that is to be answered by a call.
LONGER, CALL = 64, "Call tell_sum with the sum of 7 and 5."
#: What no answer holds, as a stop string.
NEVER = "never of this world"
#: Qwen's templates and DeepSeek's call the switch differently; a template passes over what it does not know.
ON = {"enable_thinking": True, "thinking": True}
OFF = {"enable_thinking": False, "thinking": False}
USAGE = {"include_usage": True}
SCHEMA = {
    "type": "object",
    "properties": {"sum": {"type": "integer", "enum": [12]}},
    "required": ["sum"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": {"name": "sum", "strict": True, "schema": SCHEMA}}
ADD = {
    "type": "function",
    "function": {
        "name": "tell_sum",
        "description": "Tells the user a sum.",
        "strict": True,
        "parameters": SCHEMA,
    },
}
THOUGHT = "Seven and five. Seven plus three is ten, and two more make twelve. So the answer is twelve."

reasoning_history = cases("reasoning_history", case_file("reasoning-histories"))


def think(switch: Recording) -> dict[str, Any]:
    """Thinking switched on, where the server takes the switch: many templates think only when told to."""
    return {"chat_template_kwargs": ON} if switch.status == 200 else {}


def ask(server: Server, switch: Recording, **more: Any) -> Request:
    """The question, to be thought about."""
    given: dict[str, Any] = {"max_tokens": ROOM, **think(switch), **more}
    if given.get("stream"):
        given["stream_options"] = USAGE
    return server.chat(QUESTION, **given)


@exchange("reasoning.switch")
def reasoning_switch(server: Server) -> Request:
    """One token, with thinking switched on; servers with a tokenizer of Mistral's refuse that."""
    return server.chat(QUESTION, max_tokens=1, chat_template_kwargs=ON, expect=None)


@exchange("reasoning.default")
def reasoning_default(server: Server) -> Request:
    """The question, with whatever the server does by default."""
    return server.chat(QUESTION, max_tokens=ROOM)


@exchange("reasoning.plain", alone=True)
def reasoning_plain(server: Server, reasoning_switch: Recording) -> Request:
    """A question that takes a moment's thought, with the ids of what is thought and said."""
    ids = server.taken("/v1/chat/completions", return_token_ids=True)
    return ask(server, reasoning_switch, **ids)


@exchange("reasoning.plain-response")
def reasoning_plain_response(server: Server, reasoning_switch: Recording) -> Request:
    """The same over Responses."""
    only_if(server.at_least("0.22.0"), "before 0.22 this interface takes no switch of thinking")
    body = {"input": QUESTION, "max_output_tokens": ROOM, "temperature": 0, "store": False}
    return server.post("/v1/responses", {**body, **think(reasoning_switch)})


@exchange("reasoning.plain-again", alone=True)
def reasoning_plain_again(server: Server, reasoning_switch: Recording, reasoning_plain: Recording) -> Request:
    """The same once more."""
    del reasoning_plain
    return ask(server, reasoning_switch)


@exchange("reasoning.plain-stream", alone=True)
def reasoning_plain_stream(
    server: Server, reasoning_switch: Recording, reasoning_plain_again: Recording
) -> Request:
    """The same, streamed."""
    del reasoning_plain_again
    return ask(server, reasoning_switch, stream=True)


@exchange("reasoning.stop-stream", alone=True)
def reasoning_stop_stream(
    server: Server, reasoning_switch: Recording, reasoning_plain_stream: Recording
) -> Request:
    """The same with a stop string that never comes: text that may become it is held back for a while."""
    del reasoning_plain_stream
    return ask(server, reasoning_switch, stream=True, stop=[NEVER])


@exchange("reasoning.off")
def reasoning_off(server: Server, reasoning_switch: Recording) -> Request:
    """Thinking switched off, in the way of Qwen's templates; some take no switch."""
    return replaced(ask(server, reasoning_switch, chat_template_kwargs=OFF))


@exchange("reasoning.off-stream")
def reasoning_off_stream(server: Server, reasoning_switch: Recording) -> Request:
    """The same, streamed."""
    return replaced(ask(server, reasoning_switch, chat_template_kwargs=OFF, stream=True))


@exchange("reasoning.off-rendered")
def reasoning_off_rendered(server: Server) -> Request:
    """What `/tokenize` makes of the question with thinking switched off."""
    messages = [{"role": "user", "content": QUESTION}]
    return server.post("/tokenize", {"messages": messages, "chat_template_kwargs": OFF}, expect=None)


def replaced(request: Request) -> Request:
    """The same request, of which any answer is expected."""
    return Request(request.method, request.path, json=request.json, expect=None)


@exchange("reasoning.cut", alone=True)
def reasoning_cut(server: Server, reasoning_switch: Recording) -> Request:
    """So few tokens that the reasoning does not end."""
    return ask(server, reasoning_switch, max_tokens=FEW)


@exchange("reasoning.cut-stream", alone=True)
def reasoning_cut_stream(server: Server, reasoning_switch: Recording) -> Request:
    """The same, streamed."""
    return ask(server, reasoning_switch, max_tokens=FEW, stream=True)


@exchange("reasoning.hidden")
def reasoning_hidden(server: Server, reasoning_switch: Recording) -> Request:
    """An answer whose reasoning is not wanted."""
    return ask(server, reasoning_switch, include_reasoning=False)


@exchange("reasoning.hidden-stream")
def reasoning_hidden_stream(server: Server, reasoning_switch: Recording) -> Request:
    """The same, streamed."""
    return ask(server, reasoning_switch, include_reasoning=False, stream=True)


@exchange("reasoning.two")
def reasoning_two(server: Server, reasoning_switch: Recording) -> Request:
    """Two sampled choices."""
    return ask(server, reasoning_switch, n=2, temperature=0.6, seed=7)


@exchange("reasoning.two-stream")
def reasoning_two_stream(server: Server, reasoning_switch: Recording) -> Request:
    """The same, streamed."""
    return ask(server, reasoning_switch, n=2, temperature=0.6, seed=7, stream=True)


@exchange("reasoning.schema")
def reasoning_schema(server: Server, reasoning_switch: Recording) -> Request:
    """Reasoning, then an answer in a schema."""
    return ask(server, reasoning_switch, response_format=FORMAT)


@exchange("reasoning.schema-stream")
def reasoning_schema_stream(server: Server, reasoning_switch: Recording) -> Request:
    """The same, streamed."""
    return ask(server, reasoning_switch, response_format=FORMAT, stream=True)


@exchange("reasoning.tool")
def reasoning_tool(server: Server, reasoning_switch: Recording) -> Request:
    """Reasoning, then a call that is required."""
    return ask(server, reasoning_switch, tools=[ADD], tool_choice="required")


@exchange("reasoning.tool-stream")
def reasoning_tool_stream(server: Server, reasoning_switch: Recording) -> Request:
    """The same, streamed."""
    return ask(server, reasoning_switch, tools=[ADD], tool_choice="required", stream=True)


@exchange("reasoning.demanded-cut")
def reasoning_demanded_cut(server: Server, reasoning_switch: Recording) -> Request:
    """A call of one tool that is demanded by name, for so few tokens that the reasoning does not end."""
    chosen = {"type": "function", "function": {"name": "tell_sum"}}
    return ask(server, reasoning_switch, tools=[ADD], tool_choice=chosen, max_tokens=FEW, expect=None)


@exchange("reasoning.typed-tag")
def reasoning_typed_tag(server: Server, reasoning_switch: Recording) -> Request:
    """The user's own message holds the tag that ends reasoning."""
    text = f"{QUESTION} By the way, what does </think> mean in HTML?"
    return server.chat(text, max_tokens=FEW, **think(reasoning_switch))


def history(server: Server, thoughts: dict[str, str]) -> Request:
    """A conversation whose assistant turn, amid a tool's use, comes with reasoning."""
    call = {
        "id": "abcdE1234",
        "type": "function",
        "function": {"name": "tell_sum", "arguments": '{"sum": 12}'},
    }
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": "", **thoughts, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "abcdE1234", "content": "told"},
    ]
    return server.chat(messages, max_tokens=1, tools=[ADD])


def after_result(server: Server, switch: Recording, **more: Any) -> Request:
    """The conversation to go on with, for so few tokens that its reasoning does not end."""
    built = history(server, {}).json
    given = {"max_tokens": 2 * FEW, **think(switch), **more}
    return server.chat(built["messages"], tools=[ADD], expect=None, **given)


@exchange("reasoning.after-result", alone=True)
def reasoning_after_result(server: Server, reasoning_switch: Recording) -> Request:
    """Thoughts about what a tool said."""
    return after_result(server, reasoning_switch)


@exchange("reasoning.after-result-stream", alone=True)
def reasoning_after_result_stream(
    server: Server, reasoning_switch: Recording, reasoning_after_result: Recording
) -> Request:
    """The same, streamed."""
    del reasoning_after_result
    return after_result(server, reasoning_switch, stream=True, stream_options=USAGE)


@exchange("reasoning.history.none")
def reasoning_history_none(server: Server) -> Request:
    """A conversation without reasoning."""
    return history(server, {})


@exchange("reasoning.history.new-key")
def reasoning_history_new_key(server: Server) -> Request:
    """The same with reasoning, under `reasoning`."""
    return history(server, {"reasoning": THOUGHT})


@exchange("reasoning.history.old-key")
def reasoning_history_old_key(server: Server) -> Request:
    """The same with reasoning, under `reasoning_content`."""
    return history(server, {"reasoning_content": THOUGHT})


@exchange("reasoning.history.bare")
def reasoning_history_bare(server: Server) -> Request:
    """What `/tokenize` makes of the conversation without reasoning."""
    body = history(server, {}).json
    return server.post("/tokenize", {"messages": body["messages"], "tools": body["tools"]}, expect=None)


@exchange("reasoning.history.rendered")
def reasoning_history_rendered(server: Server) -> Request:
    """What `/tokenize` makes of the conversation with reasoning."""
    body = history(server, {"reasoning": THOUGHT}).json
    return server.post("/tokenize", {"messages": body["messages"], "tools": body["tools"]}, expect=None)


@exchange("reasoning.history.shape")
def reasoning_history_shape(server: Server, reasoning_history: Case) -> Request:
    """Reasoning in a conversation, in a shape that some clients send."""
    return server.chat(reasoning_history["messages"], max_tokens=1, expect=None)


@exchange("reasoning.budget")
def reasoning_budget(server: Server, reasoning_switch: Recording) -> Request:
    """The question, with few tokens to think it over."""
    return ask(server, reasoning_switch, thinking_token_budget=BUDGET, expect=None)


@exchange("reasoning.budget-goes-on")
def reasoning_budget_goes_on(server: Server, reasoning_switch: Recording) -> Request:
    """The same, for an answer that may not end before its limit."""
    more = {"thinking_token_budget": BUDGET, "ignore_eos": True, "max_tokens": LONGER, "expect": None}
    return ask(server, reasoning_switch, **more)


@exchange("reasoning.budget-call")
def reasoning_budget_call(server: Server, reasoning_switch: Recording) -> Request:
    """A sum to be told by a tool, with few tokens to think it over."""
    given = {"max_tokens": ROOM, "tools": [ADD], **think(reasoning_switch)}
    return server.chat(CALL, thinking_token_budget=BUDGET, expect=None, **given)


@exchange("reasoning.result", alone=True)
def reasoning_result(server: Server, reasoning_switch: Recording) -> Request:
    """What is made of a tool's result, to its end."""
    return after_result(server, reasoning_switch, max_tokens=ROOM)


@exchange("reasoning.result-stream", alone=True)
def reasoning_result_stream(
    server: Server, reasoning_switch: Recording, reasoning_result: Recording
) -> Request:
    """The same, streamed."""
    del reasoning_result
    return after_result(server, reasoning_switch, max_tokens=ROOM, stream=True, stream_options=USAGE)
