"""Batch sizes, chunked prefill, and what they do to hybrid models."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytest_vllm.preflight.rule import ERROR, NOTE, WARNING, Finding, drop, put, rule
from pytest_vllm.profile.caches import KV_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.preflight.deployment import Deployment

_TOKENS, _SEQS, _CHUNKED = "max-num-batched-tokens", "max-num-seqs", "enable-chunked-prefill"
_ALIGNED = 16


@rule("batching.tokens-below-seqs", ERROR, source="SchedulerConfig._verify_args")
def tokens_below_seqs(of: Deployment) -> Iterator[Finding]:
    """Fewer tokens in a step than sequences."""
    if not (of.has(_TOKENS) and of.has(_SEQS)):
        return
    tokens, seqs = of.whole(_TOKENS), of.whole(_SEQS)
    if 0 < tokens < seqs:
        yield Finding(
            of.key(_TOKENS),
            f"{_TOKENS} is {tokens:,}, {_SEQS} {seqs:,}",
            "every running sequence needs one token of each step: vLLM refuses",
            put(of.key(_TOKENS), max(2048, seqs)),
        )


@rule("batching.tokens-below-context", ERROR, source="SchedulerConfig._verify_args")
def tokens_below_context(of: Deployment) -> Iterator[Finding]:
    """Fewer tokens in a step than in a prompt, while prompts are not split."""
    length = of.max_model_len
    if not of.has(_TOKENS) or length is None or (of.at_least("0.8.0") and not of.at_least("0.11.1")):
        return
    # before 0.8, prompts were split by default above 32k of context
    whole = of.off(_CHUNKED) if of.at_least("0.8.0") else not of.on(_CHUNKED) and length <= 32768
    tokens = of.whole(_TOKENS)
    if whole and 0 < tokens < length:
        yield Finding(
            of.key(_TOKENS),
            f"{_TOKENS} is {tokens:,}, max-model-len {length:,}, chunked prefill off",
            "a prompt must fit into one step then: vLLM refuses",
            put(of.key(_TOKENS), length),
        )


#: Compute capability of the one GPU of which it was measured.
_GB10 = (12, 1)


@rule("batching.chunked-hybrid", WARNING, source="guide for Qwen3.5 on DGX Spark: 50 to 5.7 tok/s")
def chunked_hybrid(of: Deployment) -> Iterator[Finding]:
    """Chunked prefill is asked for on a model with recurrent layers, on GB10."""
    if of.on(_CHUNKED) and of.model and of.model.hybrid and of.capability == _GB10:
        yield Finding(
            of.key(_CHUNKED),
            f"{_CHUNKED} on {of.model.title}, a hybrid of attention and recurrent layers",
            "the recurrent state is carried over every chunk; 50 tok/s became 5.7 on GB10",
            drop(of.key(_CHUNKED)),
        )


def hybrid_block(of: Deployment) -> int:
    """Tokens of a cache block at least: as large as one layer's recurrent state; 0 when it is not known.

    vLLM makes attention pages as large as recurrent ones (`_align_hybrid_block_size`): state bytes over
    2 * KV heads * head width * bytes, up to the next multiple of 16. Drafts make the state larger.
    """
    model = of.model
    if model is None or not model.state_bytes or any(one.kind == "mla" for one in model.cache_layers):
        return 0
    parts = of.split
    heads = max(model.kv_heads // parts, 1)
    bytes_ = KV_BYTES.get(str(of.value("kv-cache-dtype") or "auto"), 2)
    per_token = 2 * heads * model.head_dim * bytes_
    return math.ceil(model.state_bytes / parts / per_token / _ALIGNED) * _ALIGNED


@rule("batching.block-hybrid", ERROR, versions=">=0.16", source="vllm#34445; guide for Qwen3.5, gotcha 6")
def block_hybrid(of: Deployment) -> Iterator[Finding]:
    """Fewer tokens in a step than in a cache block of a hybrid model with prefix caching."""
    caching = of.on("enable-prefix-caching") or (
        of.at_least("0.28.0") and not of.off("enable-prefix-caching")
    )
    if of.given("mamba-cache-mode") not in (None, "align"):
        return
    block = hybrid_block(of)
    figures = of.figures
    tokens = of.whole(_TOKENS) or (figures.max_num_batched_tokens if figures else 0)
    if caching and 0 < tokens < block:
        set_ = f"{_TOKENS} is {tokens:,}" if of.has(_TOKENS) else f"{_TOKENS} is {tokens:,} by default"
        title = of.model.title if of.model else ""
        certain = of.model is not None and of.model.certain
        yield Finding(
            of.key(_TOKENS),
            f"{set_}, a cache block of {title} has {block:,} tokens",
            "with prefix caching a step must hold a whole block: vLLM refuses, or the first request hangs",
            put(of.key(_TOKENS), max(4096, 1 << (block - 1).bit_length())),
            severity=ERROR if of.has(_TOKENS) and certain and not of.at_least("0.33.0") else WARNING,
        )


@rule("batching.seqs-unset", WARNING, source="guides; vllm/engine/arg_utils.py defaults by GPU")
def seqs_unset(of: Deployment) -> Iterator[Finding]:
    """The number of sequences is left to a default that the cache cannot hold."""
    figures = of.sized
    if (
        of.has(_SEQS)
        or figures is None
        or of.simulated
        or figures.hardware.vendor == "cpu"
        or of.has("config")
    ):
        return
    seqs, tokens = figures.max_num_seqs, figures.kv_cache_tokens
    if not tokens:
        return
    each, fits = tokens // seqs, max(1, tokens // 2048)
    tight = each < 1024
    power = 1 << (min(fits, seqs).bit_length() - 1)
    yield Finding(
        "server.args.max-num-seqs",
        f"{_SEQS} is not set: {of.shown_version} admits {seqs:,} sequences on this GPU, "
        f"about {tokens:,} tokens of KV cache",
        f"{each:,} tokens each under load, then sequences are preempted and computed again"
        if tight
        else "the load decides how slow each stream gets",
        put("server.args.max-num-seqs", power),
        severity=WARNING if tight else NOTE,
    )


@rule("batching.long-prefill", ERROR, versions=">=0.7.3", source="SchedulerConfig._verify_args")
def long_prefill(of: Deployment) -> Iterator[Finding]:
    """The threshold of long prompts is above the context."""
    length, threshold = of.max_model_len, of.whole("long-prefill-token-threshold")
    if length and threshold > length:
        key = of.key("long-prefill-token-threshold")
        yield Finding(
            key, f"long-prefill-token-threshold is {threshold:,}, max-model-len {length:,}", "", drop(key)
        )


@rule("batching.active-seqs", ERROR, versions=">=0.31", source="SchedulerConfig._verify_args")
def active_seqs(of: Deployment) -> Iterator[Finding]:
    """More active sequences than sequences."""
    active, seqs = of.whole("max-num-active-seqs"), of.whole(_SEQS)
    if of.has(_SEQS) and active > seqs:
        key = of.key("max-num-active-seqs")
        yield Finding(
            key, f"max-num-active-seqs is {active:,}, {_SEQS} {seqs:,}", "vLLM refuses", put(key, seqs)
        )


@rule("batching.eager", WARNING, source="DGX Spark measurements: 59 to 26 tok/s")
def eager(of: Deployment) -> Iterator[Finding]:
    """CUDA graphs and compilation are off on a GPU."""
    gpu = of.hardware is not None and of.hardware.vendor in ("nvidia", "amd")
    if of.on("enforce-eager") and gpu and not of.simulated:
        key = of.key("enforce-eager")
        yield Finding(
            key, "enforce-eager is set", "without CUDA graphs decoding is up to half as fast", drop(key)
        )


@rule("batching.async-pipeline", ERROR, versions=">=0.10,<0.15", source="vllm/config: async scheduling")
def async_pipeline(of: Deployment) -> Iterator[Finding]:
    """Asynchronous scheduling with pipeline parallelism."""
    refused = not of.at_least("0.11.1") or of.at_least("0.14.0")
    if of.on("async-scheduling") and of.whole("pipeline-parallel-size", 1) > 1 and refused:
        key = of.key("async-scheduling")
        yield Finding(key, "async-scheduling with pipeline parallelism", "this version refuses it", drop(key))


@rule("batching.multi-step", ERROR, versions="<0.10.1", source="V0's multi-step scheduling")
def multi_step(of: Deployment) -> Iterator[Finding]:
    """Multi-step scheduling with a feature that it lacks."""
    steps = of.whole("num-scheduler-steps", 1)
    if steps > 1 and (of.on("enable-lora") or of.has("speculative-model") or of.speculation):
        key = of.key("num-scheduler-steps")
        yield Finding(
            key, f"num-scheduler-steps is {steps} with LoRA or speculation", "vLLM refuses it", drop(key)
        )
