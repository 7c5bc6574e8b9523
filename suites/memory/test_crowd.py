"""Requests that together need more of the cache than there is are put back, which no answer shows."""

from __future__ import annotations

from typing import Any

from pytest_vllm import MUST, Recording, check, error_in, listed, near_tie, need, only_if

from .exchanges import AGAIN
from .test_promises import preempted

RECOMPUTED = "fault:vllm-project/vllm/issues/16832"
SEVERAL = "fault:vllm-project/vllm/issues/8844"
NEEDS = ("metrics", "completions", "logprobs")


@check("memory.crowd.whole", MUST, spec=RECOMPUTED, needs=NEEDS)
def test_whole(memory_crowd: Recording) -> None:
    """Requests that fill the cache together are each answered to their last token."""
    wrong = unfinished(memory_crowd)

    assert not wrong, f"{times(memory_crowd)}: {listed(wrong)}"


@check("memory.crowd.choices", MUST, spec=SEVERAL, needs=(*NEEDS, "stream"))
def test_choices(memory_crowd: Recording, memory_crowd_choices: Recording) -> None:
    """Two streamed choices of requests that fill the cache each come to their end."""
    need(not unfinished(memory_crowd), "with one choice each they are not answered either")
    wrong = unfinished(memory_crowd_choices)

    assert not wrong, listed(wrong)


@check("memory.crowd.same", MUST, spec=RECOMPUTED, needs=NEEDS)
def test_same(memory_crowd: Recording, memory_crowd_again: Recording) -> None:
    """A request that was put back gets the answer that it gets with room enough."""
    need(not unfinished(memory_crowd), "not all of them are answered")
    crowded, alone = (parts(one) for one in (memory_crowd, memory_crowd_again))
    need(sorted(alone) == list(range(len(AGAIN))), f"with all the room, choices {sorted(alone)} came")
    both = [(crowded[at % len(crowded)], alone[place]) for place, at in enumerate(AGAIN)]
    wrong = [fault for one, other in both if (fault := unlike(one, other))]

    assert not wrong, f"{times(memory_crowd)}: {listed(wrong)}"


def times(crowded: Recording) -> str:
    """How often requests were put back, by the metrics."""
    before, after = preempted(crowded.metrics_before), preempted(crowded.metrics_after)
    return "put back" if before is None or after is None else f"put back {after - before:.0f} times"


def parts(answer: Recording) -> dict[int, dict[str, Any]]:
    """Each choice by its index: its text, its tokens with what else was likely, why it ended."""
    found: dict[int, dict[str, Any]] = {}
    for choice in (one for part in answer.bodies for one in part.get("choices") or ()):
        here = found.setdefault(choice["index"], {"text": "", "tokens": [], "finish": None})
        told = choice.get("logprobs") or {}
        here["text"] += choice.get("text") or ""
        here["tokens"] += zip(told.get("tokens") or (), told.get("top_logprobs") or (), strict=False)
        here["finish"] = choice.get("finish_reason") or here["finish"]
    return found


def unfinished(answer: Recording) -> list[str]:
    """What is wrong with the choices of a request; empty when each is as long as was asked."""
    answer.answered()
    only_if(not answer.shed, f"shed with {answer.status}")
    if answer.status != 200:
        return [f"answered with {answer.status}: {answer.text[:120]}"]
    asked = answer.request.json
    number, length = len(asked["prompt"]) * asked.get("n", 1), asked["max_tokens"]
    found = parts(answer)
    if errors := [str(error)[:120] for part in answer.bodies if (error := error_in(part))]:
        return errors[:1]
    if sorted(found) != list(range(number)):
        return [f"{len(found)} of {number} choices"]
    ended = [
        f"choice {at} ends with {one['finish']!r}" for at, one in found.items() if one["finish"] != "length"
    ]
    lengths = {at: len(one["tokens"]) for at, one in found.items()}
    cut = [
        f"choice {at} has {tokens} of {length} tokens" for at, tokens in lengths.items() if tokens != length
    ]
    return ended or cut


def unlike(one: dict[str, Any], other: dict[str, Any]) -> str:
    """How two greedy answers differ; empty where they part at two tokens that were about equally likely."""
    texts = ["".join(f"<{token}>" for token, _ in each["tokens"]) for each in (one, other)]
    if texts[0] == texts[1]:
        same = one["text"] == other["text"]
        return "" if same else f"the same tokens, as text {one['text'][-40:]!r} and {other['text'][-40:]!r}"
    tied = any(near_tie(entries(each), texts[0], texts[1]) for each in (one, other))
    return "" if tied else f"{texts[0]:.80}, with all the room {texts[1]:.80}"


def entries(choice: dict[str, Any]) -> list[dict[str, Any]]:
    """A choice's tokens with what else was likely, in the shape of a chat answer."""
    return [
        {
            "token": f"<{token}>",
            "top_logprobs": [
                {"token": f"<{name}>", "logprob": value} for name, value in (tops or {}).items()
            ],
        }
        for token, tops in choice["tokens"]
    ]
