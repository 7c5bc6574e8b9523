"""Adapters are not taken for each other: two beside each other, nor two that had one name in turn."""

from pytest_vllm import MUST, SHOULD, Case, Recording, Recordings, check, need, only_if

from .test_adapters import cached, distance, numbers
from .test_runtime import loaded

SECOND = "fault:vllm-project/vllm/issues/7169"
TURNS = "fault:vllm-project/vllm/pull/20873"
STALE = "fault:vllm-project/vllm/issues/42125"
CHATTING = ("lora", "chat")


def apart(one: Recording, other: Recording) -> float:
    """How far the first two adapters are apart. Not run where their answers are the same."""
    found = distance(one, other)
    only_if(found, "the two adapters answer this alike")
    return found


@check("lora.second.effect", MUST, spec=SECOND, needs=CHATTING)
def test_second(
    lora_prompt: Case,
    lora_base: Recording,
    lora_base_again: Recording,
    lora_adapter: Recording,
    lora_second: Recording,
) -> None:
    """Two adapters of other weights answer otherwise, and other than the base."""
    del lora_prompt
    noise = distance(lora_base, lora_base_again)
    need(noise < 1, "the base model does not repeat its own greedy answers")

    assert distance(lora_adapter, lora_second) > noise, f"both say {numbers(lora_second)[0]!r:.60}"
    assert distance(lora_base, lora_second) > noise, (
        f"the second says {numbers(lora_second)[0]!r:.60}, as the base"
    )


@check("lora.turns", MUST, spec=TURNS, needs=CHATTING)
def test_turns(
    lora_prompt: Case, lora_adapter: Recording, lora_second: Recording, lora_return: Recording
) -> None:
    """An adapter answers as before once another one was asked."""
    del lora_prompt
    between = apart(lora_adapter, lora_second)
    own, other = distance(lora_adapter, lora_return), distance(lora_second, lora_return)

    assert own < max(other, between), (
        f"first {numbers(lora_adapter)[0]!r:.50}, after another adapter {numbers(lora_return)[0]!r:.50}"
    )


@check(
    "lora.runtime.anew",
    MUST,
    spec=STALE,
    needs=CHATTING,
    exchanges=("lora.adapter[question]", "lora.second[question]"),
)
def test_anew(
    lora_anew_load: Recording,
    lora_anew_reload: Recording,
    lora_anew_answer: Recording,
    vllm_recordings: Recordings,
) -> None:
    """A name that is loaded anew answers with the new weights."""
    loaded(lora_anew_load)
    status = lora_anew_reload.status
    assert status == 200, f"loading it anew: {status} {lora_anew_reload.text[:120]}"
    first, other = (vllm_recordings.get(f"lora.{name}[question]") for name in ("adapter", "second"))
    apart(first, other)
    new, old = (distance(one, lora_anew_answer) for one in (other, first))

    assert new < old, f"it says {numbers(lora_anew_answer)[0]!r:.60}, as the weights before it did"


@check("lora.runtime.anew-uncached", SHOULD, spec=STALE, needs=(*CHATTING, "prefix-cache", "cached-tokens"))
def test_anew_uncached(
    lora_anew_load: Recording, lora_anew_reload: Recording, lora_anew_long: Recording
) -> None:
    """What the old weights cached does not serve the new ones."""
    loaded(lora_anew_load)
    need(lora_anew_reload.status == 200, f"loading it anew was answered with {lora_anew_reload.status}")
    found = cached(lora_anew_long)

    assert not found, f"{found} tokens came from what the weights before had cached: reset the prefix cache"
