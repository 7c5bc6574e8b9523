"""What is right on its own is right together."""

from __future__ import annotations

from typing import Any

from pytest_vllm import MUST, Case, Recording, Recordings, check, need, only_if

CREATE = "openai:chat/create"
VLLM = "vllm:serving/openai_compatible_server/"
#: All that a constraint leaves.
KEPT = {
    "json": {'"heron"'},
    "choice": {"heron", "crane"},
    "regex": {f"{number:02}" for number in range(100)},
}


@check("pairs.answered", MUST, spec=CREATE)
def test_answered(free_row: Case, pairs_free: Recording) -> None:
    """Two things that are served on their own are served together."""
    _answered(free_row, pairs_free)
    asked = pairs_free.request.json
    right, tokens = asked.get("n", 1) * asked["max_tokens"], _usage(pairs_free).get("completion_tokens")

    assert tokens == right, f"{_named(free_row)}: {right} tokens were asked for, the usage says {tokens}"


@check("pairs.counted", MUST, spec=CREATE, needs=["tokenize"], exchanges=("pairs.count-bare[",))
def test_counted(
    free_row: Case, pairs_free: Recording, pairs_count: Recording, vllm_recordings: Recordings
) -> None:
    """A prompt has as many tokens as `/tokenize` counts, whatever else is asked."""
    only_if(pairs_count.status not in (400, 404), f"the count is refused: {pairs_count.text[:120]}")
    need(pairs_free.status == 200, f"answered with {pairs_free.status}")
    right = {pairs_count.ok["count"]}
    if free_row["tools"] == "unused":  # which the server may leave out
        right.add(vllm_recordings.get(f"pairs.count-bare[{free_row.id}]").ok["count"])
    used = _usage(pairs_free).get("prompt_tokens")

    assert used in right, f"{_named(free_row)}: {used} tokens in the usage, /tokenize counts {sorted(right)}"


@check("pairs.bound", MUST, spec=VLLM, needs=["completions", "structured-output"])
def test_bound(bound_row: Case, pairs_bound: Recording) -> None:
    """A constraint is kept, whatever else is asked."""
    _answered(bound_row, pairs_bound)
    wrong = [
        text for text in _texts(pairs_bound).values() if text.strip() not in KEPT[bound_row["constraint"]]
    ]

    assert not wrong, f"{_named(bound_row)}: {wrong[0]!r:.120}"


def _answered(row: Case, answer: Recording) -> None:
    """Fail unless every choice came."""
    answer.answered()
    status, number = answer.status, answer.request.json.get("n", 1)

    assert status == 200, f"{_named(row)}: {status} {answer.text[:160]}"
    indices = sorted(_texts(answer))
    assert indices == list(range(number)), f"{_named(row)}: choices {indices} for n={number}"


def _named(row: Case) -> str:
    """What a request asked beside the usual."""
    usual = ("none", "plain", "1", "whole", "greedy", "latin")
    return ", ".join(
        f"{name} {value}" for name, value in row.values.items() if name != "id" and value not in usual
    )


def _answers(recording: Recording) -> list[Any]:
    return recording.deltas if recording.request.streams else [recording.ok]


def _usage(recording: Recording) -> dict[str, Any]:
    found = [answer["usage"] for answer in _answers(recording) if answer.get("usage")]
    return found[-1] if found else {}


def _texts(recording: Recording) -> dict[int, str]:
    """The text of every choice, by its index."""
    texts: dict[int, str] = {}
    for answer in _answers(recording):
        for choice in answer.get("choices") or ():
            said = choice.get("delta") or choice.get("message") or choice
            piece = said.get("content") or said.get("text") or ""
            texts[choice["index"]] = texts.get(choice["index"], "") + piece
    return texts
