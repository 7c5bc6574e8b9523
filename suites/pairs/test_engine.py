"""What the engine does for one request is done too when the request asks for more at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Case, Recording, Recordings, check, error_in, need, only_if

from .engine import DIGITS, USUAL, VALUES

if TYPE_CHECKING:
    from collections.abc import Iterator

VLLM = "vllm:serving/openai_compatible_server/"


@check(
    "pairs.engine",
    MUST,
    spec=VLLM,
    needs=["completions", "tokenize"],
    exchanges=["pairs.engine-alone["],
)
def test_engine(engine_row: Case, pairs_engine: Recording, vllm_recordings: Recordings) -> None:
    """What is drawn, ended, masked, told and queued in its way is so in one request."""
    pairs_engine.answered()
    only_if(pairs_engine.status != 400, f"refused: {pairs_engine.text[:120]}")
    for key in _unusual(engine_row):
        alone = vllm_recordings.get(f"pairs.engine-alone[{key}]")
        only_if(alone.status != 400, f"{key} alone is refused: {alone.text[:120]}")
        fault = engine_fault(alone)
        need(not fault, f"{key} alone: {fault}")
    fault = engine_fault(pairs_engine)

    assert not fault, f"{', '.join(_unusual(engine_row)) or 'nothing unusual'}: {fault}"


def engine_fault(answer: Recording) -> str:
    """What is wrong with an answer: status, choices, length or constraint; empty when nothing is."""
    asked = answer.request.json
    number = asked.get("n", 1)
    if answer.status != 200:
        return f"{answer.status or answer.error} {answer.text[:160]}"
    if broken := [error for part in answer.bodies if (error := error_in(part))]:
        return f"an error: {str(broken[0])[:160]}"
    texts = _texts(answer)
    if sorted(texts) != list(range(number)):
        return f"choices {sorted(texts)} for n={number}"
    usage = [part["usage"] for part in answer.bodies if part.get("usage")]
    tokens = usage[-1].get("completion_tokens") if usage else None
    if asked["ignore_eos"]:
        right = number * asked["max_tokens"]
        return "" if tokens == right else f"{right} tokens were asked for, the usage says {tokens}"
    begun = asked["prompt"] if asked.get("echo") else ""
    said = [text.removeprefix(begun).strip() for text in texts.values()]
    wrong = [text for text in said if not re.fullmatch(f"[0-9]{{{DIGITS}}}", text)]
    return f"{DIGITS} digits were asked for: {wrong[0]!r:.80}" if wrong else ""


def _texts(answer: Recording) -> dict[int, str]:
    """The text of each choice, by index."""
    found: dict[int, str] = {}
    for choice in _choices(answer):
        said = choice.get("delta") or choice.get("message") or choice
        text = said.get("content") or said.get("text") or ""
        found[choice["index"]] = found.get(choice["index"], "") + text
    return found


def _choices(answer: Recording) -> Iterator[dict[str, Any]]:
    for part in answer.bodies:
        yield from part.get("choices") or ()


def _unusual(row: Case) -> list[str]:
    """The requests that have each of its unusual values alone."""
    names = [name for name in VALUES if row[name] != USUAL[name]]
    return [f"{name}-{row[name]}" for name in names]
