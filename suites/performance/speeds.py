"""Speeds as the server counts them: its own seconds, which a simulator's clock may stretch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm import Metrics, need

from .exchanges import TOKENS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_vllm import Recording

NEEDS = ("metrics", "completions", "stream")
DECODE = "vllm:request_decode_time_seconds"
FIRST = "vllm:time_to_first_token_seconds"
#: How far from a floor or a ceiling a few streams are still no proof.
MARGIN = 0.1


def seconds(recording: Recording, name: str) -> float:
    """How much one request added to a histogram's sum. Raises Undecided where that cannot be known."""
    need(recording.status == 200, f"{recording.key} was answered with {recording.status or recording.error}")
    need(recording.metrics_before and recording.metrics_after, "the metrics were not scraped")
    before, after = Metrics(recording.metrics_before or ""), Metrics(recording.metrics_after or "")
    need(not before.fault and not after.fault, f"the metrics cannot be read: {before.fault or after.fault}")
    need(after.value(f"{name}_count") is not None, f"{name} is not there")
    counted = after.delta(before, f"{name}_count") or 0
    need(counted == 1, f"{counted:.0f} requests were counted in {name}, so nothing can be told apart")
    return after.delta(before, f"{name}_sum") or 0.0


def decode_rates(streams: Iterable[Recording]) -> list[float]:
    """Tokens per second of each stream after its first token."""
    times = [seconds(one, DECODE) for one in streams]
    need(all(time > 0 for time in times), "the server counts no time for decoding")
    return [(TOKENS - 1) / time for time in times]


def shown(rates: Iterable[float]) -> str:
    """Rates for people."""
    return ", ".join(f"{rate:.3g}" for rate in rates) + " tok/s"
