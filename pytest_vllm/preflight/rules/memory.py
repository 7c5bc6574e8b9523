"""Memory: what is asked for against what there is."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from pytest_vllm.preflight.rule import ERROR, NOTE, WARNING, Finding, drop, put, rule
from pytest_vllm.profile.capacity import pool
from pytest_vllm.profile.derived import FIXED_OVERHEAD
from pytest_vllm.profile.hardware import GIB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.preflight.deployment import Deployment
    from pytest_vllm.profile.derived import Figures

_SHARE = "gpu-memory-utilization"
_KEY = "server.args.gpu-memory-utilization"


def share(of: Deployment) -> float:
    """The part of the memory that vLLM takes: as set, else the version's default."""
    return of.number(_SHARE) or 0.9


def gib(size: float) -> str:
    """Bytes for people."""
    return f"{size / GIB:.1f} GiB"


def on_gpu(of: Deployment) -> bool:
    """Whether a share of a GPU's memory is what counts."""
    return of.hardware is not None and of.hardware.vendor in ("nvidia", "amd") and not of.simulated


@rule("memory.container-limit", WARNING, source="cgroups: memory beyond the limit ends in an OOM kill")
def container_limit(of: Deployment) -> Iterator[Finding]:
    """The container may use less of the host's memory than what is put there takes."""
    limit = of.profile.deployment.memory
    if limit is None or of.simulated:
        return
    kept = [
        (of.number(flag) or 0.0) * GIB * (of.devices if flag == "cpu-offload-gb" else 1)
        for flag in ("cpu-offload-gb", "kv-offloading-size")
        if of.has(flag)
    ]
    what = "offloaded weights and cache"
    if of.hardware is not None and of.hardware.vendor == "cpu" and of.figures is not None:
        kept, what = [of.figures.weight_bytes, of.figures.kv_cache_bytes], "weights and cache, on a CPU,"
    if sum(kept) > limit:
        yield Finding(
            "deployment.memory",
            f"{what} take {gib(sum(kept))}, the container may use {gib(limit)}",
            "the system kills it while it loads",
            advice=f"a limit above {ceil(sum(kept) / GIB) + 8} GiB, which the engine needs some of itself",
        )


@rule("memory.utilisation-range", ERROR, source="CacheConfig._verify_args")
def utilisation_range(of: Deployment) -> Iterator[Finding]:
    """A share of the memory that is not a share."""
    given = of.number(_SHARE) if of.has(_SHARE) else None
    if given is not None and not 0 < given <= 1:
        fix = put(of.key(_SHARE), given / 100) if 1 < given <= 100 else None
        yield Finding(of.key(_SHARE), f"{_SHARE} is {given:g}", "vLLM takes more than 0 and at most 1", fix)


@rule("memory.utilisation-high", WARNING, source="guides: leave room for CUDA graphs")
def utilisation_high(of: Deployment) -> Iterator[Finding]:
    """Nearly all of the GPU's memory: nothing is left for CUDA graphs and other processes."""
    given = of.number(_SHARE) if of.has(_SHARE) else None
    if given is not None and 0.95 < given <= 1 and on_gpu(of) and not of.unified and of.hardware:
        left = of.hardware.memory_bytes * (1 - given)
        yield Finding(
            of.key(_SHARE),
            f"{_SHARE} is {given:g}, which leaves {gib(left)} of {gib(of.hardware.memory_bytes)}",
            "CUDA graphs, NCCL and other processes need some: out of memory under load",
            put(of.key(_SHARE), 0.92),
        )


@rule("memory.unified-default", WARNING, source="vllm-project/recipes#632; vllm#46307, #56824")
def unified_default(of: Deployment) -> Iterator[Finding]:
    """The default share on a GPU whose memory is the CPU's, too."""
    if of.unified and not of.has(_SHARE) and not of.has("kv-cache-memory-bytes") and of.hardware:
        default, total = share(of), of.hardware.memory_bytes
        yield Finding(
            _KEY,
            f"{_SHARE} is not set: {default:g} of {gib(total)} is {gib(default * total)}",
            f"the memory is the CPU's too; {gib(total * (1 - default))} are left for system and page cache",
            put(_KEY, 0.85),
        )


