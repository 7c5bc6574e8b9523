"""Markup that leaks is seen, and text that only looks like it is left alone."""

from __future__ import annotations

import pytest

from suites.reasoning.thoughts import marked
from suites.tools.markers import cut_marker, leaked, written_call

CALL = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>",
        "Fine.</answer>",
        "<\uff5cDSML",
        "<\uff5ctool\u2581calls\u2581begin\uff5c>",
        "[TOOL_CALLS]get_weather{}",
        "<|tool_call>call:get{x:1}<tool_call|>",
        'functions.get_weather:0 {"city": "Oslo"}',
        "<|im_end|>",
        "<|of_a_family_to_come|>",
        "<function=read>",
    ],
)
def test_markup_is_seen(text: str) -> None:
    assert leaked(f"before {text} after")


@pytest.mark.parametrize(
    "text",
    ["", "2 < 3 and 3 > 2", "<b>bold</b>", "a | b", "use the function read()", "[1, 2]", "if a<|b then"],
)
def test_other_text_is_no_markup(text: str) -> None:
    assert leaked(text) == []
    assert marked(text) == []


@pytest.mark.parametrize(
    ("text", "cut"), [("<tool_c", "<tool_c"), ("Fine <too", ""), ("a <", ""), ("[TOOL_CA", "[TOOL_CA")]
)
def test_a_marker_that_was_cut_is_seen(text: str, cut: str) -> None:
    assert cut_marker(text) == cut


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"I will look. <tool_call>{CALL}",
        "<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>",
        '[get_weather(city="Oslo")]',
        '[TOOL_CALLS]get_weather{"city": "Oslo"}',
        'functions.get_weather:0<|tool_call_argument_begin|>{"city": "Oslo"}',
    ],
)
def test_a_whole_call_in_a_text_is_seen(text: str) -> None:
    assert written_call(text, ["get_weather"])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I could call get_weather for Oslo.",
        '<tool_call>{"name": "get_weather", "arguments": {"city": "Os',
        '<tool_call>{"name": "other", "arguments": {}}</tool_call>',
        f"A call reads {CALL}, without a marker in front of it.",
        "<function=get_weather> is never closed",
    ],
)
def test_a_broken_or_unknown_call_is_the_models_own(text: str) -> None:
    assert written_call(text, ["get_weather"]) == ""
