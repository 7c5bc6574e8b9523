"""Speeds under a steady load, decided by intervals against the profile's bounds."""

from __future__ import annotations

from pytest_vllm import (
    INFO,
    MUST,
    PERFORMANCE,
    Baseline,
    Figures,
    Measured,
    Outcome,
    Profile,
    check,
    need,
    observe,
    only_if,
    regressed,
)

from .measurements import Bounds, bounds

LIMITS = "profile:limits"
ROOFLINE = "profile:hardware"
SLOW = "fault:vllm-project/vllm/issues/31030"
NEEDS = ("completions", "stream", "metrics")


def judge(
    measured: Measured, name: str, bound: Bounds, told: str, last: tuple[Profile, Baseline | None]
) -> None:
    """Whether the bound holds, and the regression that the profile allows since the last baseline.

    Undecided where an interval straddles one of them.
    """
    profile, baseline = last
    worse = profile.limits.regression.get(name)
    only_if(bound != (None, None) or worse is not None, told)
    only_if(bound != (None, None) or baseline, "there is no baseline: --vllm-baseline=FILE names one")
    decided = []
    if bound != (None, None):
        decided.append(measured.decide(name, floor=bound[0], ceiling=bound[1]))
    if worse is not None and baseline:
        decided.append(regressed(measured, name, baseline, worse, profile.hardware or ""))
    observe(name, "; ".join(one.text for one in decided))
    wrong = [one.text for one in decided if one.outcome is Outcome.FAILS]

    assert not wrong, "; ".join(wrong)
    for one in decided:
        need(one.outcome is Outcome.HOLDS, one.text)


def observed(measured: Measured, name: str, ceiling: float | None = None) -> float:
    """A figure for the report, and as a share of what the hardware allows. Raises Undecided on a doubt."""
    found = measured.sure(name)
    share = f", {found.value / ceiling:.0%} of the ceiling {ceiling:.4g}" if ceiling else ""
    observe(name, measured.shown(name, found) + share)
    return found.value


def known(figures: Figures | None) -> Figures | None:
    """The figures, where the hardware's are published: those of a CPU are a guess, and bound nothing."""
    return None if figures is None or figures.hardware.family == "cpu" else figures


@check("throughput.decode.floor", MUST, spec=LIMITS, family=PERFORMANCE, needs=NEEDS, tier="gate")
def test_decode_floor(
    vllm_profile: Profile,
    vllm_figures: Figures | None,
    vllm_baseline: Baseline | None,
    throughput_decode: Measured,
) -> None:
    """One stream decodes as fast as the profile promises."""
    bound = bounds(vllm_profile, vllm_figures, "decode-tok-s", 1)

    judge(
        throughput_decode,
        "decode-tok-s",
        bound,
        "the profile sets no decode-tok-s for one stream",
        (vllm_profile, vllm_baseline),
    )


@check("throughput.decode.per-token", MUST, spec=LIMITS, family=PERFORMANCE, needs=NEEDS, tier="gate")
def test_per_token(
    vllm_profile: Profile,
    vllm_figures: Figures | None,
    vllm_baseline: Baseline | None,
    throughput_decode: Measured,
) -> None:
    """A token after the first takes no longer than the profile promises."""
    bound = bounds(vllm_profile, vllm_figures, "tpot", 1)

    judge(
        throughput_decode,
        "tpot",
        bound,
        "the profile sets no tpot for one stream",
        (vllm_profile, vllm_baseline),
    )


@check("throughput.decode.speed", INFO, spec=ROOFLINE, family=PERFORMANCE, needs=NEEDS, tier="gate")
def test_decode_speed(vllm_figures: Figures | None, throughput_decode: Measured) -> None:
    """One stream decodes, and no faster than the hardware allows."""
    figures = known(vllm_figures)
    ceiling = figures.decode_ceiling() if figures else None
    value = observed(throughput_decode, "decode-tok-s", ceiling)

    assert 0 < value <= (ceiling or value) * 1.2, f"{value:.4g} tok/s, the ceiling is {ceiling}"


