"""What narrows a draw, or repeats it, over routes and requests that are seldom asked for it."""

from __future__ import annotations

from typing import Any

from pytest_vllm import MUST, Case, Recording, Recordings, check, only_if

VLLM = "vllm:serving/openai_compatible_server/"
DRAWS, TWICE = ("first", "second", "third", "fourth", "fifth"), ("first", "again")


@check("edges.narrowed", MUST, spec=VLLM, exchanges=["edges.narrowed["])
def test_narrowed(narrow_route: Case, vllm_recordings: Recordings) -> None:
    """Of five draws from the likeliest token alone two at least are the same."""
    drawn = [vllm_recordings.get(f"edges.narrowed[{one}-{narrow_route.id}]") for one in DRAWS]
    refused = [one.text[:120] for one in drawn if one.status in (400, 404, 422, 501)]
    only_if(not refused, f"refused: {refused}")
    said = [_said(one) for one in drawn]
    only_if(all(said), "an answer says nothing: its few tokens are reasoning that does not show")

    assert len(set(said)) < len(said), f"{narrow_route.id}: with a top_k of 1 {said}"


@check(
    "edges.seeded-two",
    MUST,
    spec="openai:completions/create#seed",
    needs=["completions", "logprobs"],
    exchanges=["edges.seeded-two["],
)
def test_seeded_two(vllm_recordings: Recordings) -> None:
    """The same seed draws the same first tokens for each of two choices."""
    first, again = (_begun(vllm_recordings.get(f"edges.seeded-two[{one}]")) for one in TWICE)

    assert first == again, f"seed 23 drew {first}, then {again}"


def _begun(answer: Recording) -> list[list[str]]:
    """The first two tokens of each choice, by its number."""
    rows = sorted(answer.ok["choices"], key=lambda row: int(row["index"]))
    return [row["logprobs"]["tokens"][:2] for row in rows]


def _said(answer: Recording) -> str:
    """All that an answer of either route says, reasoning included."""
    body = answer.ok
    held: list[dict[str, Any]] = [*(body.get("content") or ())]
    for item in body.get("output") or ():
        held += item.get("content") or item.get("summary") or ()
    return "".join(str(part.get("text") or part.get("thinking") or "") for part in held)
