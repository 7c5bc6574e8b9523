"""Speeds beside what hardware and model allow: what cannot be, and what is far from what is usual."""

from pytest_vllm import MUST, PERFORMANCE, SHOULD, Recording, Roofline, check, need, observe, only_if

from .speeds import FIRST, NEEDS, decode_rates, seconds

ROOFLINE = "profile:hardware"
EAGER = "vllm:configuration/optimization/"
UNKNOWN = "the profile names no hardware and model"
PROMPT = "prefill-tok-s"
#: Prompts that are computed within less say nothing: the host's time weighs more.
SHORTEST = 0.02


def decoding(roofline: Roofline | None, *streams: Recording) -> str:
    """What is wrong with the speed of the fastest of some streams; empty when it is usual."""
    only_if(roofline, UNKNOWN)
    standing = roofline.standing("decode-tok-s", max(decode_rates(streams))) if roofline else None
    only_if(standing, "there is no ceiling for decoding")
    only_if(standing and standing.usual, "nothing is known of how fast such a deployment usually is")
    observe("decoding of one stream", standing)
    return str(standing) if standing and standing.low else ""


def prefill(roofline: Roofline | None, cold: Recording) -> tuple[str, str]:
    """What is impossible and what is low about the speed at which a prompt is computed."""
    only_if(roofline, UNKNOWN)
    tokens, taken = len(cold.request.json["prompt"]), seconds(cold, FIRST)
    need(taken > 0, "the server counts no time for the first token")
    standing = roofline.standing(PROMPT, tokens / taken) if roofline else None
    only_if(standing and standing.usual, "nothing is known of how fast such a deployment usually is")
    only_if(
        standing and tokens / standing.ceiling >= SHORTEST / 2,
        f"{tokens} tokens take this hardware less than {SHORTEST / 2 * 1000:.0f} ms: mostly the host's time",
    )
    observe("a cold prompt", f"{tokens} tokens in {taken:.3g} s, {standing}")
    if standing is None:
        return "", ""
    return ("" if standing.possible else str(standing)), (str(standing) if standing.low else "")


@check("performance.roofline.decode", SHOULD, spec=EAGER, family=PERFORMANCE, needs=NEEDS)
def test_decode(
    vllm_roofline: Roofline | None,
    performance_first: Recording,
    performance_second: Recording,
    performance_third: Recording,
) -> None:
    """One stream decodes at an efficiency that is usual for such a deployment."""
    wrong = decoding(vllm_roofline, performance_first, performance_second, performance_third)

    assert not wrong, wrong


@check("performance.roofline.prefill-possible", MUST, spec=ROOFLINE, family=PERFORMANCE, needs=NEEDS)
def test_prefill_possible(vllm_roofline: Roofline | None, performance_cold: Recording) -> None:
    """No prompt is computed faster than the hardware multiplies."""
    impossible, _ = prefill(vllm_roofline, performance_cold)

    assert not impossible, impossible


@check("performance.roofline.prefill", SHOULD, spec=ROOFLINE, family=PERFORMANCE, needs=NEEDS)
def test_prefill(vllm_roofline: Roofline | None, performance_cold: Recording) -> None:
    """A prompt is computed at an efficiency that is usual for such a deployment."""
    _, low = prefill(vllm_roofline, performance_cold)

    assert not low, low
