"""Speeds that cannot be: far below what the profile promises, above what the hardware allows."""

from typing import Any

from pytest_vllm import (
    MUST,
    PERFORMANCE,
    SHOULD,
    Figures,
    Profile,
    Recording,
    Recordings,
    Server,
    check,
    need,
    observe,
    only_if,
    unexpected,
)

from .speeds import FIRST, MARGIN, NEEDS, decode_rates, seconds, shown

LIMITS = "profile:limits"
ROOFLINE = "profile:hardware"
SLOW = "fault:vllm-project/vllm/issues/31030"
#: Above this the time of a step is overhead, and says nothing of the hardware.
FAST = 1000.0


@check("performance.answered", MUST, spec=SLOW, needs=("completions",), exchanges=("performance.",))
def test_answered(vllm_recordings: Recordings) -> None:
    """The requests that are timed are answered."""
    wrong = unexpected(vllm_recordings.of("performance."))

    assert not wrong, "; ".join(wrong)


@check("performance.decode.floor", MUST, spec=LIMITS, family=PERFORMANCE, needs=NEEDS)
def test_floor(
    vllm_profile: Profile,
    vllm_figures: Figures | None,
    performance_first: Recording,
    performance_second: Recording,
    performance_third: Recording,
) -> None:
    """One stream decodes as fast as the profile promises, by three short ones."""
    bound: Any = vllm_profile.limits.get("decode-tok-s")
    only_if(bound, "the profile sets no decode-tok-s")
    floor: Any = vllm_figures.floor("decode-tok-s", bound) if vllm_figures else bound.min
    only_if(isinstance(floor, int | float), "the floor is a share of a ceiling that is not known")
    rates = decode_rates((performance_first, performance_second, performance_third))
    observe("decoding of one stream", shown(rates))

    assert max(rates) >= floor * (1 - MARGIN), (
        f"{shown(rates)}, the floor is {floor:.3g} tok/s: is the GPU shared, throttled, or a kernel missing?"
    )


@check("performance.decode.possible", MUST, spec=ROOFLINE, family=PERFORMANCE, needs=NEEDS)
def test_possible(
    vllm_server: Server,
    vllm_figures: Figures | None,
    performance_first: Recording,
    performance_second: Recording,
    performance_third: Recording,
) -> None:
    """No stream decodes faster than the memory can be read."""
    only_if(vllm_figures, "the profile names no hardware and model")
    only_if(not vllm_server.drafts, "drafted tokens may come faster")
    ceiling = vllm_figures.decode_ceiling() if vllm_figures else 0.0
    rates = decode_rates((performance_first, performance_second, performance_third))

    assert min(rates) <= ceiling * 1.2, (
        f"{shown(rates)}, the ceiling is {ceiling:.3g} tok/s: is this the model, the hardware, the clock?"
    )


@check("performance.decode.near-ceiling", SHOULD, spec=ROOFLINE, family=PERFORMANCE, needs=NEEDS)
def test_near_ceiling(
    vllm_figures: Figures | None,
    performance_first: Recording,
    performance_second: Recording,
    performance_third: Recording,
) -> None:
    """One stream decodes at a tenth, at least, of what the memory allows."""
    ceiling = vllm_figures.decode_ceiling() if vllm_figures else 0.0
    only_if(ceiling, "the profile names no hardware and model")
    only_if(ceiling < FAST, f"at {ceiling:.0f} tok/s a step is mostly overhead")
    rates = decode_rates((performance_first, performance_second, performance_third))

    assert max(rates) >= ceiling / 10, (
        f"{shown(rates)}, the ceiling is {ceiling:.3g}: eager mode, a kernel for other hardware?"
    )


@check("performance.decode.steady", SHOULD, spec=SLOW, family=PERFORMANCE, needs=NEEDS)
def test_steady(
    performance_first: Recording, performance_second: Recording, performance_third: Recording
) -> None:
    """Three streams in a row decode at about the same speed."""
    rates = decode_rates((performance_first, performance_second, performance_third))
    need(max(rates) < FAST, "steps this short are mostly overhead")

    assert min(rates) * 4 >= max(rates), f"{shown(rates)}: what else runs on the machine?"


@check(
    "performance.cached-prompt.pays",
    MUST,
    spec="fault:weicj/vLLM-2080Ti-Definitive/issues/149",
    family=PERFORMANCE,
    needs=("metrics", "completions", "prefix-cache", "cached-tokens"),
)
def test_cached_pays(performance_cold: Recording, performance_warm: Recording) -> None:
    """A long prompt that is in the cache is answered sooner than at first."""
    cold, warm = seconds(performance_cold, FIRST), seconds(performance_warm, FIRST)
    usage = performance_warm.ok["usage"]
    found = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    only_if(cold >= 0.2, f"at first it took {cold:.3f} s: nothing that a cache could save")
    need(found * 2 >= usage["prompt_tokens"], f"only {found} of {usage['prompt_tokens']} tokens were cached")
    observe("time to the first token", f"{cold:.2f} s, cached {warm:.2f} s")

    assert warm <= cold * (1 - MARGIN), f"{warm:.2f} s with {found} cached tokens, {cold:.2f} s at first"


@check("performance.first-token.limit", MUST, spec=LIMITS, family=PERFORMANCE, needs=NEEDS)
def test_first_token(
    vllm_profile: Profile,
    performance_first: Recording,
    performance_second: Recording,
    performance_third: Recording,
) -> None:
    """A short prompt's first token comes as soon as promised, by three of them."""
    bound: Any = vllm_profile.limits.get("ttft")
    only_if(bound and isinstance(bound.max, int | float), "the profile sets no ttft")
    times = [seconds(one, FIRST) for one in (performance_first, performance_second, performance_third)]
    text = ", ".join(f"{time:.3f}" for time in times)

    assert min(times) <= bound.max * (1 + MARGIN), f"{text} s, the limit is {bound.max:.3f} s"
