"""What one recorded request asked, in the dimensions of `facts/reach.toml`."""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_vllm.wire.recording import Recording

#: A header's name begins so -> what sends it.
CLIENTS = {
    "x-request-id": "request id",
    "traceparent": "trace",
    "x-stainless-": "openai sdk",
    "anthropic-": "anthropic sdk",
    "x-forwarded-": "proxy",
}
FORMS = {"json_schema": "json schema", "json_object": "json object", "structural_tag": "structural tag"}
OUTPUTS = {"json": "json schema", "json_object": "json object", "structural_tag": "structural tag"}
#: Dimension -> how the routes name the count of it.
COUNTS = {
    "prompt": ("prompt_tokens", "input_tokens"),
    "output": ("completion_tokens", "output_tokens"),
}
#: Where the smileys and their like begin; below lie letters and signs.
EMOJI = 0x1F000


def route_of(recording: Recording) -> str:
    """The path without its query."""
    return recording.request.path.partition("?")[0]


def fields_of(body: Any) -> set[str]:
    """The fields that a body sets; null sets nothing."""
    return {name for name, value in body.items() if value is not None} if isinstance(body, dict) else set()


def words_of(recording: Recording) -> dict[str, set[str]]:
    """What a request asked in words, by dimension; `again`, `beside` and `idle` need the others of a run."""
    body = recording.request.json
    asked = body if isinstance(body, dict) else {}
    found = {"route": {route_of(recording)}, "client": clients(recording.request.headers)}
    if not asked:
        return found
    found["answer"] = {"stream" if recording.request.streams else "whole"}
    found["script"] = scripts(asked)
    if generates(asked):
        found |= {
            "drawing": {_drawing(asked)},
            "constraint": {_constraint(asked)},
            "choice": {_choice(asked)},
        }
    return found


def numbers_of(recording: Recording) -> dict[str, float]:
    """What a request asked in numbers, by dimension; none where it was refused: nothing was exercised then.

    Tokens are counted as the answer counts them.
    """
    body = recording.request.json
    asked = body if isinstance(body, dict) else {}
    if not asked or recording.status != 200:
        return {}
    turns = _turns(asked)
    prompt = asked.get("prompt") if "prompt" in asked else asked.get("input")
    found: dict[str, float] = {
        "turns": len(turns) if turns else 0,
        "results": sum(map(_results, turns)),
        "tools": len(asked.get("tools") or ()),
        "choices": asked["n"] if isinstance(asked.get("n"), int) else 1,
        "batch": _batch(prompt),
        "pictures": json.dumps(turns).count('_url"') if turns else 0,
    }
    usage = _usage(recording) if generates(asked) else {}
    for name, keys in COUNTS.items():
        counted = [usage[key] for key in keys if isinstance(usage.get(key), int)]
        found |= {name: counted[0]} if counted else {}
    if recording.request.streams:
        found["events"] = len(recording.events)
    return found


def generates(asked: Mapping[str, Any]) -> bool:
    """Whether a body asks a model for an answer."""
    return any(name in asked for name in ("messages", "prompt", "input"))


def clients(headers: Mapping[str, str | None]) -> set[str]:
    """Whose headers a request carries."""
    names = [name.lower() for name, value in headers.items() if value is not None]
    return {who for name in names for start, who in CLIENTS.items() if name.startswith(start)} or {"plain"}


def scripts(asked: Any) -> set[str]:
    """The scripts of all text in a body, by the first word of their letters' Unicode names."""
    letters = {letter for text in _texts(asked) for letter in text}
    pictures = {"emoji"} if any(ord(letter) >= EMOJI for letter in letters) else set()
    return pictures | {
        unicodedata.name(letter, "none").partition(" ")[0] for letter in letters if letter.isalpha()
    }


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _turns(asked: Mapping[str, Any]) -> list[Any]:
    found = asked.get("messages") or asked.get("input")
    return [turn for turn in found if isinstance(turn, dict)] if isinstance(found, list) else []


def _results(turn: Mapping[str, Any]) -> int:
    content = turn.get("content")
    blocks = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    inside = [part for part in blocks if part.get("type") == "tool_result"]
    kinds = ("function_call_output", "custom_tool_call_output")
    return len(inside) + bool(turn.get("role") == "tool" or turn.get("type") in kinds)


def _batch(prompt: Any) -> int:
    several = isinstance(prompt, list) and bool(prompt) and isinstance(prompt[0], str | list)
    return len(prompt) if several else 1


def _drawing(asked: Mapping[str, Any]) -> str:
    if asked.get("use_beam_search"):
        return "beams"
    if asked.get("temperature") == 0:
        return "greedy"
    return "drawn" if asked.get("seed") is None else "seeded"


def _constraint(asked: Mapping[str, Any]) -> str:
    text = asked.get("text") if isinstance(asked.get("text"), dict) else {}
    form = asked.get("response_format") or (text or {}).get("format") or {}
    if isinstance(form, dict) and form.get("type") in FORMS:
        return FORMS[form["type"]]
    outputs = asked.get("structured_outputs")
    names = list(outputs) if isinstance(outputs, dict) else []
    names += [name.removeprefix("guided_") for name in asked if name.startswith("guided_")]
    return next((OUTPUTS.get(name, name) for name in names), "none")


def _choice(asked: Mapping[str, Any]) -> str:
    if not asked.get("tools"):
        return "none offered"
    choice = asked.get("tool_choice") or "auto"
    if isinstance(choice, dict):
        choice = {"any": "required", "auto": "auto", "none": "none"}.get(choice.get("type", ""), "named")
    return str(choice)


def _usage(recording: Recording) -> Mapping[str, Any]:
    """The last count of tokens that an answer gives, wherever it stands."""
    answers = [recording.json] if not recording.request.streams else recording.deltas
    found: dict[str, Any] = {}
    for answer in answers:
        if not isinstance(answer, dict):
            continue
        inner = [answer, answer.get("response"), answer.get("message")]
        for one in inner:
            usage = one.get("usage") if isinstance(one, dict) else None
            found |= {key: value for key, value in (usage or {}).items() if value is not None}
    return found
