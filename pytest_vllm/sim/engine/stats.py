"""What the engine counts; `/metrics` shows it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_vllm.sim.engine.sequence import Sequence

SECONDS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
    80.0, 160.0, 640.0, 2560.0,
)  # fmt: skip
GAPS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
LATENCIES = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0,
    960.0, 1920.0, 7680.0,
)  # fmt: skip
ITERATION = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
PREEMPTIONS = (1, 2, 3, 4, 5, 10, 20)
CHOICES = (1, 2, 5, 10, 20)


def one_two_five(highest: int) -> tuple[int, ...]:
    """1, 2, 5, 10, … up to `highest`."""
    steps = [mantissa * 10**power for power in range(12) for mantissa in (1, 2, 5)]
    return tuple(step for step in steps if step <= highest)


class Histogram:
    """Counts per bucket (upper ends; one more for the rest), and the sum."""

    def __init__(self, ends: tuple[float, ...]) -> None:
        """Empty."""
        self.ends = ends
        self.counts = [0] * (len(ends) + 1)
        self.sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count a value, so many times."""
        self.counts[bisect_left(self.ends, value)] += times
        self.sum += value * times

    @property
    def count(self) -> int:
        """How many values."""
        return sum(self.counts)


@dataclass
class Stats:
    """Counters by family name without `vllm:` and suffix, histograms likewise."""

    counters: Counter[str] = field(default_factory=Counter)
    finished: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    histograms: dict[str, Histogram] = field(default_factory=dict)

    @classmethod
    def of(cls, max_model_len: int) -> Stats:
        """Fresh stats; token buckets end at the context length."""
        tokens = one_two_five(max_model_len)
        ends: dict[str, tuple[float, ...]] = {
            "iteration_tokens_total": ITERATION,
            "request_params_n": CHOICES,
            "request_num_preemptions": PREEMPTIONS,
            "time_to_first_token_seconds": SECONDS,
            "inter_token_latency_seconds": GAPS,
            "time_per_output_token_seconds": GAPS,
            "request_time_per_output_token_seconds": GAPS,
        }
        for name in ("prompt", "generation", "max_num_generation", "prefill_kv_computed"):
            ends[f"request_{name}_tokens"] = tokens
        ends["request_params_max_tokens"] = tokens
        ends["e2e_request_latency_seconds"] = LATENCIES
        for name in ("queue", "inference", "prefill", "decode"):
            ends[f"request_{name}_time_seconds"] = LATENCIES
        return cls(histograms={name: Histogram(given) for name, given in ends.items()})

    def observe(self, name: str, value: float, times: int = 1) -> None:
        """Count a value in a histogram."""
        self.histograms[name].observe(value, times)

    def first_token(self, sequence: Sequence, now: float) -> None:
        """The first output token of a sequence came: its prompt is processed."""
        sequence.first = now
        self.counters["prompt_tokens"] += len(sequence.prompt)
        self.counters["prompt_tokens_cached"] += max(0, sequence.cached)
        self.observe("time_to_first_token_seconds", now - sequence.arrived)

    def gap(self, seconds: float, times: int) -> None:
        """So many sequences waited so long for their next token."""
        self.observe("inter_token_latency_seconds", seconds, times)
        self.observe("time_per_output_token_seconds", seconds, times)

    def finish(self, sequence: Sequence, reason: str, now: float) -> None:
        """A sequence ended."""
        self.finished[reason] += 1
        self.observe("request_prompt_tokens", len(sequence.prompt))
        self.observe("request_generation_tokens", sequence.done)
        if sequence.output:
            self.observe("request_params_max_tokens", sequence.max_tokens)
        self.observe("e2e_request_latency_seconds", now - sequence.arrived)
        first = sequence.first if sequence.first is not None else now
        scheduled = min(sequence.scheduled if sequence.scheduled is not None else now, first)
        last = sequence.last or now
        self.observe("request_queue_time_seconds", scheduled - sequence.arrived)
        self.observe("request_inference_time_seconds", last - scheduled)
        self.observe("request_prefill_time_seconds", first - scheduled)
        self.observe("request_decode_time_seconds", last - first)
        self.observe("request_num_preemptions", sequence.preemptions)
        self.observe("request_prefill_kv_computed_tokens", len(sequence.prompt) - max(0, sequence.cached))
        gaps = sequence.done - 1
        self.observe("request_time_per_output_token_seconds", (last - first) / gaps if gaps > 0 else 0.0)
