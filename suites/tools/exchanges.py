"""Requests of the tools suite.

Where the fact under test is the server's, the call is forced, and its schema leaves no choice to any model.
Where a model has to want the call (`auto`), checks ask whether it did. Thinking is off where it can be.
"""

from __future__ import annotations

import json
from typing import Any

from pytest_vllm import Case, Recording, Request, Server, case_file, cases, exchange, only_if

from .requests import (
    OFF,
    USAGE,
    WINDY,
    ask,
    crowd,
    cut_request,
    long_request,
    odd_request,
    ping_request,
    replayed,
    result_request,
    sentence_and_call,
    two_cities,
    unused_request,
    used_result,
    value_request,
    weather_request,
    with_ids,
    words_request,
)
from .tools import WEATHER, many, named, oslo, paris, ping, weather

_ROWS: list[dict[str, Any]] = json.loads(case_file("tools-values").read_text("utf-8"))
tool_value = cases("tool_value", [row for row in _ROWS if "marker" not in row["id"] and "forced" not in row])
marked_value = cases("marked_value", [row for row in _ROWS if "marker" in row["id"]])
auto_value = cases("auto_value", [row for row in _ROWS if row.get("auto")])
forced_choice = cases("forced_choice", [{"id": "required"}, {"id": "named"}])
call_mode = cases("call_mode", [{"id": "whole"}, {"id": "stream"}])
cut_at = cases("cut_at", [{"id": str(tokens), "tokens": tokens} for tokens in (1, 5, 20)])
tool_refusal = cases("tool_refusal", case_file("tools-refusals"))
tool_oddity = cases("tool_oddity", case_file("tools-oddities"))
tool_schema = cases("tool_schema", case_file("tools-schemas"))
tool_history = cases("tool_history", case_file("tools-histories"))

TWO = {"n": 2, "temperature": 1, "seed": 7}


@exchange("tools.thinking-off")
def tools_thinking_off(server: Server) -> Request:
    """A short answer with thinking switched off; some templates refuse the switch, some ignore it."""
    return server.chat("Say hi.", max_tokens=8, chat_template_kwargs=OFF, expect=None)


@exchange("tools.forced.weather")
def tools_forced_weather(server: Server, forced_choice: Case, tools_thinking_off: Recording) -> Request:
    """A call that is forced, of a tool with three parameters."""
    return weather_request(server, tools_thinking_off, forced_choice)


@exchange("tools.forced.weather-stream")
def tools_forced_weather_stream(
    server: Server, forced_choice: Case, tools_thinking_off: Recording
) -> Request:
    """The same, streamed."""
    return weather_request(server, tools_thinking_off, forced_choice, streams=True)


@exchange("tools.forced.empty")
def tools_forced_empty(server: Server, forced_choice: Case, tools_thinking_off: Recording) -> Request:
    """A forced call of a tool without parameters."""
    return ping_request(server, tools_thinking_off, forced_choice)


@exchange("tools.forced.empty-stream")
def tools_forced_empty_stream(server: Server, forced_choice: Case, tools_thinking_off: Recording) -> Request:
    """The same, streamed."""
    return ping_request(server, tools_thinking_off, forced_choice, streams=True)


@exchange("tools.forced.ids-stream")
def tools_forced_ids_stream(server: Server, tools_thinking_off: Recording) -> Request:
    """A forced call, streamed with the ids of its tokens."""
    only_if(server.takes("/v1/chat/completions", "return_token_ids"), "this version returns no token ids")
    return weather_request(server, tools_thinking_off, "named", streams=True, return_token_ids=True)


@exchange("tools.forced.value")
def tools_forced_value(server: Server, tool_value: Case, tools_thinking_off: Recording) -> Request:
    """A forced call with one known value."""
    return value_request(server, tools_thinking_off, tool_value, "named")