@rule(
    "memory.unified-high",
    WARNING,
    source="MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark#5; guides for DGX Spark: 0.85; 0.90 at most",
)
def unified_high(of: Deployment) -> Iterator[Finding]:
    """More than nine tenths of a memory that the CPU shares."""
    given = of.number(_SHARE) if of.has(_SHARE) else None
    if of.unified and given is not None and 0.9 < given <= 1 and of.hardware:
        left = of.hardware.memory_bytes * (1 - given)
        yield Finding(
            of.key(_SHARE),
            f"{_SHARE} is {given:g} on unified memory",
            f"{gib(left)} are left for the system; the start fails as soon as something else holds more",
            put(of.key(_SHARE), 0.85),
        )


@rule("memory.weights", ERROR, source="weights of the model file against memory * utilisation")
def weights(of: Deployment) -> Iterator[Finding]:
    """The weights alone need more memory than vLLM may take."""
    figures = of.sized
    if figures is None or not on_gpu(of):
        return
    part = 1.0 if of.has("kv-cache-memory-bytes") else share(of)
    need, budget = figures.weight_bytes, part * figures.hardware.memory_bytes
    if need > budget and part <= 1:
        fits = need + FIXED_OVERHEAD < 0.92 * figures.hardware.memory_bytes
        count = ceil(need * figures.devices / (0.9 * figures.hardware.memory_bytes))
        more = f"at least {count} such GPUs" if count > figures.devices else "more GPUs"
        yield Finding(
            of.key(_SHARE),
            f"{figures.model.title} needs {gib(need)} of weights per GPU, vLLM may take {gib(budget)} "
            f"({part:g} of {gib(figures.hardware.memory_bytes)})",
            "out of memory while loading" if _certain(figures) else f"out of memory while loading, {_IF}",
            advice="a larger share" if fits else f"{more}, or a checkpoint with fewer bits",
            severity=ERROR if _certain(figures) else WARNING,
        )


#: What holds only if a model that was taken for another by its name is stored as that one.
_IF = "if the model is what its name says"


def _certain(figures: Figures) -> bool:
    return figures.model.certain and (figures.draft is None or figures.draft.certain)


@rule("memory.cache-for-context", ERROR, source="vllm/v1/core/kv_cache_utils.py check_enough_kv_cache_memory")
def cache_for_context(of: Deployment) -> Iterator[Finding]:
    """The KV cache cannot hold one sequence of max-model-len: vLLM refuses to start."""
    figures, length = of.sized, of.max_model_len
    if figures is None or length is None or not on_gpu(of) or share(of) > 1:
        return
    budget = share(of) * figures.hardware.memory_bytes
    if figures.weight_bytes > budget or (needed := figures.request_bytes) is None:
        return
    asked = of.number("kv-cache-memory-bytes")
    most = asked or budget - figures.weight_bytes
    likely = figures.kv_cache_bytes / figures.devices
    if likely >= needed:
        return
    certain = most < needed and _certain(figures)
    fits = longest(figures, likely)
    yield Finding(
        of.key("max-model-len"),
        f"one sequence of {length:,} tokens needs {gib(needed)} of KV cache per GPU, "
        f"{gib(most if most < needed else likely)} are left beside {gib(figures.weight_bytes)} of weights",
        "vLLM refuses to start" if certain else "vLLM will probably refuse to start",
        put(of.key("max-model-len"), fits) if fits >= 2048 else None,
        severity=ERROR if certain else WARNING,
    )


def longest(figures: Figures, available: float) -> int:
    """The longest context of whole 1,024 tokens of which one sequence fits; 0 when none does."""
    low, high = 0, figures.length // 1024
    while low < high:
        middle = (low + high + 1) // 2
        held = pool(figures.cache_layers, replace(figures.serving, length=middle * 1024))
        fits = held is not None and held.request_bytes <= available
        low, high = (middle, high) if fits else (low, middle - 1)
    return low * 1024


