"""Tool calls: every format, whole and streamed, chosen, required, forbidden, several at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.sim.client import Client

PARSERS = ("hermes", "qwen3_coder", "llama3_json", "mistral", "deepseek_v3")
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "unit": {"enum": ["celsius", "fahrenheit"]},
                "days": {"type": "integer"},
                "hourly": {"type": "boolean"},
            },
            "required": ["city", "unit", "days", "hourly"],
        },
    },
}
CLOCK = {
    "type": "function",
    "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}},
}
ASK = "What is the weather in Z\u00fcrich? Use the tool."


def parser(simulated: Callable[..., Client], name: str) -> Client:
    """A simulator with that tool parser."""
    return simulated("m", "--max-model-len", "4096", "--enable-auto-tool-choice", "--tool-call-parser", name)


def calls_of(chunks: list[Any]) -> list[dict[str, Any]]:
    """Tool calls put together from a stream."""
    made: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            for delta in choice["delta"].get("tool_calls") or ():
                call = made.setdefault(delta["index"], {"id": delta.get("id"), "name": None, "arguments": ""})
                function = delta.get("function") or {}
                call["name"] = call["name"] or function.get("name")
                call["arguments"] += function.get("arguments") or ""
    return list(made.values())


@pytest.mark.parametrize("name", PARSERS)
def test_a_call_fits_its_schema_whole_and_streamed(simulated: Callable[..., Client], name: str) -> None:
    """The same call both ways; ids differ from each other, arguments are JSON of the right types."""
    sim = parser(simulated, name)
    whole = sim.chat(ASK, tools=[WEATHER]).json["choices"][0]
    chunks = sim.chat(ASK, tools=[WEATHER], stream=True).chunks
    call = whole["message"]["tool_calls"][0]
    streamed = calls_of(chunks)[0]
    arguments = json.loads(call["function"]["arguments"])

    assert (whole["finish_reason"], whole["message"]["content"]) == ("tool_calls", None)
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert set(arguments) == {"city", "unit", "days", "hourly"}
    assert (arguments["city"], type(arguments["days"]), type(arguments["hourly"])) == (
        "Z\u00fcrich",
        int,
        bool,
    )
    assert streamed["name"] == call["function"]["name"] == "get_weather"
    assert json.loads(streamed["arguments"]) == arguments
    assert streamed["id"] != call["id"]


@pytest.mark.parametrize("name", PARSERS)
def test_a_streamed_call_begins_with_its_name(simulated: Callable[..., Client], name: str) -> None:
    """Id, type and name once, in the first piece of a call; then arguments in several pieces."""
    chunks = parser(simulated, name).chat(ASK, tools=[WEATHER], stream=True).chunks
    pieces = [
        piece
        for chunk in chunks
        for choice in chunk["choices"]
        for piece in choice["delta"].get("tool_calls") or ()
    ]

    assert pieces[0]["id"]
    assert (pieces[0]["type"], pieces[0]["function"]["name"]) == ("function", "get_weather")
    assert not [piece for piece in pieces[1:] if piece.get("id") or piece["function"].get("name")]
    assert len(pieces) > 2


@pytest.mark.parametrize("name", PARSERS)
def test_two_calls_come_at_once(simulated: Callable[..., Client], name: str) -> None:
    """Two cities, two calls, two ids; one where only one is wished for."""
    sim = parser(simulated, name)
    text = "What is the weather in Paris and in Rome? Use the tool for each."
    calls = sim.chat(text, tools=[WEATHER]).json["choices"][0]["message"]["tool_calls"]
    one = sim.chat(text, tools=[WEATHER], parallel_tool_calls=False).json["choices"][0]["message"][
        "tool_calls"
    ]
    streamed = calls_of(sim.chat(text, tools=[WEATHER], stream=True).chunks)

    assert [json.loads(call["function"]["arguments"])["city"] for call in calls] == ["Paris", "Rome"]
    assert len({call["id"] for call in calls}) == 2
    assert [json.loads(call["arguments"])["city"] for call in streamed] == ["Paris", "Rome"]
    assert len(one) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_required_calls_though_nothing_asks_for_it(tools: Client, stream: bool) -> None:
    """Whatever the prompt says."""
    answer = tools.chat("Hi", tools=[CLOCK, WEATHER], tool_choice="required", stream=stream)
    names = (
        [call["name"] for call in calls_of(answer.chunks)]
        if stream
        else [call["function"]["name"] for call in answer.json["choices"][0]["message"]["tool_calls"]]
    )

    assert names
    assert set(names) <= {"get_time", "get_weather"}


@pytest.mark.parametrize("stream", [False, True])
def test_a_named_tool_is_called_and_only_its_arguments_are_written(
    tools: Client,
    stream: bool,
) -> None:
    """The finish reason of a named call is `stop`, as in vLLM."""
    choice = {"type": "function", "function": {"name": "get_weather"}}
    answer = tools.chat("Hi", tools=[CLOCK, WEATHER], tool_choice=choice, stream=stream)
    calls = (
        calls_of(answer.chunks)
        if stream
        else [call["function"] for call in answer.json["choices"][0]["message"]["tool_calls"]]
    )
    last = answer.chunks[-1]["choices"][0] if stream else answer.json["choices"][0]

    assert [call["name"] for call in calls] == ["get_weather"]
    assert isinstance(json.loads(calls[0]["arguments"])["days"], int)
    assert last["finish_reason"] == "stop"


def test_none_and_no_tools_call_nothing(tools: Client) -> None:
    """Even where the prompt asks for it."""
    for params in ({"tools": [WEATHER], "tool_choice": "none"}, {}):
        choice = tools.chat(ASK, **params).json["choices"][0]

        assert not choice["message"].get("tool_calls")
        assert choice["finish_reason"] == "stop"


def test_a_result_is_used(tools: Client) -> None:
    """The answer after a tool's message repeats what it said."""
    function = {"name": "get_weather", "arguments": '{"city": "Rome"}'}
    messages = [
        {"role": "user", "content": "What is the weather in Rome?"},
        {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "a", "content": "27 degrees and sunny"},
    ]
    choice = tools.post("/v1/chat/completions", messages=messages, tools=[WEATHER]).json["choices"][0]

    assert "27 degrees" in choice["message"]["content"]
    assert choice["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("params", "status", "words"),
    [
        ({"tool_choice": "auto"}, 400, "When using `tool_choice`, `tools` must be set"),
        ({"tool_choice": "sometimes", "tools": [WEATHER]}, 400, "tool_choice"),
        (
            {"tool_choice": {"type": "function", "function": {"name": "nope"}}, "tools": [WEATHER]},
            400,
            "does not match any of the specified",
        ),
        ({"tools": [{"type": "function", "function": {}}]}, 400, "Field required"),
    ],
)
def test_a_wrong_choice_is_refused(tools: Client, params: dict[str, Any], status: int, words: str) -> None:
    """With vLLM's words."""
    answer = tools.chat("Hi", **params)

    assert answer.status == status
    assert words in answer.json["error"]["message"]


def test_auto_without_a_parser_is_refused(sim: Client) -> None:
    """The flags that are missing are named."""
    message = sim.chat(ASK, tools=[WEATHER]).json["error"]["message"]

    assert message == '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'


def test_calls_are_counted(tools: Client) -> None:
    """By mode and outcome."""
    name = "vllm:tool_call_parser_invocations_total"
    before = tools.counter(name)
    tools.chat(ASK, tools=[WEATHER])

    assert tools.counter(name) == before + 1
