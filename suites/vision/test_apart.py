"""Every picture is answered as itself: no request gets what another's picture is answered with."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from pytest_vllm import MUST, Recording, Recordings, check, need, only_if, text_of

from .exchanges import COLOURS

MIXED = "fault:vllm-project/vllm/issues/20261"
NEEDS = ("chat", "vision", "logprobs")


def answer(recording: Recording) -> tuple[str, list[Any]]:
    """What an answer says, and what else was likely at each token. Raises Undecided where that is missing."""
    choice = recording.ok["choices"][0]
    told = (choice.get("logprobs") or {}).get("content") or []
    need(told, f"{recording.key} has no log probabilities")
    likely = [[(one.get("token"), one.get("logprob")) for one in entry["top_logprobs"]] for entry in told]
    return text_of(choice), likely


@check("vision.mixed-up.cached", MUST, spec=MIXED, needs=NEEDS)
def test_cached(vision_third: Recording, vision_other: Recording) -> None:
    """Another picture of the same size is not taken for the one that is cached."""
    (text, here), (_, there) = answer(vision_third), answer(vision_other)

    assert here != there, (
        f"grey, then red under the same question: both {text!r:.60}, every log probability the same"
    )


@check("vision.mixed-up.amid", MUST, spec="fault:LMCache/LMCache/issues/4086", needs=NEEDS)
def test_amid(vision_amid: Recording, vision_amid_other: Recording) -> None:
    """Within a long text another picture is not taken for the one that is cached."""
    (text, here), (_, there) = answer(vision_amid), answer(vision_amid_other)

    assert here != there, (
        f"green, then yellow within the same text: both {text!r:.60}, every log probability the same"
    )


@check("vision.mixed-up.order", MUST, spec="fault:vllm-project/vllm/pull/36708", needs=NEEDS)
def test_order(vision_pair: Recording, vision_pair_turned: Recording) -> None:
    """Two pictures in the other order are another prompt."""
    only_if(vision_pair.status != 400, f"two pictures are refused: {vision_pair.text[:120]}")
    (text, here), (_, there) = answer(vision_pair), answer(vision_pair_turned)

    assert here != there, f"in both orders {text!r:.60}, every log probability the same"


@check("vision.mixed-up.colours", MUST, spec=MIXED, needs=NEEDS, exchanges=("vision.named[",))
def test_colours(vllm_recordings: Recordings) -> None:
    """Pictures of one size that differ in colour alone are told apart."""
    found = {one.key: answer(one) for one in vllm_recordings.of("vision.named[")}
    same = [(a, b) for a, b in combinations(found, 2) if found[a][1] == found[b][1]]

    assert not same, f"{len(same)} pairs are answered alike to the last digit, as {' and '.join(same[0])}"


@check(
    "vision.mixed-up.swapped",
    MUST,
    spec="fault:vllm-project/vllm/issues/43473",
    needs=NEEDS[:2],
    exchanges=("vision.named[",),
)
def test_swapped(vllm_recordings: Recordings) -> None:
    """A model that knows colours names none of another request's picture."""
    told = {
        one.key[13:-1]: text_of(one.ok["choices"][0]).lower() for one in vllm_recordings.of("vision.named[")
    }
    named = {sent: [colour for colour in COLOURS if colour in text] for sent, text in told.items()}
    sure = {sent: colours[0] for sent, colours in named.items() if len(colours) == 1}
    only_if(len(set(sure.values())) == len(COLOURS), f"the model does not tell {len(COLOURS)} colours apart")
    wrong = [f"{sent} is called {colour}" for sent, colour in sure.items() if sent != colour]

    assert not wrong, f"pictures of requests are mixed up: {', '.join(wrong)}"
