"""The markup in which models of all families write calls and reasoning: none of it is for clients."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

_BAR = "\uff5c"  # the full-width bar of DeepSeek's markers

#: Literal beginnings of markers, by what they belong to. Names of parsers are vLLM's.
CALLS = (
    "<tool_call>", "</tool_call>", "<tool_call|>", "<|tool_call", "<function=", "</function>", "<parameter=",
    "</parameter>", "<tool_calls>", "</tool_calls>", "<|tool_calls_section", "<invoke name=", "</invoke>",
    "<minimax:tool_call", "</minimax:tool_call", "<seed:tool_call", "</seed:tool_call", "<longcat_tool_call",
    "</longcat_tool_call", "<steptml:", "</steptml:", "<arg_key>", "</arg_key>", "<arg_value>",
    "</arg_value>", "<start_function_call>", "<end_function_call>", "<function_calls>", "</function_calls>",
    "<function_call>", "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[TOOL_RESULTS]", "<|python_tag|>",
    "<|python_start|>", "<|python_end|>", "<|action_start|>", "<|action_end|>", "<|plugin|>",
    "functools[", "<|channel|>", "<|call|>", "<|constrain|>", "<|DSML", f"<{_BAR}DSML", f"</{_BAR}DSML",
    f"{_BAR}DSML{_BAR}", f"<{_BAR}tool\u2581", "<|tool\u2581",
)  # fmt: skip
TURNS = (
    "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|endoftext|>",
    "<|message|>", "<|start|>", "<|end|>", "<|return|>", "<|start_header_id|>", "<|start_of_role|>",
    "<end_of_turn>", "<start_of_turn>", "<|observation|>", f"<{_BAR}end\u2581of\u2581sentence",
    f"<{_BAR}end_of_sentence", "<tool_response>", "</tool_response>", "<answer>", "</answer>",
)  # fmt: skip
ALL = (*CALLS, *TURNS)
_KIMI = re.compile(r"\bfunctions\.[\w.-]+:\d+")
_CONTROL = re.compile(rf"<[|{_BAR}][^<>|{_BAR}\s]{{1,40}}[|{_BAR}]>")
SHORTEST = 5


def leaked(text: str) -> list[str]:
    """The markers of calls and turns in a text; control tokens of no known family count too."""
    known = [marker for marker in ALL if marker in text]
    return list(dict.fromkeys([*known, *_CONTROL.findall(text), *_KIMI.findall(text)]))


def cut_marker(text: str) -> str:
    """The beginning of a call's marker that a text ends with; empty when there is none.

    Fewer than five characters tell nothing: they may be the beginning of anything.
    """
    ends = [
        marker[:size]
        for marker in CALLS
        for size in range(SHORTEST, len(marker))
        if text.endswith(marker[:size])
    ]
    return max(ends, key=len, default="")


def written_call(text: str, names: Collection[str]) -> str:
    """A whole call of a known tool that a text holds as text; empty when there is none.

    A broken call is the model's fault, not the parser's, so what is read here has to be well formed: JSON
    after a marker, a closed XML function, or `[name(…)]` from end to end.
    """
    for name in names:
        word = re.escape(name)
        for found in re.finditer(rf'\{{\s*"name"\s*:\s*"{word}"', text):
            marked = any(marker in text[: found.start()] for marker in CALLS)
            if marked and _reads(text[found.start() :]):
                return text[found.start() : found.start() + 80]
        for pattern in (
            rf"<function={word}>.*?</function>",
            rf'<invoke name="{word}">.*?</invoke>',
            rf"^\s*\[{word}\([^\n]*\)\]\s*$",
            rf"call:{word}\{{.*?\}}",
            rf"\[TOOL_CALLS\]{word}(?:\[ARGS\])?\{{.*\}}",
            rf"functions\.{word}:\d+.*?\{{.*?\}}",
        ):
            if match := re.search(pattern, text, re.DOTALL):
                return match[0][:80]
    return ""


def _reads(text: str) -> bool:
    try:
        json.JSONDecoder().raw_decode(text)
    except ValueError:
        return False
    return True