@check("throughput.aggregate.floor", MUST, spec=LIMITS, family=PERFORMANCE, needs=NEEDS, tier="gate")
def test_aggregate_floor(
    vllm_profile: Profile,
    vllm_figures: Figures | None,
    vllm_baseline: Baseline | None,
    throughput_aggregate: Measured,
) -> None:
    """All streams together decode as fast as the profile promises."""
    streams = throughput_aggregate.workload.streams
    bound = bounds(vllm_profile, vllm_figures, "aggregate-tok-s", streams)

    judge(
        throughput_aggregate,
        "aggregate-tok-s",
        bound,
        f"the profile sets no aggregate-tok-s at {streams} streams",
        (vllm_profile, vllm_baseline),
    )


@check("throughput.aggregate.speed", INFO, spec=ROOFLINE, family=PERFORMANCE, needs=NEEDS, tier="gate")
def test_aggregate_speed(vllm_figures: Figures | None, throughput_aggregate: Measured) -> None:
    """All streams together decode, and no faster than the hardware allows."""
    streams = throughput_aggregate.workload.streams
    figures = known(vllm_figures)
    ceiling = figures.aggregate_ceiling(streams, 128) if figures else None
    value = observed(throughput_aggregate, "aggregate-tok-s", ceiling)

    assert 0 < value <= (ceiling or value) * 1.2, f"{value:.4g} tok/s, the ceiling is {ceiling}"


@check("throughput.prefill.floor", MUST, spec=LIMITS, family=PERFORMANCE, needs=NEEDS, tier="gate")
def test_prefill_floor(
    vllm_profile: Profile,
    vllm_figures: Figures | None,
    vllm_baseline: Baseline | None,
    throughput_prefill: Measured,
) -> None:
    """A long prompt is read as fast as the profile promises."""
    bound = bounds(vllm_profile, vllm_figures, "prefill-tok-s")

    judge(
        throughput_prefill,
        "prefill-tok-s",
        bound,
        "the profile sets no prefill-tok-s",
        (vllm_profile, vllm_baseline),
    )


@check("throughput.prefill.speed", INFO, spec=ROOFLINE, family=PERFORMANCE, needs=NEEDS, tier="gate")
def test_prefill_speed(vllm_figures: Figures | None, throughput_prefill: Measured) -> None:
    """A long prompt is read, and no faster than the hardware allows."""
    figures = known(vllm_figures)
    ceiling = figures.prefill_ceiling() if figures else None
    value = observed(throughput_prefill, "prefill-tok-s", ceiling)

    assert 0 < value <= (ceiling or value) * 1.2, f"{value:.4g} tok/s, the ceiling is {ceiling}"


@check("throughput.first-token.limit", MUST, spec=LIMITS, family=PERFORMANCE, needs=NEEDS, tier="gate")
def test_first_token(
    vllm_profile: Profile,
    vllm_figures: Figures | None,
    vllm_baseline: Baseline | None,
    throughput_first_token: Measured,
) -> None:
    """The first token comes as soon as the profile promises, nothing cached."""
    bound = bounds(vllm_profile, vllm_figures, "ttft")

    judge(throughput_first_token, "ttft", bound, "the profile sets no ttft", (vllm_profile, vllm_baseline))


@check(
    "throughput.cached.limit",
    MUST,
    spec=LIMITS,
    family=PERFORMANCE,
    needs=(*NEEDS, "prefix-cache"),
    tier="gate",
)
def test_cached(
    vllm_profile: Profile,
    vllm_figures: Figures | None,
    vllm_baseline: Baseline | None,
    throughput_cached: Measured,
) -> None:
    """Behind a cached prefix the first token comes as soon as the profile promises."""
    bound = bounds(vllm_profile, vllm_figures, "ttft-cached")

    judge(
        throughput_cached,
        "ttft-cached",
        bound,
        "the profile sets no ttft-cached",
        (vllm_profile, vllm_baseline),
    )
