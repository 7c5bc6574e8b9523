"""One question over and over, between everything else, so that a fault of one answer in fifty shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm import MUST, Recording, Recordings, check, listed, need, observe, server_errors, unexpected

from .answers import answer_of
from .sameness import usual
from .ties import excuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .apis import Choice

SPEC = "openai:chat/create#temperature"
CHATS = ["oracle.again[", "oracle.again-stream["]
BATCHES = ["oracle.batch["]
#: How probably a fault is meant to be found.
SURE = 0.95
OFTEN = ["oracle.often[", *CHATS]


@check(
    "oracle.repeated.answered", MUST, spec="openai:chat/create", needs=["chat"], tier="gate", exchanges=CHATS
)
def test_answered(vllm_recordings: Recordings) -> None:
    """The same short question is answered each time that it is asked in the run."""
    wrong = unexpected(one for prefix in CHATS for one in vllm_recordings.of(prefix))

    assert not wrong, f"{len(wrong)} times not: {listed(wrong)}"


@check("oracle.repeated.chat", MUST, spec=SPEC, needs=["chat", "logprobs"], tier="gate", exchanges=CHATS)
def test_chat(vllm_recordings: Recordings, oracle_again_listed: Recording) -> None:
    """A question gets the same answer each time, early and late, near-ties aside."""
    asked = [one for prefix in CHATS for one in vllm_recordings.of(prefix)]

    assert not (wrong := _odd(asked, oracle_again_listed)), listed(wrong)


@check(
    "oracle.repeated.batch",
    MUST,
    spec=SPEC,
    needs=["completions", "logprobs"],
    tier="gate",
    exchanges=BATCHES,
)
def test_batch(vllm_recordings: Recordings, oracle_batch_listed: Recording) -> None:
    """The same words go on alike in every place of a batch, near-ties aside."""
    wrong = _odd(vllm_recordings.of(BATCHES[0]), oracle_batch_listed)

    assert not wrong, listed(wrong)


@check("oracle.repeated.often", MUST, spec=SPEC, needs=["chat", "logprobs"], tier="soak", exchanges=OFTEN)
def test_often(vllm_recordings: Recordings, oracle_again_listed: Recording) -> None:
    """A question asked a thousand times gets one answer, near-ties aside."""
    asked = [one for prefix in OFTEN for one in vllm_recordings.of(prefix)]

    assert not (wrong := _odd(asked, oracle_again_listed)), listed(wrong)


@check(
    "oracle.served",
    MUST,
    spec="openai:chat/object",
    needs=["chat"],
    exchanges=["oracle.again", "oracle.batch"],
)
def test_served(vllm_recordings: Recordings) -> None:
    """No question that is asked over and over ends in a server error."""
    wrong = server_errors([*vllm_recordings.of("oracle.again"), *vllm_recordings.of("oracle.batch")])

    assert not wrong, f"{len(wrong)} requests: {'; '.join(wrong[:3])}"


def _odd(asked: Sequence[Recording], listing: Recording) -> list[str]:
    """The answers that differ from what most are, without those that a near-tie excuses."""
    said = [(answer.key, choice) for one in asked if (answer := answer_of(one)) for choice in answer.choices]
    need(len(said) > 1, "the question was answered fewer than two times")
    most = usual([_said(choice) for _, choice in said])
    like = next(choice for _, choice in said if _said(choice) == most)
    known = answer_of(listing)
    listings = known.choices if known else ()
    need(any(choice.tokens for choice in listings), "no answer lists its likeliest candidates")
    odd = [(key, choice) for key, choice in said if _said(choice) != most]
    excused = [key for key, choice in odd if excuse(listings, choice, like)]
    observe("answers", len(said))
    observe("found with a probability of 95 %", f"a fault of one answer in {in_how_many(len(said))}")
    observe("answers excused by a near-tie", len(excused))
    return [f"{key}: {_told(choice)}, most say {like.text!r}" for key, choice in odd if key not in excused]


def in_how_many(answers: int) -> int:
    """A fault of one answer in so many shows in so many answers with a probability of 95 %."""
    return max(1, int(1 / (1 - (1 - SURE) ** (1 / answers))))


def _said(choice: Choice) -> tuple[object, ...]:
    return choice.text, choice.calls, choice.finish


def _told(choice: Choice) -> str:
    calls = f" with {len(choice.calls)} calls" if choice.calls else ""
    return f"{choice.text!r}{calls}, finish {list(choice.finish)}"
