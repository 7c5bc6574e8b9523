"""What a model wrote, by the ids of its tokens, against what its answer shows of that."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from .answers import CHAT, COMPLETIONS
from .apis import TORN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_vllm import Server

    from .answers import Answer
    from .apis import Choice

#: How marks are written that are taken away from a text: `<|im_end|>`, `</think>`, `[INST]`.
MARK = re.compile(r"<[^<>\s]{1,40}>|\[/?[A-Z_]{2,20}\]")
#: Parsers that take away marks alone, and not words that stand for marks.
TAGGED = (
    "qwen3",
    "deepseek_r1",
    "deepseek_v3",
    "glm45",
    "mistral",
    "step3",
    "ernie45",
    "hunyuan_a13b",
    "olmo3",
)
#: Under which names formats of calls put the arguments.
ARGUMENTS = ("arguments", "parameters", "args")


def shown(one: Answer, server: Server) -> Iterator[Choice]:
    """The texts of an answer whose ids are there and of which nothing but marks may be missing.

    A stream whose pieces a parser holds back lacks the ids of those. Calls are taken out of the text.
    """
    if one.path not in (CHAT, COMPLETIONS) or one.asked.get("echo"):
        return
    for choice in one.choices:
        thought = choice.text != choice.content
        parsed = thought or bool(one.asked.get("tools"))
        known = not thought or server.args.get("reasoning-parser") in TAGGED
        if choice.ids and not choice.calls and known and not (one.streams and one.path == CHAT and parsed):
            yield choice


def called(one: Answer) -> Iterator[Choice]:
    """The texts of a whole answer that the model made calls in, of its own accord, with their ids."""
    free = one.asked.get("tool_choice") in (None, "auto")
    if one.path == CHAT and not one.streams and free:
        yield from (choice for choice in one.choices if choice.ids and choice.calls)


def unlike(choice: Choice, raw: str) -> str:
    """How a text differs from what its tokens say; empty where it does not, but for white space at its end.

    A tokenizer may write a blank before the first word, or none. A stop string cuts what comes after it.
    """
    text, wrote = MARK.sub("", choice.text), MARK.sub("", raw)
    if TORN in raw or TORN in text:
        return ""
    cut = isinstance(choice.stops[0], str) if len(choice.stops) == 1 else False
    seen, told = "".join(text.split()), "".join(wrote.split())
    if not (told.startswith(seen) if cut else told == seen):
        return f"{text[-80:]!r}, its tokens say {wrote[-80:]!r}"
    grown = _lead(text) - _lead(wrote)
    return f"begins with {grown} blanks that no token holds" if seen and grown > 1 else ""


def _lead(text: str) -> int:
    return len(text) - len(text.lstrip())


def objects(raw: str) -> list[dict[str, Any]]:
    """The arguments of calls that a model wrote as JSON, in order; none where its format is another one."""
    found, at, decoder = [], raw.find("{"), json.JSONDecoder()
    while at >= 0:
        try:
            value, end = decoder.raw_decode(raw, at)
        except ValueError:
            end = at + 1
        else:
            if isinstance(value, dict):
                found.append(_arguments(value))
        at = raw.find("{", end)
    return found


def _arguments(value: dict[str, Any]) -> dict[str, Any]:
    inner = next((value[name] for name in ARGUMENTS if name in value), value)
    if isinstance(inner, str):
        try:
            inner = json.loads(inner)
        except ValueError:
            return value
    return inner if isinstance(inner, dict) else value


def schemas(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters by function name, of the tools that a request offers."""
    tools = [one.get("function") or {} for one in asked.get("tools") or () if isinstance(one, dict)]
    return {one["name"]: one.get("parameters") or {} for one in tools if "name" in one}
