"""More streams: what all of them get together may not fall, and many of them get more than one does.

And one stream gets afterwards what it got before.
"""

from __future__ import annotations

from pytest_vllm import MUST, PERFORMANCE, Measured, Measurements, check, need, observe, only_if, times

CLIFF = "fault:vllm-project/vllm/issues/49390"
AGE = "fault:vllm-project/vllm/issues/16985"
NEEDS = ("completions", "stream", "metrics")
RATE = "aggregate-tok-s"
#: What is left, at least, of the speed that fewer streams have. A full batch has some work of its own.
LEFT = 0.75
#: From so many streams on a batch must be worth something: how many times the tokens of one stream.
MANY, GAIN = 8, 1.25
#: What is left, at least, of the speed before the loads. A GPU that got warm loses a fifth, not half.
LASTS = 0.5


@check("throughput.aggregate.grows", MUST, spec=CLIFF, family=PERFORMANCE, needs=NEEDS, tier="gate")
def test_grows(
    vllm_measurements: Measurements, throughput_decode: Measured, throughput_aggregate: Measured
) -> None:
    """More streams get together no fewer tokens per second than fewer streams do."""
    others = [one for one in _aggregates(vllm_measurements) if one.key != throughput_aggregate.key]
    fewer = [one for one in (throughput_decode, *others) if _like(one, throughput_aggregate)]
    only_if(fewer, "no load of this run asks the same of fewer streams")
    many = throughput_aggregate.workload.streams
    for one in fewer:
        found = times(throughput_aggregate, one, RATE)
        told = (
            f"{many} streams have {found.value:.3g} times ({found.low:.3g} to {found.high:.3g}) the tokens "
            f"per second of {one.workload.streams}"
        )
        observe(f"against {one.workload.streams}", told)

        assert found.high >= LEFT, f"{told}: from some batch size on, steps take a slower way"
        need(found.value >= LEFT, f"{told}; {LEFT:g} times is the least")


@check("throughput.aggregate.gains", MUST, spec=CLIFF, family=PERFORMANCE, needs=NEEDS, tier="gate")
def test_gains(throughput_decode: Measured, throughput_aggregate: Measured) -> None:
    """Eight streams or more get together clearly more tokens per second than one."""
    many = throughput_aggregate.workload.streams
    only_if(many >= MANY, f"{many} streams are few")
    only_if(_like(throughput_decode, throughput_aggregate), "no load asks the same of one stream")
    found = times(throughput_aggregate, throughput_decode, RATE)
    told = (
        f"{many} streams have {found.value:.3g} times ({found.low:.3g} to {found.high:.3g}) the tokens of one"
    )
    observe("against 1", told)

    assert found.high >= GAIN, f"{told}: they are served one after the other"
    need(found.value >= GAIN, f"{told}; {GAIN:g} times is the least")


@check("throughput.decode.lasts", MUST, spec=AGE, family=PERFORMANCE, needs=NEEDS, tier="gate")
def test_lasts(throughput_decode: Measured, throughput_decode_again: Measured) -> None:
    """One stream is about as fast after the loads as it was before them."""
    found = times(throughput_decode_again, throughput_decode, "decode-tok-s")
    told = f"{found.value:.3g} times ({found.low:.3g} to {found.high:.3g}) the tokens per second of before"
    observe("after the loads", told)

    assert found.high >= LASTS, f"{told}: it slows down with what it has served"
    need(found.value >= LASTS, f"{told}; {LASTS:g} times is the least")


def _aggregates(measured: Measurements) -> list[Measured]:
    keys = [key for key in measured.keys() if key.startswith("throughput.aggregate[")]  # noqa: SIM118
    return [one for one in map(measured.get, keys) if not one.skipped]


def _like(one: Measured, other: Measured) -> bool:
    """Whether a load asks the same of fewer streams: prompts and answers of about the same length."""
    (here,), (there,) = one.workload.kinds, other.workload.kinds
    if one.skipped or one.workload.streams >= other.workload.streams:
        return False
    answers = (here.output or 0) / (there.output or 1)
    return 0.5 <= here.prompts.tokens / there.prompts.tokens <= 2 and 0.5 <= answers <= 2
