"""Speeds under a steady load, decided against the profile's bounds."""

from __future__ import annotations

from pytest_vllm import (
    INFO,
    MUST,
    PERFORMANCE,
    Figures,
    Measured,
    Profile,
    check,
    need,
    observe,
    only_if,
)

from .measurements import bounds

LIMITS = "profile:limits"
NEEDS = ("completions", "stream", "metrics")


@check("throughput.decode.floor", MUST, spec=LIMITS, family=PERFORMANCE, needs=NEEDS, tier="gate")
def test_decode_floor(
    vllm_profile: Profile, vllm_figures: Figures | None, throughput_decode: Measured
) -> None:
    """One stream decodes as fast as the profile promises, decided by an interval."""
    floor, ceiling = bounds(vllm_profile, vllm_figures, "decode-tok-s")
    only_if(floor or ceiling, "the profile sets no decode-tok-s for one stream")
    decided = throughput_decode.decide("decode-tok-s", floor=floor, ceiling=ceiling)
    observe("decode-tok-s", decided.text)

    assert decided.holds, decided.text


@check("throughput.aggregate.floor", MUST, spec=LIMITS, family=PERFORMANCE, needs=NEEDS, tier="gate")
def test_aggregate_floor(
    vllm_profile: Profile, vllm_figures: Figures | None, throughput_aggregate: Measured
) -> None:
    """All streams together decode as fast as the profile promises, decided by an interval."""
    streams = throughput_aggregate.workload.streams
    floor, ceiling = bounds(vllm_profile, vllm_figures, "aggregate-tok-s", streams)
    only_if(floor or ceiling, f"the profile sets no aggregate-tok-s at {streams} streams")
    decided = throughput_aggregate.decide("aggregate-tok-s", floor=floor, ceiling=ceiling)
    observe("aggregate-tok-s", decided.text)

    assert decided.holds, decided.text


@check("throughput.aggregate.speed", INFO, spec=LIMITS, family=PERFORMANCE, needs=NEEDS, tier="gate")
def test_aggregate_speed(throughput_aggregate: Measured) -> None:
    """So many streams together get tokens all the time."""
    need(not throughput_aggregate.doubt("aggregate-tok-s"), throughput_aggregate.doubt("aggregate-tok-s"))
    found = throughput_aggregate.interval("aggregate-tok-s")
    observe("aggregate-tok-s", throughput_aggregate.shown("aggregate-tok-s", found))

    assert found.value > 0, "not one token came"
