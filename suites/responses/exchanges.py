"""Requests of the Responses suite.

Answers that are compared with each other run alone: a greedy text may change with the batch it is computed
in. Where the server's own doing is under test, calls and formats leave a model no choice.
"""

from __future__ import annotations

from typing import Any

from pytest_vllm import Case, Recording, Request, Server, case_file, cases, exchange, only_if

from .contents import COUNTED, FORMS, TWO, given_parts, lines_form, two_tools

PATH = "/v1/responses"
QUESTION = "Count from one to a hundred."
RULE = "Answer in one short sentence, and in English."
TOKENS, FEW, ROOM = 12, 4, 640
WORD = "heron"
TOOL = "note_bird"
ARGUMENTS = {"bird": WORD}

response_refusal = cases("response_refusal", case_file("responses-refusals"))
response_history = cases("response_history", case_file("responses-histories"))
response_loose = cases("response_loose", case_file("responses-loose-histories"))
response_call_history = cases("response_call_history", case_file("responses-call-histories"))
response_form = cases("response_form", FORMS)


def ask(server: Server, given: Any = QUESTION, *, expect: int | None = 200, **more: Any) -> Request:
    """A greedy request that nobody stores."""
    body = {"input": given, "temperature": 0, "store": False, **more}
    return server.post(PATH, body, expect=expect)


@exchange("responses.plain", alone=True)
def responses_plain(server: Server) -> Request:
    """A question, as a text."""
    return ask(server, max_output_tokens=TOKENS, metadata={"purpose": "gate"})


@exchange("responses.again", alone=True)
def responses_again(server: Server, responses_plain: Recording) -> Request:
    """The same once more."""
    del responses_plain
    return ask(server, max_output_tokens=TOKENS)


@exchange("responses.stream", alone=True)
def responses_stream(server: Server, responses_again: Recording) -> Request:
    """The same, streamed."""
    del responses_again
    return ask(server, max_output_tokens=TOKENS, stream=True)


@exchange("responses.chat")
def responses_chat(server: Server) -> Request:
    """The same question as a chat request, for the length of its prompt."""
    return server.chat(QUESTION, max_tokens=1, expect=None)


@exchange("responses.cut")
def responses_cut(server: Server) -> Request:
    """An answer that the limit of tokens cuts short."""
    return ask(server, max_output_tokens=FEW, ignore_eos=True)


@exchange("responses.cut-stream")
def responses_cut_stream(server: Server) -> Request:
    """The same, streamed."""
    return ask(server, max_output_tokens=FEW, ignore_eos=True, stream=True)


@exchange("responses.list")
def responses_list(server: Server) -> Request:
    """The question as a list of messages."""
    return ask(server, [{"role": "user", "content": QUESTION}], max_output_tokens=1)


@exchange("responses.parts")
def responses_parts(server: Server) -> Request:
    """The question as a part of a message."""
    parts = [{"type": "input_text", "text": QUESTION}]
    return ask(server, [{"type": "message", "role": "user", "content": parts}], max_output_tokens=1)


@exchange("responses.instructed")
def responses_instructed(server: Server) -> Request:
    """The question with instructions; some templates refuse them."""
    return ask(server, instructions=RULE, max_output_tokens=1, expect=None)


@exchange("responses.instructed-twice")
def responses_instructed_twice(server: Server) -> Request:
    """The same with twice as long instructions."""
    return ask(server, instructions=f"{RULE} {RULE}", max_output_tokens=1, expect=None)


@exchange("responses.system")
def responses_system(server: Server) -> Request:
    """The same rule as a system message."""
    turns = [{"role": "system", "content": RULE}, {"role": "user", "content": QUESTION}]
    return ask(server, turns, max_output_tokens=1, expect=None)


@exchange("responses.history")
def responses_history(server: Server, response_history: Case) -> Request:
    """A conversation in one of the shapes that clients send back."""
    return ask(server, response_history["input"], max_output_tokens=1)


