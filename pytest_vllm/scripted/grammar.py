"""How models write calls and thoughts: the markup of a parser, and scripts rendered in it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Call:
    """A tool call: the name and the arguments."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Script:
    """What a model is to say: thoughts (None: it does not think), text, calls, and text after them."""

    thinking: str | None
    content: str
    calls: tuple[Call, ...] = ()
    after: str = ""


@dataclass(frozen=True)
class Grammar:
    """The markup of one parser.

    Args:
        name: the parser's.
        kind: of the parser.
        markers: texts that must be single tokens.
        special: those of them that decoding leaves out.
        covered: whether scripts can be rendered for it.
    """

    name: str
    kind: Literal["tool", "reasoning"]
    markers: tuple[str, ...] = ()
    special: tuple[str, ...] = ()
    covered: bool = True

    def render(self, script: Script) -> str:
        """The script as the model writes it."""
        if self.kind == "reasoning":
            thought = "" if script.thinking is None else f"<think>\n{script.thinking}\n</think>\n\n"
            return thought + script.content
        calls = [
            json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
            for call in script.calls
        ]
        parts = [script.content, *(f"<tool_call>\n{call}\n</tool_call>" for call in calls), script.after]
        return "\n".join(part for part in parts if part)


def load(name: str, kind: Literal["tool", "reasoning"]) -> Grammar:
    """The grammar of a parser. Raises LookupError for one that has none."""
    known = {
        "tool": {"hermes": ("<tool_call>", "</tool_call>")},
        "reasoning": {"deepseek_r1": ("<think>", "</think>"), "qwen3": ("<think>", "</think>")},
    }
    if name not in known[kind]:
        raise LookupError(f"no grammar says how models write for the {kind} parser {name}")
    return Grammar(name, kind, known[kind][name])
