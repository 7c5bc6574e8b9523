"""One choice of an answer, whole or streamed, read the same way: text, reasoning, calls, finish reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_vllm import error_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm import Recording

Json = dict[str, Any]


@dataclass
class Call:
    """A tool call: its arguments are the text as it came, joined where it was streamed."""

    name: str = ""
    arguments: str = ""
    id: Any = None
    type: Any = None


@dataclass(frozen=True)
class Answer:
    """What one choice says.

    Args:
        key: of the recording.
        content: the text; empty when there is none.
        reasoning: the reasoning, under whichever key; empty when there are none.
        calls: in the order of their indices.
        finish: the finish reason; empty when none came.
        spent: generated tokens of all choices; None when the answer does not tell.
    """

    key: str
    content: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    finish: str = ""
    spent: int | None = None

    @property
    def complete(self) -> bool:
        """Whether the model ended it, rather than a limit."""
        return self.finish not in ("", "length", "abort", "error")


@dataclass
class _Joined:
    content: str = ""
    reasoning: str = ""
    finish: str = ""
    calls: dict[Any, Call] = field(default_factory=dict)


def answer(recording: Recording, choice: int = 0) -> Answer:
    """One choice of a chat answer. Raises Undecided when the request was not answered with 200."""
    if recording.request.streams:
        return _streamed(recording, choice)
    body = recording.ok
    choices: list[Json] = body.get("choices") or []
    one = next((one for one in choices if one.get("index") == choice), {})
    message = one.get("message") or {}
    calls = tuple(_call(call) for call in message.get("tool_calls") or [])
    return Answer(
        recording.key,
        message.get("content") or "",
        thoughts(message),
        calls,
        one.get("finish_reason") or "",
        _spent(body),
    )


def thoughts(part: Json) -> str:
    """The reasoning of a message or a delta, under the key of whichever version."""
    return str(part.get("reasoning") or part.get("reasoning_content") or "")


def pieces(recording: Recording, choice: int = 0) -> Iterator[Json]:
    """What a stream says of one choice, in order."""
    for chunk in recording.deltas:
        if isinstance(chunk, dict):
            yield from (one for one in chunk.get("choices") or [] if one.get("index") == choice)


def call_pieces(recording: Recording, choice: int = 0) -> list[Json]:
    """The tool-call deltas of a stream, in order."""
    deltas = (one.get("delta") or {} for one in pieces(recording, choice))
    return [part for delta in deltas for part in delta.get("tool_calls") or []]


def errors(recording: Recording) -> list[str]:
    """The error objects that a stream carries."""
    return [str(error)[:120] for chunk in recording.deltas if (error := error_in(chunk))]


def _streamed(recording: Recording, choice: int) -> Answer:
    joined = _Joined()
    for one in pieces(recording, choice):
        delta = one.get("delta") or {}
        joined.content += delta.get("content") or ""
        joined.reasoning += thoughts(delta)
        joined.finish = one.get("finish_reason") or joined.finish
        for part in delta.get("tool_calls") or []:
            _join(joined.calls.setdefault(part.get("index"), Call()), part)
    spent = [_spent(chunk) for chunk in recording.deltas if isinstance(chunk, dict) and chunk.get("usage")]
    return Answer(
        recording.key,
        joined.content,
        joined.reasoning,
        tuple(joined.calls.values()),
        joined.finish,
        spent[-1] if spent else None,
    )


def _join(call: Call, part: Json) -> None:
    function = part.get("function") or {}
    call.name += function.get("name") or ""
    call.arguments += _text(function.get("arguments"))
    call.id = call.id or part.get("id")
    call.type = call.type or part.get("type")


def _call(given: Json) -> Call:
    function = given.get("function") or {}
    name, arguments = function.get("name") or "", _text(function.get("arguments"))
    return Call(name, arguments, given.get("id"), given.get("type"))


def _text(arguments: Any) -> str:
    return "" if arguments is None else str(arguments)


def _spent(body: Json) -> int | None:
    count = (body.get("usage") or {}).get("completion_tokens")
    return count if isinstance(count, int) else None
