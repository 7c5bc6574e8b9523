"""Requests of loads, whatever is measured by them: one that fails or hangs is a failure."""

from __future__ import annotations

from pytest_vllm import MUST, Measured, Measurements, check, need, observe

SERVING = "vllm:serving/openai_compatible_server/"
#: Loads that may be shed, or are judged by a check of their own.
APART = ("throughput.overload", "soak.")


@check("throughput.answered", MUST, spec=SERVING, needs=("completions", "stream"), tier="gate")
def test_answered(
    vllm_measurements: Measurements, throughput_decode: Measured, throughput_prefill: Measured
) -> None:
    """Every request of every load is answered to its end."""
    del throughput_decode, throughput_prefill
    every = map(vllm_measurements.get, vllm_measurements.keys())
    loads = [one for one in every if one.samples and not one.spoiled and not one.key.startswith(APART)]
    need(loads, "no load was sent")
    lost = {one.key: one.errors for one in loads if one.errors}
    wrong = [f"{key}: {len(errors)} requests failed, {errors[0]}" for key, errors in lost.items()]
    observe("requests", f"{sum(len(one.samples) for one in loads)} in {len(loads)} loads")

    assert not wrong, "; ".join(wrong)
