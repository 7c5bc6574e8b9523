"""One question over and over, between everything else, so that a fault of one answer in fifty shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm import MUST, Recording, Recordings, check, need, observe, unexpected

from .answers import answer_of
from .sameness import excuse, usual
from .wording import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .apis import Choice

SPEC = "openai:chat/create#temperature"
CHATS = ["oracle.again[", "oracle.again-stream["]
BATCHES = ["oracle.batch["]
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
    """The same question gets the same answer each time, early and late, near-ties aside."""
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
    """The same words are gone on with alike in every place of a batch, near-ties aside."""
    wrong = _odd(vllm_recordings.of(BATCHES[0]), oracle_batch_listed)

    assert not wrong, listed(wrong)


@check("oracle.repeated.often", MUST, spec=SPEC, needs=["chat", "logprobs"], tier="soak", exchanges=OFTEN)
def test_often(vllm_recordings: Recordings, oracle_again_listed: Recording) -> None:
    """A thousand times the same question gets the same answer each time, near-ties aside."""
    asked = [one for prefix in OFTEN for one in vllm_recordings.of(prefix)]

    assert not (wrong := _odd(asked, oracle_again_listed)), listed(wrong)


def _odd(asked: Sequence[Recording], listing: Recording) -> list[str]:
    """The answers that differ from what most are, without those that a near-tie excuses."""
    said = [(answer.key, choice) for one in asked if (answer := answer_of(one)) for choice in answer.choices]
    need(len(said) > 1, "the question was answered fewer than two times")
    most = usual([(choice.text, choice.calls, choice.finish) for _, choice in said])
    known = answer_of(listing)
    listings = [(choice.text, choice.tokens) for choice in known.choices] if known else []
    need(any(tokens for _, tokens in listings), "no answer lists its likeliest candidates")
    odd = [(key, choice) for key, choice in said if (choice.text, choice.calls, choice.finish) != most]
    excused = [key for key, choice in odd if excuse(listings, choice.text, most[0])]
    observe("answers", len(said))
    observe("answers excused by a near-tie", len(excused))
    return [f"{key}: {_told(choice)}, most say {most[0]!r}" for key, choice in odd if key not in excused]


def _told(choice: Choice) -> str:
    calls = f" with {len(choice.calls)} calls" if choice.calls else ""
    return f"{choice.text!r}{calls}, finish {list(choice.finish)}"