@exchange("responses.loose-history")
def responses_loose_history(server: Server, response_loose: Case) -> Request:
    """A conversation as agents write it down: without what only the server knows, or without a word."""
    return ask(server, response_loose["input"], max_output_tokens=1, expect=None)


@exchange("responses.call-history")
def responses_call_history(server: Server, response_call_history: Case) -> Request:
    """The same with calls and their results in it."""
    given = response_call_history["input"]
    return ask(server, given, tools=[tool()], max_output_tokens=1, ignore_eos=True, expect=None)


@exchange("responses.call-history-count")
def responses_call_history_count(server: Server, response_call_history: Case) -> Request:
    """The tokens of the same conversation as a chat."""
    return _count(server, response_call_history["chat"])


@exchange("responses.call-begun")
def responses_call_begun(server: Server, response_call_history: Case) -> Request:
    """The first turn of it alone."""
    return ask(server, response_call_history["input"][:1], tools=[tool()], max_output_tokens=1, expect=None)


@exchange("responses.call-begun-count")
def responses_call_begun_count(server: Server, response_call_history: Case) -> Request:
    """The tokens of that turn as a chat."""
    return _count(server, response_call_history["chat"][:1])


@exchange("responses.refusal")
def responses_refusal(server: Server, response_refusal: Case) -> Request:
    """A request that makes no sense."""
    body = {"input": "Hi", "max_output_tokens": 1, **response_refusal["set"]}
    for name in response_refusal.get("without", ()):
        del body[name]
    return server.post(PATH, body, expect=None)


@exchange("responses.unknown")
def responses_unknown(server: Server) -> Request:
    """A response that was never made."""
    return server.get(f"{PATH}/resp_pytest_vllm_none", expect=404)


@exchange("responses.unknown-cancel")
def responses_unknown_cancel(server: Server) -> Request:  # noqa: ARG001 - every exchange takes it
    """The cancellation of a response that was never made."""
    return Request("POST", f"{PATH}/resp_pytest_vllm_none/cancel", expect=404)


@exchange("responses.stored")
def responses_stored(server: Server) -> Request:
    """An answer that is to be kept."""
    return ask(server, "Hi", max_output_tokens=FEW, store=True)


@exchange("responses.retrieved")
def responses_retrieved(server: Server, responses_stored: Recording) -> Request:
    """That answer, asked for by its id."""
    return server.get(f"{PATH}/{responses_stored.ok['id']}", expect=None)


def message_parts(response: Recording) -> list[dict[str, Any]]:
    """The parts of the messages in a response."""
    items = [item for item in response.ok["output"] if item.get("type") == "message"]
    return [part for item in items for part in item.get("content") or () if "text" in part]


def _count(server: Server, turns: list[dict[str, Any]]) -> Request:
    function = {name: value for name, value in tool().items() if name != "type"}
    offered = [{"type": "function", "function": function}]
    return server.post("/tokenize", {"messages": turns, "tools": offered}, expect=None)


def tool() -> dict[str, Any]:
    """A function that can be called in one way only."""
    parameters = {
        "type": "object",
        "properties": {"bird": {"type": "string", "const": WORD}},
        "required": ["bird"],
        "additionalProperties": False,
    }
    about = "Notes down a bird."
    return {"type": "function", "name": TOOL, "description": about, "parameters": parameters, "strict": True}


def calm(server: Server, switch: Recording) -> dict[str, Any]:
    """Thinking off, where the model's template and the version take the switch."""
    able = server.can("reasoning") and switch.status == 200 and server.at_least("0.22.0")
    return {"chat_template_kwargs": {"enable_thinking": False}} if able else {}


def call_request(server: Server, switch: Recording, **more: Any) -> Request:
    """A call that is forced."""
    given: dict[str, Any] = {"tools": [tool()], "tool_choice": "required", "max_output_tokens": ROOM}
    return ask(server, f"Call {TOOL} with the bird {WORD}.", **given, **calm(server, switch), **more)


