"""One choice of an answer, whole or streamed, read the same way, and how it differs from its script."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_vllm import error_in, short

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_vllm import Recording, Script

Json = dict[str, Any]


@dataclass
class Called:
    """A tool call: its arguments are the text as it came, joined where it was streamed."""

    name: str = ""
    arguments: str = ""
    id: Any = None
    type: Any = None


@dataclass
class Said:
    """What one choice says.

    Args:
        content: the text; empty when there is none.
        thoughts: the reasoning, under whichever key.
        calls: in the order of their indices.
        finish: the finish reason; empty when none came.
        usage: as it came; empty without.
        errors: the error objects that a stream carries.
    """

    content: str = ""
    thoughts: str = ""
    calls: list[Called] = field(default_factory=list)
    finish: str = ""
    usage: Json = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    @property
    def spent(self) -> Any:
        """The completion tokens that the usage tells."""
        return self.usage.get("completion_tokens")

    @property
    def thought(self) -> Any:
        """The reasoning tokens that the usage reports; None when it does not."""
        return (self.usage.get("completion_tokens_details") or {}).get("reasoning_tokens")


#: Statuses that tell of the server, or of what stands before it, whatever was asked.
_ELSEWHERE = (401, 403, 404, 408, 429, 501, 502, 503, 504)


def refusal(recording: Recording) -> str:
    """How a request that every server must take was refused; empty where it was not.

    A text of a model is not a reason for a status: what a parser raises over it becomes one.
    """
    status = recording.status or 0
    if status in _ELSEWHERE or status < (400 if recording.request.expect == 200 else 500):
        return ""
    try:
        told = json.loads(recording.text)["error"]["message"]
    except (ValueError, LookupError, TypeError):
        told = recording.text
    return f"answered with {status}: {short(str(told), 120)}"


def said(recording: Recording, choice: int = 0) -> Said:
    """One choice of a chat answer; an answer with a refusal says nothing else.

    Raises Undecided when it was not answered with 200 for a reason that is not the script's.
    """
    if told := refusal(recording):
        return Said(errors=[told])
    if recording.request.streams:
        return _streamed(recording, choice)
    body = recording.ok
    one: Json = next((one for one in body.get("choices") or [] if one.get("index") == choice), {})
    message = one.get("message") or {}
    calls = [_called(call) for call in message.get("tool_calls") or []]
    return Said(
        message.get("content") or "",
        _thoughts(message),
        calls,
        one.get("finish_reason") or "",
        body.get("usage") or {},
    )


def pieces(recording: Recording, choice: int = 0) -> Iterator[Json]:
    """What a stream says of one choice, in order."""
    for chunk in recording.deltas:
        if isinstance(chunk, dict):
            yield from (one for one in chunk.get("choices") or [] if one.get("index") == choice)


def call_pieces(recording: Recording) -> list[Json]:
    """The tool-call deltas of a stream, in order."""
    return [part for one in pieces(recording) for part in (one.get("delta") or {}).get("tool_calls") or []]


def _streamed(recording: Recording, choice: int) -> Said:
    found = Said()
    calls: dict[Any, Called] = {}
    for one in pieces(recording, choice):
        delta = one.get("delta") or {}
        found.content += delta.get("content") or ""
        found.thoughts += _thoughts(delta)
        found.finish = one.get("finish_reason") or found.finish
        for part in delta.get("tool_calls") or []:
            _join(calls.setdefault(part.get("index"), Called()), part)
    found.calls = list(calls.values())
    for chunk in recording.deltas:
        if isinstance(chunk, dict):
            found.usage = chunk.get("usage") or found.usage
            found.errors += [str(error)] if (error := error_in(chunk)) else []
    return found


def _thoughts(part: Json) -> str:
    return str(part.get("reasoning") or part.get("reasoning_content") or "")


def _join(call: Called, part: Json) -> None:
    function = part.get("function") or {}
    call.name += function.get("name") or ""
    call.arguments += _text(function.get("arguments"))
    call.id = call.id or part.get("id")
    call.type = call.type or part.get("type")


def _called(given: Json) -> Called:
    function = given.get("function") or {}
    name = function.get("name") or ""
    return Called(name, _text(function.get("arguments")), given.get("id"), given.get("type"))


def _text(arguments: Any) -> str:
    return "" if arguments is None else str(arguments)


def against(found: Said, script: Script, opening: str = "") -> list[str]:
    """How an answer differs from its script: calls, text, reasoning, finish reason.

    Blanks between the parts are the template's affair: text and reasoning are compared without them at their
    ends. Text before and after calls is one content. The marker that opens reasoning, where it leaks into
    it, is `scripted.thoughts.opening`'s to blame, and passed over here.
    """
    wrong = [f"error {one[:200]}" for one in found.errors]
    wrong += call_faults(found.calls, [(call.name, call.arguments) for call in script.calls])
    meant = script.content + script.after
    alike = squeezed(found.content) == squeezed(meant) if script.after else trimmed(found.content, meant)
    if not alike:
        wrong.append(f"content {short(found.content)}, not {short(meant)}")
    if not trimmed(without(found.thoughts, opening), script.thinking or ""):
        wrong.append(f"reasoning {short(found.thoughts)}, not {short(script.thinking or '')}")
    finish = "tool_calls" if script.calls else "stop"
    if found.finish != finish:
        wrong.append(f"finish_reason {found.finish!r}, not {finish!r}")
    return wrong


def without(thoughts: str, opening: str) -> str:
    """Reasoning without the marker that opens it."""
    return thoughts.strip().removeprefix(opening.strip())


def squeezed(text: str) -> str:
    """A text without any blanks."""
    return "".join(text.split())


def trimmed(one: str, other: str) -> bool:
    """Whether two texts are equal but for blanks at their ends."""
    return one.strip() == other.strip()


def call_faults(calls: Sequence[Called], meant: Sequence[tuple[str, Any]]) -> list[str]:
    """How calls differ from those that were meant: number, order, names, values and their types."""
    if len(calls) != len(meant):
        names = [f"{call.name} {short(call.arguments, 60)}" for call in calls]
        return [f"{len(calls)} calls {names}, not {len(meant)}" if calls else f"no call, not {len(meant)}"]
    wrong = []
    for call, (name, arguments) in zip(calls, meant, strict=True):
        if call.name != name:
            wrong.append(f"the call names {call.name!r}, not {name!r}")
            continue
        try:
            value = json.loads(call.arguments)
        except ValueError:
            wrong.append(f"{name}: arguments {short(call.arguments)} are no JSON")
            continue
        if not same(value, arguments):
            wrong.append(f"{name}: arguments {short(call.arguments)}, not {short(json.dumps(arguments))}")
    return wrong


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: true is not 1, and 7 is not "7"; 1.0 is 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    return bool(one == other) and (numbers or type(one) is type(other))
