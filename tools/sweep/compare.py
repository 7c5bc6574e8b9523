"""How an answer of parsers differs from what the model said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm.scripted.grammar import Script


def faults(came: Mapping[str, Any], script: Script) -> list[str]:
    """What is wrong with an answer: calls, text, thoughts.

    Blanks at the ends of texts, and between text before and after calls, are not compared.

    Args:
        came: `content`, `thoughts`, `calls` as [name, arguments as text].
        script: what was said.
    """
    wrong = _calls(came["calls"], script)
    meant = script.content + script.after
    same = squeezed(came["content"]) == squeezed(meant)
    if not same or (not script.after and came["content"].strip() != meant.strip()):
        wrong.append(f"content {quoted(came['content'])}, not {quoted(meant)}")
    if came["thoughts"].strip() != (script.thinking or "").strip():
        wrong.append(f"reasoning {quoted(came['thoughts'])}, not {quoted(script.thinking or '')}")
    return wrong


def _calls(came: Sequence[Sequence[str]], script: Script) -> list[str]:
    if len(came) != len(script.calls):
        told = ", ".join(f"{name} {quoted(arguments)}" for name, arguments in came) or "none"
        return [f"calls: {told}; not {len(script.calls)}"]
    wrong = []
    for (name, arguments), call in zip(came, script.calls, strict=True):
        try:
            value = json.loads(arguments)
        except ValueError:
            wrong.append(f"{call.name}: arguments {quoted(arguments)} are no JSON")
            continue
        if name != call.name or not alike(value, call.arguments):
            meant = json.dumps(call.arguments, ensure_ascii=False)
            wrong.append(f"{name} {quoted(arguments)}, not {call.name} {quoted(meant)}")
    return wrong


def squeezed(text: str) -> str:
    """A text without its blanks."""
    return "".join(text.split())


def alike(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same: 7 is neither "7" nor true, 1.0 is 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(alike(*both) for both in zip(one, other, strict=True))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    return type(one) is type(other) and bool(one == other)


def quoted(text: str, most: int = 100) -> str:
    """A text to quote, cut in its middle."""
    return repr(text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]}")