@exchange("responses.call")
def responses_call(server: Server, tools_thinking_off: Recording) -> Request:
    """A forced call, to be kept."""
    return call_request(server, tools_thinking_off, store=True)


@exchange("responses.call-stream")
def responses_call_stream(server: Server, tools_thinking_off: Recording) -> Request:
    """The same, streamed."""
    return call_request(server, tools_thinking_off, stream=True)


@exchange("responses.uncalled")
def responses_uncalled(server: Server, tools_thinking_off: Recording) -> Request:
    """The same call, forbidden."""
    given: dict[str, Any] = {"tools": [tool()], "tool_choice": "none", "max_output_tokens": 64}
    return ask(server, f"Call {TOOL} with the bird {WORD}.", **given, **calm(server, tools_thinking_off))


def two_request(server: Server, switch: Recording, **more: Any) -> Request:
    """Two calls are asked for, neither is forced."""
    return ask(server, TWO, tools=two_tools(), max_output_tokens=ROOM, **calm(server, switch), **more)


@exchange("responses.two", alone=True)
def responses_two(server: Server, tools_thinking_off: Recording) -> Request:
    """A question for which two calls are due."""
    return two_request(server, tools_thinking_off)


@exchange("responses.two-stream", alone=True)
def responses_two_stream(server: Server, tools_thinking_off: Recording, responses_two: Recording) -> Request:
    """The same, streamed."""
    del responses_two
    return two_request(server, tools_thinking_off, stream=True)


@exchange("responses.format")
def responses_format(server: Server, tools_thinking_off: Recording) -> Request:
    """An answer in a format that leaves no choice."""
    schema = tool()["parameters"]
    text = {"format": {"type": "json_schema", "name": "bird", "schema": schema, "strict": True}}
    given: dict[str, Any] = {"max_output_tokens": ROOM, **calm(server, tools_thinking_off)}
    return ask(server, f"Name the bird {WORD} as JSON.", text=text, **given)


def thinking_request(server: Server, **more: Any) -> Request:
    """A question with thinking on, where the version has a switch."""
    able = server.at_least("0.22.0")
    given: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": True}} if able else {}
    return ask(server, "What is 2 + 2?", max_output_tokens=ROOM, **given, **more)


@exchange("responses.thinking")
def responses_thinking(server: Server) -> Request:
    """A question to a model that thinks first."""
    return thinking_request(server)


@exchange("responses.thinking-stream")
def responses_thinking_stream(server: Server) -> Request:
    """The same, streamed."""
    return thinking_request(server, stream=True)


@exchange("responses.continued")
def responses_continued(server: Server, responses_stored: Recording) -> Request:
    """The same again, after that answer."""
    before = responses_stored.ok["id"]
    return ask(server, "Hi", max_output_tokens=FEW, previous_response_id=before, expect=None)


@exchange("responses.by-hand")
def responses_by_hand(server: Server, responses_stored: Recording) -> Request:
    """The same conversation, sent as a whole."""
    said = "".join(part["text"] for part in message_parts(responses_stored))
    turns = [{"role": "assistant", "content": said}, {"role": "user", "content": "Hi"}]
    return ask(server, [{"role": "user", "content": "Hi"}, *turns], max_output_tokens=1, expect=None)


@exchange("responses.stored-instructed")
def responses_stored_instructed(server: Server) -> Request:
    """An answer under long instructions, to be kept; some templates refuse those."""
    given = {"instructions": " ".join([RULE] * 6), "max_output_tokens": FEW, "store": True}
    return ask(server, "Hi", expect=None, **given)


@exchange("responses.continued-instructed")
def responses_continued_instructed(server: Server, responses_stored_instructed: Recording) -> Request:
    """The same again, after that answer and without instructions."""
    before = responses_stored_instructed.ok["id"]
    return ask(server, "Hi", max_output_tokens=FEW, previous_response_id=before, expect=None)