@rule("memory.few-sequences", NOTE, source="memory * share, less weights, activations and 1.5 GB")
def few_sequences(of: Deployment) -> Iterator[Finding]:
    """The KV cache holds fewer whole sequences than are admitted."""
    figures, length = of.sized, of.max_model_len
    if figures is None or length is None or not on_gpu(of):
        return
    tokens, seqs = figures.kv_cache_tokens, figures.max_num_seqs
    if of.has("max-num-seqs") and length <= tokens < min(seqs, 2) * length:
        yield Finding(
            of.key("max-num-seqs"),
            f"about {tokens:,} tokens of KV cache hold {tokens / length:.1f} sequences of {length:,}, "
            f"max-num-seqs is {seqs}",
            "long sequences wait for each other or are preempted",
        )


@rule("memory.bytes-and-share", NOTE, versions=">=0.10.2", source="v1/worker/gpu_worker.py")
def bytes_and_share(of: Deployment) -> Iterator[Finding]:
    """kv-cache-memory-bytes wins over the share of memory."""
    if of.has("kv-cache-memory-bytes") and of.has(_SHARE):
        yield Finding(
            of.key(_SHARE),
            f"kv-cache-memory-bytes and {_SHARE} are both set",
            "the bytes decide the size of the cache, the share only the check at the start",
        )


@rule("memory.bytes-exceed", ERROR, versions=">=0.10.2", source="weights plus kv-cache-memory-bytes")
def bytes_exceed(of: Deployment) -> Iterator[Finding]:
    """Weights and the KV cache that is asked for exceed the memory."""
    figures, asked = of.sized, of.number("kv-cache-memory-bytes")
    if figures is None or not asked or not on_gpu(of):
        return
    need, total = asked + figures.weight_bytes, figures.hardware.memory_bytes
    if need > total:
        yield Finding(
            of.key("kv-cache-memory-bytes"),
            f"{gib(asked)} of KV cache and {gib(figures.weight_bytes)} of weights are {gib(need)}",
            f"one {figures.hardware.title} has {gib(total)}",
            drop(of.key("kv-cache-memory-bytes")),
        )


@rule("memory.offload-unified", WARNING, source="unified memory: both sides are one pool")
def offload_unified(of: Deployment) -> Iterator[Finding]:
    """Weights or cache are offloaded to the CPU's memory, which is the GPU's."""
    for flag in ("cpu-offload-gb", "kv-offloading-size", "swap-space"):
        if of.unified and of.has(flag) and of.number(flag):
            key = of.key(flag)
            yield Finding(
                key, f"{flag} on unified memory", "it copies within one memory and saves nothing", drop(key)
            )


@rule("memory.cpu-cache", WARNING, source="vLLM's CPU page")
def cpu_cache(of: Deployment) -> Iterator[Finding]:
    """On a CPU the KV cache has the size of a default unless it is set."""
    if of.hardware is None or of.hardware.vendor != "cpu" or of.simulated:
        return
    space = of.env("VLLM_CPU_KVCACHE_SPACE")
    if space is None and not of.has("kv-cache-memory-bytes"):
        yield Finding(
            "server.env.VLLM_CPU_KVCACHE_SPACE",
            "VLLM_CPU_KVCACHE_SPACE is not set",
            "the cache takes a default of the version, 4 GiB or a share of the memory",
            put("server.env.VLLM_CPU_KVCACHE_SPACE", "4"),
        )


@rule("memory.cpu-exceeds", ERROR, source="weights plus VLLM_CPU_KVCACHE_SPACE")
def cpu_exceeds(of: Deployment) -> Iterator[Finding]:
    """On a CPU, weights and KV cache exceed the memory."""
    figures = of.figures
    if figures is None or figures.hardware.vendor != "cpu" or not of.env("VLLM_CPU_KVCACHE_SPACE"):
        return
    need, total = figures.kv_cache_bytes + figures.weight_bytes, figures.hardware.memory_bytes
    if need > total:
        yield Finding(
            "server.env.VLLM_CPU_KVCACHE_SPACE",
            f"{gib(figures.kv_cache_bytes)} of cache and {gib(figures.weight_bytes)} of weights",
            f"the machine has {gib(total)}",
        )
