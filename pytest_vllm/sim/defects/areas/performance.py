"""Defects of speed, and of the log lines that foretell them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.sim.defects.make import logs, metric, slower
from pytest_vllm.sim.defects.registry import add, defect

if TYPE_CHECKING:
    from pytest_vllm.sim.boot.deployment import Deployment
    from pytest_vllm.sim.engine.core import Engine

#: A profile with a floor for decoding, on hardware whose speed the simulator knows.
SPARK = "spark-fp8"
DRAFTS = ["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 2}']
TOKENS = 24

slower(
    "performance.half-speed",
    "Every step takes twice as long as the hardware allows.",
    2.0,
    profile=SPARK,
    faults=["PERF-002", "PERF-003", "PERF-006", "PERF-022"],
    catches=["performance.decode.floor"],
)


def _single(engine: Engine) -> bool:
    return len(engine.running) == 1 and len(engine.running[0].output) == TOKENS


@defect(
    "performance.crawls",
    on="step",
    profile=SPARK,
    faults=["PERF-004"],
    catches=["performance.decode.floor", "performance.decode.near-ceiling"],
)
def crawls(seconds: float, engine: Engine) -> float:
    """A stream that runs alone decodes at a twentieth of what the memory allows."""
    return seconds * 20 if _single(engine) else seconds


def _untuned(seconds: float, engine: Engine) -> float:
    if not _single(engine):
        return seconds
    return seconds * (2 if engine.stats.finished["length"] % 2 else 10)


def _default(lines: list[str], deployment: Deployment) -> list[str]:
    del deployment
    line = "WARNING Using default MoE config. Performance might be sub-optimal! Config file not found"
    return [*lines, line] if any("KV cache size" in text for text in lines) else lines


add(
    "performance.untuned",
    "Kernels run with a default configuration, at half of the speed and less.",
    {"step": _untuned, "log": _default},
    profile=SPARK,
    faults=["PERF-014", "PERF-015", "PERF-016"],
    catches=["performance.decode.floor", "performance.log.tuned", "performance.decode.steady"],
)


@defect(
    "performance.first-token-late",
    on="step",
    profile=SPARK,
    faults=["PERF-003", "PERF-008"],
    catches=["performance.first-token.limit"],
)
def first_token_late(seconds: float, engine: Engine) -> float:
    """The first token of a short prompt comes seconds late."""
    fresh = any(not one.done for one in engine.running)
    return seconds + 3 if fresh and _single(engine) else seconds


@defect(
    "performance.cache-saves-nothing",
    on="step",
    faults=["CACHE-019", "CACHE-021", "CACHE-024"],
    catches=["performance.cached-prompt.pays"],
)
def cache_saves_nothing(seconds: float, engine: Engine) -> float:
    """A cached prompt takes as long as a new one: its state is computed again all the same."""
    heavy = any(not one.done and len(one.prompt) >= 1900 and len(one.output) == 1 for one in engine.running)
    return seconds + 0.5 if heavy else seconds


metric(
    "performance.impossibly-fast",
    "Decoding takes a twentieth of the time that reading the weights does: another model is served.",
    "vllm:request_decode_time_seconds_sum",
    lambda value: value / 20,
    profile=SPARK,
    catches=["performance.decode.possible"],
)


@defect(
    "performance.eager",
    on="step",
    profile=SPARK,
    needs=["--enforce-eager"],
    faults=["PERF-014"],
    catches=["performance.roofline.decode", "performance.log.not-eager"],
)
def eager(seconds: float, engine: Engine) -> float:
    """Neither CUDA graphs nor compiled kernels are used: a stream decodes at 40 % of its speed."""
    return seconds * 2.5 if _single(engine) else seconds


@defect(
    "performance.prefill-crawls",
    on="step",
    profile=SPARK,
    faults=["PERF-008"],
    catches=["performance.roofline.prefill"],
)
def prefill_crawls(seconds: float, engine: Engine) -> float:
    """Prompts are computed at a ninth of the speed, as chunked prefill does to some hybrid models."""
    return seconds * 9 if any(one.computed < len(one.prompt) for one in engine.running) else seconds


metric(
    "performance.prefill-impossible",
    "The time to the first token is counted from when the prompt was computed, not from its arrival.",
    "vllm:time_to_first_token_seconds_sum",
    lambda value: value / 1000,
    profile=SPARK,
    catches=["performance.roofline.prefill-possible"],
)
logs(
    "performance.fp4-emulated",
    "FP4 weights run on a kernel for other hardware, as a warning in the log says.",
    "WARNING [marlin_utils_fp4.py:226] Your GPU does not have native support for FP4 computation but FP4 "
    "quantization is being used. Weight-only FP4 compression will be used leveraging the Marlin kernel.",
    faults=["PERF-009", "PERF-010", "PERF-011", "PERF-012"],
    catches=["performance.log.native-fp4"],
)


def _missing(lines: list[str], deployment: Deployment) -> list[str]:
    del deployment
    if not any("KV cache size" in text for text in lines):
        return lines
    return [*lines, "INFO Using 'MARLIN' NvFp4 MoE backend", "WARNING NVFP4 kernels: falling back to native"]


add(
    "performance.kernels-missing",
    "The build left the kernels for this GPU out and falls back to slow ones, without CUDA graphs.",
    {"log": _missing},
    needs=["--enforce-eager"],
    faults=["START-031"],
    catches=["performance.log.native-fp4", "performance.log.no-fallback", "performance.log.not-eager"],
)
logs(
    "performance.graphs-lost",
    "Drafting costs the full CUDA graphs, as one line of the log says.",
    "WARNING CUDAGraphMode.FULL_AND_PIECEWISE is not supported with spec-decode for attention backend "
    "FLASHINFER; "
    "setting cudagraph_mode=PIECEWISE",
    needs=DRAFTS,
    faults=["PERF-017"],
    catches=["performance.log.graphs"],
)