def called(recording: Recording) -> list[dict[str, Any]]:
    """The items of a response that are calls of functions. Raises NotRun where reasoning is among them."""
    items = [one for one in recording.ok["output"] if isinstance(one, dict)]
    only_if(not any(one.get("type") == "reasoning" for one in items), "the call is reasoned about")
    return [one for one in items if one.get("type") == "function_call"]


def result_of(call: dict[str, Any]) -> dict[str, Any]:
    """What the tool of a call brought."""
    return {"type": "function_call_output", "call_id": call["call_id"], "output": "It is noted."}


@exchange("responses.call-continued")
def responses_call_continued(server: Server, responses_call: Recording) -> Request:
    """The result of the call, after the response that made it."""
    given, more = [result_of(one) for one in called(responses_call)], {"tools": [tool()]}
    before = responses_call.ok["id"]
    return ask(server, given, max_output_tokens=1, previous_response_id=before, expect=None, **more)


@exchange("responses.call-by-hand")
def responses_call_by_hand(server: Server, responses_call: Recording) -> Request:
    """The same conversation, sent as a whole."""
    calls = called(responses_call)
    turns = [
        {"role": "user", "content": responses_call.request.json["input"]},
        *calls,
        *map(result_of, calls),
    ]
    return ask(server, turns, max_output_tokens=1, tools=[tool()], expect=None)


@exchange("responses.background")
def responses_background(server: Server) -> Request:
    """A long answer in the background."""
    long = min(512, (server.max_model_len or 4096) // 2)
    more = {"max_output_tokens": long, "ignore_eos": True}
    return ask(server, background=True, store=True, expect=None, **more)


@exchange("responses.background-cancel")
def responses_background_cancel(server: Server, responses_background: Recording) -> Request:  # noqa: ARG001
    """Its cancellation."""
    made = responses_background.ok["id"]
    return Request("POST", f"{PATH}/{made}/cancel", expect=None)


@exchange("responses.background-after")
def responses_background_after(
    server: Server, responses_background: Recording, responses_background_cancel: Recording
) -> Request:
    """What became of it."""
    del responses_background_cancel
    return server.get(f"{PATH}/{responses_background.ok['id']}", expect=None)


@exchange("responses.custom")
def responses_custom(server: Server) -> Request:
    """A call of a tool that takes plain text."""
    offered = {"type": "custom", "name": "write_line", "description": "Writes a line of text."}
    more = {"tools": [offered], "tool_choice": "required", "max_output_tokens": ROOM}
    return ask(server, "Write a line with the tool.", expect=None, **more)


@exchange("responses.lines", alone=True)
def responses_lines(server: Server, response_form: Case, tools_thinking_off: Recording) -> Request:
    """Several lines, to be said again; nothing else can be said where the version takes a pattern."""
    more = {**lines_form(server), **response_form["set"], **calm(server, tools_thinking_off)}
    return ask(server, max_output_tokens=ROOM, metadata={"purpose": "lines"}, **more)


@exchange("responses.several")
def responses_several(server: Server) -> Request:
    """A conversation of long parts, two to each place; some templates refuse it."""
    return ask(server, given_parts(), tools=[tool()], max_output_tokens=1, expect=None)


@exchange("responses.several-said")
def responses_several_said(server: Server) -> Request:
    """The same conversation, in which the model said what it said in two parts."""
    return ask(server, given_parts(apart=True), tools=[tool()], max_output_tokens=1, expect=None)


@exchange("responses.several-count")
def responses_several_count(server: Server) -> Request:
    """The tokens of the same conversation as a chat."""
    return _count(server, COUNTED)


@exchange("responses.continued-told")
def responses_continued_told(server: Server, responses_stored: Recording) -> Request:
    """The same again, after that answer and under long instructions; some templates refuse those."""
    more: dict[str, Any] = {"instructions": " ".join([RULE] * 6), "max_output_tokens": FEW}
    return ask(server, "Hi", previous_response_id=responses_stored.ok["id"], expect=None, **more)