@exchange("tools.forced.value-stream")
def tools_forced_value_stream(server: Server, tool_value: Case, tools_thinking_off: Recording) -> Request:
    """The same, streamed."""
    return value_request(server, tools_thinking_off, tool_value, "named", streams=True)


@exchange("tools.marked.value")
def tools_marked_value(server: Server, marked_value: Case, tools_thinking_off: Recording) -> Request:
    """A forced call whose value holds the markup of calls."""
    return value_request(server, tools_thinking_off, marked_value, "named")


@exchange("tools.marked.value-stream")
def tools_marked_value_stream(server: Server, marked_value: Case, tools_thinking_off: Recording) -> Request:
    """The same, streamed."""
    return value_request(server, tools_thinking_off, marked_value, "named", streams=True)


@exchange("tools.forced.long")
def tools_forced_long(server: Server, forced_choice: Case, tools_thinking_off: Recording) -> Request:
    """A forced call with a long argument."""
    return long_request(server, tools_thinking_off, forced_choice)


@exchange("tools.forced.long-stream")
def tools_forced_long_stream(server: Server, forced_choice: Case, tools_thinking_off: Recording) -> Request:
    """The same, streamed."""
    return long_request(server, tools_thinking_off, forced_choice, streams=True)


@exchange("tools.forced.single")
def tools_forced_single(server: Server, tools_thinking_off: Recording) -> Request:
    """A call is required, of two tools, one at a time."""
    return two_cities(server, tools_thinking_off, "required", parallel_tool_calls=False)


@exchange("tools.forced.two")
def tools_forced_two(server: Server, tools_thinking_off: Recording) -> Request:
    """Two choices, each of which has to make a call."""
    return ask(server, tools_thinking_off, f"Call {WEATHER}.", [weather], named(WEATHER), **TWO)


@exchange("tools.forced.two-stream")
def tools_forced_two_stream(server: Server, tools_thinking_off: Recording) -> Request:
    """The same, streamed."""
    return ask(server, tools_thinking_off, f"Call {WEATHER}.", [weather], named(WEATHER), streams=True, **TWO)


@exchange("tools.forced.many")
def tools_forced_many(server: Server, tools_thinking_off: Recording) -> Request:
    """As many tools as the context holds comfortably, 64 at most."""
    return ask(server, tools_thinking_off, f"Call {WEATHER}.", many(crowd(server)), named(WEATHER))


@exchange("tools.cut.forced")
def tools_cut_forced(
    server: Server, cut_at: Case, forced_choice: Case, tools_thinking_off: Recording
) -> Request:
    """A long argument, cut by the limit of tokens."""
    return cut_request(server, tools_thinking_off, forced_choice, cut_at)


@exchange("tools.cut.forced-stream")
def tools_cut_forced_stream(
    server: Server, cut_at: Case, forced_choice: Case, tools_thinking_off: Recording
) -> Request:
    """The same, streamed."""
    return cut_request(server, tools_thinking_off, forced_choice, cut_at, streams=True)


@exchange("tools.odd")
def tools_odd(server: Server, call_mode: Case, tools_thinking_off: Recording) -> Request:
    """A call is required whose values are odd: brackets in texts, quotes, other scripts, numbers."""
    return odd_request(server, tools_thinking_off, streams=call_mode.id == "stream")


@exchange("tools.auto.weather")
def tools_auto_weather(server: Server, tools_thinking_off: Recording) -> Request:
    """A tool is offered, to be called or not."""
    return weather_request(server, tools_thinking_off, "auto")


@exchange("tools.auto.weather-stream")
def tools_auto_weather_stream(server: Server, tools_thinking_off: Recording) -> Request:
    """The same, streamed."""
    return weather_request(server, tools_thinking_off, "auto", streams=True)


@exchange("tools.auto.empty")
def tools_auto_empty(server: Server, tools_thinking_off: Recording) -> Request:
    """A tool without parameters is offered."""
    return ping_request(server, tools_thinking_off, "auto")


