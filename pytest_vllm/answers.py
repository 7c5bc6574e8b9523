"""What answers say, whatever the endpoint and however sure the model was."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_vllm.wire.recording import Recording


def unexpected(recordings: Iterable[Recording]) -> list[str]:
    """One line for each exchange that did not get the status it was meant to get.

    Exchanges that expect nothing in particular are passed over: a check of their own judges them.
    """
    return [
        f"{one.key}: {one.status or one.error or 'no response'}, not {one.request.expect}"
        for one in recordings
        if one.request.expect is not None and one.status != one.request.expect
    ]


def text_of(choice: Mapping[str, Any]) -> str:
    """All text of a choice, chat or completion; what a reasoning parser took out of the content included."""
    if "message" not in choice:
        return str(choice.get("text") or "")
    message = choice["message"]
    thought = message.get("reasoning") or message.get("reasoning_content") or ""
    return f"{thought}{message.get('content') or ''}"


def parting(one: str, other: str) -> int:
    """Index of the first character in which two texts differ; the shorter one's length when there is none."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def margin_at(entries: Sequence[Mapping[str, Any]], index: int) -> float:
    """Nats between the best and the second candidate of the token that covers a character.

    Greedy answers may part where this is near zero: another batch rounds otherwise. Infinite when the
    index lies beyond the tokens or only one candidate was returned.

    Args:
        entries: `choices[0].logprobs.content` of a chat answer with `top_logprobs` of two or more.
        index: position in the joined tokens.
    """
    end = 0
    for entry in entries:
        end += len(entry["token"])
        if index < end:
            values = sorted((top["logprob"] for top in entry["top_logprobs"]), reverse=True)
            return float(values[0] - values[1]) if len(values) > 1 else inf
    return inf