@exchange("tools.auto.empty-stream")
def tools_auto_empty_stream(server: Server, tools_thinking_off: Recording) -> Request:
    """The same, streamed."""
    return ping_request(server, tools_thinking_off, "auto", streams=True)


@exchange("tools.auto.value")
def tools_auto_value(server: Server, auto_value: Case, tools_thinking_off: Recording) -> Request:
    """A call with one known value, made by the model in its own format."""
    return value_request(server, tools_thinking_off, auto_value, "auto", **with_ids(server))


@exchange("tools.auto.value-stream")
def tools_auto_value_stream(server: Server, auto_value: Case, tools_thinking_off: Recording) -> Request:
    """The same, streamed."""
    return value_request(server, tools_thinking_off, auto_value, "auto", streams=True)


@exchange("tools.auto.long")
def tools_auto_long(server: Server, tools_thinking_off: Recording) -> Request:
    """A long argument, written by the model in its own format."""
    return long_request(server, tools_thinking_off, "auto")


@exchange("tools.auto.long-stream")
def tools_auto_long_stream(server: Server, tools_thinking_off: Recording) -> Request:
    """The same, streamed."""
    return long_request(server, tools_thinking_off, "auto", streams=True)


@exchange("tools.auto.parallel", alone=True)
def tools_auto_parallel(server: Server, tools_thinking_off: Recording) -> Request:
    """Two calls are asked for."""
    return two_cities(server, tools_thinking_off)


@exchange("tools.auto.parallel-again", alone=True)
def tools_auto_parallel_again(
    server: Server, tools_thinking_off: Recording, tools_auto_parallel: Recording
) -> Request:
    """The same once more."""
    del tools_auto_parallel
    return two_cities(server, tools_thinking_off)


@exchange("tools.auto.parallel-stream", alone=True)
def tools_auto_parallel_stream(
    server: Server, tools_thinking_off: Recording, tools_auto_parallel_again: Recording
) -> Request:
    """The same, streamed."""
    del tools_auto_parallel_again
    return two_cities(server, tools_thinking_off, streams=True)


@exchange("tools.auto.single")
def tools_auto_single(server: Server, tools_thinking_off: Recording) -> Request:
    """Two calls are asked for, one at a time is allowed."""
    return two_cities(server, tools_thinking_off, parallel_tool_calls=False)


@exchange("tools.auto.single-stream")
def tools_auto_single_stream(server: Server, tools_thinking_off: Recording) -> Request:
    """The same, streamed."""
    return two_cities(server, tools_thinking_off, parallel_tool_calls=False, streams=True)


@exchange("tools.auto.words", alone=True)
def tools_auto_words(server: Server, tools_thinking_off: Recording) -> Request:
    """Text before a call."""
    return sentence_and_call(server, tools_thinking_off)


@exchange("tools.auto.words-again", alone=True)
def tools_auto_words_again(
    server: Server, tools_thinking_off: Recording, tools_auto_words: Recording
) -> Request:
    """The same once more."""
    del tools_auto_words
    return sentence_and_call(server, tools_thinking_off)


@exchange("tools.auto.words-stream", alone=True)
def tools_auto_words_stream(
    server: Server, tools_thinking_off: Recording, tools_auto_words_again: Recording
) -> Request:
    """The same, streamed."""
    del tools_auto_words_again
    return sentence_and_call(server, tools_thinking_off, streams=True)


@exchange("tools.unused", alone=True)
def tools_unused(server: Server, tools_thinking_off: Recording) -> Request:
    """A question for which the tool that is offered is of no use."""
    return unused_request(server, tools_thinking_off)


@exchange("tools.unused-stream", alone=True)
def tools_unused_stream(server: Server, tools_thinking_off: Recording) -> Request:
    """The same, streamed."""
    return unused_request(server, tools_thinking_off, streams=True)


@exchange("tools.none.weather")
def tools_none_weather(server: Server, tools_thinking_off: Recording) -> Request:
    """A tool is offered and forbidden."""
    return words_request(server, tools_thinking_off)


@exchange("tools.none.weather-stream")
def tools_none_weather_stream(server: Server, tools_thinking_off: Recording) -> Request:
    """The same, streamed."""
    return words_request(server, tools_thinking_off, streams=True)


@exchange("tools.none.alone")
def tools_none_alone(server: Server) -> Request:
    """The tool choice "none" where no tools are offered, as many clients send it."""
    return server.chat("Hi", max_tokens=1, tool_choice="none")


@exchange("tools.prompt.bare")
def tools_prompt_bare(server: Server) -> Request:
    """A question without tools."""
    return server.chat("What time is it?", max_tokens=1)


@exchange("tools.prompt.one")
def tools_prompt_one(server: Server) -> Request:
    """The same with a tool."""
    return server.chat("What time is it?", max_tokens=1, tools=[oslo])


@exchange("tools.prompt.two")
def tools_prompt_two(server: Server) -> Request:
    """The same with two."""
    return server.chat("What time is it?", max_tokens=1, tools=[oslo, paris])


@exchange("tools.prompt.none")
def tools_prompt_none(server: Server) -> Request:
    """The same with a tool that may not be called."""
    return server.chat("What time is it?", max_tokens=1, tools=[oslo], tool_choice="none")


@exchange("tools.default")
def tools_default(server: Server) -> Request:
    """Tools without a tool choice, which makes it "auto"."""
    return server.chat("Hi", max_tokens=1, tools=[ping], expect=None)


@exchange("tools.refusal")
def tools_refusal(server: Server, tool_refusal: Case) -> Request:
    """A request whose tools or tool choice make no sense."""
    return server.chat("Hi", max_tokens=1, expect=None, **tool_refusal["set"])


@exchange("tools.oddity")
def tools_oddity(server: Server, tool_oddity: Case) -> Request:
    """Tools that a server may take or refuse, but must survive."""
    return server.chat("Hi", max_tokens=1, expect=None, **tool_oddity["set"])


@exchange("tools.schema")
def tools_schema(server: Server, tool_schema: Case) -> Request:
    """A tool whose schema uses one ordinary keyword, with a call of it forced.

    Streamed, because some versions answer 400 to a whole call that the limit of tokens cut short.
    """
    schema = {"type": "object", **tool_schema["schema"]}
    given = {"type": "function", "function": {"name": "act", "description": "Acts.", "parameters": schema}}
    return server.chat(
        "Act.", max_tokens=1, tools=[given], tool_choice=named("act"), stream=True, expect=None
    )


@exchange("tools.history.shape")
def tools_history_shape(server: Server, tool_history: Case) -> Request:
    """A conversation with calls in it, in one of the shapes that clients send."""
    return server.chat(tool_history["messages"], max_tokens=1, tools=[oslo, ping], expect=None)


@exchange("tools.history.replay")
def tools_history_replay(server: Server, forced_choice: Case, tools_forced_empty: Recording) -> Request:
    """The server's own call, sent back to it with a result."""
    del forced_choice
    return replayed(server, tools_forced_empty.ok["choices"][0]["message"])


@exchange("tools.result.short")
def tools_result_short(server: Server) -> Request:
    """A conversation that a tool's short result ends."""
    return result_request(server, "-7", max_tokens=1)


@exchange("tools.result.long")
def tools_result_long(server: Server) -> Request:
    """The same with a longer result."""
    return result_request(server, WINDY, max_tokens=1)


@exchange("tools.result.used")
def tools_result_used(server: Server, tools_thinking_off: Recording) -> Request:
    """A conversation that a result ends, with room for an answer."""
    return used_result(server, tools_thinking_off, **with_ids(server))


@exchange("tools.result.used-stream")
def tools_result_used_stream(server: Server, tools_thinking_off: Recording) -> Request:
    """The same, streamed."""
    return used_result(server, tools_thinking_off, stream=True, stream_options=USAGE)
