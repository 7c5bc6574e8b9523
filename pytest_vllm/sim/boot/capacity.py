"""How much fits and how long steps take: the simulated server's memory and speed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.boot.kind import kind_of
from pytest_vllm.sim.boot.machine import GIB, Hardware, Model

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm.sim.arguments import Arguments
    from pytest_vllm.sim.versions import Version

#: Parts of the peak that real servers reach.
DENSE, SPARSE, CPU, MFU = 0.8, 0.7, 0.35, 0.6
HYBRID_BLOCK, HYBRID_LOSS = 528, 4
LMCACHE_CHUNK = 256


@dataclass
class Pace:
    """Time of one engine step in virtual seconds.

    A step takes the longer of reading (weights, and every token of KV cache that its sequences hold) and
    computing (`per_token` for every token of the batch), plus `overhead`.
    """

    shared: float = 0.0001
    all_experts: float = 0.0
    activity: float = 1.0
    per_context_token: float = 0.0
    per_token: float = 0.000001
    overhead: float = 0.001

    def step(self, decoding: int, prefill_tokens: int, context_tokens: int) -> float:
        """Seconds of a step that decodes `decoding` sequences and prefills `prefill_tokens`."""
        tokens = decoding + prefill_tokens
        touched = 1 - (1 - self.activity) ** max(1, tokens) if self.all_experts else 0.0
        reading = self.shared + self.all_experts * touched + self.per_context_token * context_tokens
        return max(reading, self.per_token * tokens) + self.overhead


@dataclass
class Capacity:
    """Limits of the engine; memory in bytes. `num_blocks` includes the one that vLLM keeps to itself.

    `external_chunk` are tokens of a chunk in a cache outside, 0 without one.
    """

    max_model_len: int = 4096
    block_size: int = 16
    num_blocks: int = 4096
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 2048
    prefix_caching: bool = True
    by_priority: bool = False
    external_chunk: int = 0
    drafted: int = 0
    drafts_as_matched: bool = False
    chunked_prefill: bool = True
    kv_memory: float = 2.0 * GIB
    kv_bytes: float = 2048.0
    activation: float = 0.0
    graphs: float = 0.0
    pace: Pace = field(default_factory=Pace)

    @property
    def kv_tokens(self) -> int:
        """Tokens that the KV cache holds."""
        return self.num_blocks * self.block_size

    @property
    def concurrency(self) -> float:
        """How many requests of full length fit at once."""
        return self.kv_tokens / (-(-self.max_model_len // self.block_size) * self.block_size)


def capacity_of(
    args: Arguments, version: Version, machine: Hardware, shape: Model, environ: Mapping[str, str]
) -> Capacity:
    """Work out memory and speed from arguments, hardware and model."""
    tokens, seqs = batch_limits(args, version, machine)
    given = args.values.get("max_model_len")
    length = given if isinstance(given, int) and given > 0 else shape.context
    kind = kind_of(args, shape)
    chunked = args.values.get("enable_chunked_prefill") is not False or version < "0.11.1"
    chunked = chunked and not kind.encoder
    if not chunked and "max_num_batched_tokens" not in args.given:
        tokens = max(tokens, length)
    degree = args.get("tensor_parallel_size", 1) * args.get("pipeline_parallel_size", 1)
    element = 1.0 if str(args.get("kv_cache_dtype", "auto")).startswith(("fp8", "int8", "nvfp4")) else 2.0
    kv_bytes = shape.kv_bytes(element) * (HYBRID_LOSS if shape.hybrid else 1)
    activation = tokens * (shape.intermediate * 2 + shape.hidden * 8) * 2 / degree
    graphs = (
        0.0 if args.get("enforce_eager") or machine.is_cpu or version < "0.20.0" else 0.005 * machine.memory
    )
    made = Capacity(
        max_model_len=length,
        block_size=block_size(args, machine, shape),
        max_num_seqs=seqs,
        max_num_batched_tokens=tokens,
        prefix_caching=caches(args, version, shape) and not kind.encoder,
        by_priority=args.get("scheduling_policy") == "priority",
        external_chunk=external_chunk(args, machine, shape),
        drafted=drafted_tokens(args),
        drafts_as_matched=drafts(args).get("method") == "suffix",
        chunked_prefill=chunked,
        kv_bytes=kv_bytes,
        activation=activation,
        graphs=graphs,
        pace=pace_of(args, machine, shape, degree, element),
    )
    space = environ.get("VLLM_CPU_KVCACHE_SPACE")
    made.kv_memory = (
        (float(space or 4) * GIB) if machine.is_cpu else kv_memory(args, version, machine, shape, made)
    )
    blocks = int(made.kv_memory // (kv_bytes * made.block_size))
    made.num_blocks = args.get("num_gpu_blocks_override") or max(0, blocks)
    if given in ("auto", "-1"):
        made.max_model_len = max(1, min(shape.context, made.kv_tokens))
    return made


def kv_memory(args: Arguments, version: Version, machine: Hardware, shape: Model, made: Capacity) -> float:
    """Bytes that remain for the KV cache, over all devices."""
    devices = int(args.get("tensor_parallel_size", 1) * args.get("pipeline_parallel_size", 1))
    explicit = args.values.get("kv_cache_memory_bytes")
    if explicit:
        return float(explicit) * devices
    share = float(args.get("gpu_memory_utilization", 0.92 if version >= "0.20.0" else 0.9))
    other = min(0.6 * GIB, 0.03 * machine.memory)
    return (machine.memory * share - other - made.activation - made.graphs) * devices - shape.weights


def external_chunk(args: Arguments, machine: Hardware, shape: Model) -> int:
    """Tokens that a cache outside keeps together: 256 in LMCache unless told otherwise, else a block."""
    config = args.get("kv_transfer_config")
    connector = str(config.get("kv_connector", "")) if isinstance(config, dict) else ""
    if connector.startswith("LMCache"):
        return LMCACHE_CHUNK
    return block_size(args, machine, shape) if connector or args.get("kv_offloading_size") else 0


def drafted_tokens(args: Arguments) -> int:
    """Tokens that are drafted per step; a method that brings its own number drafts one."""
    config = drafts(args)
    return int(config.get("num_speculative_tokens") or 1) if config else 0


def drafts(args: Arguments) -> dict[str, Any]:
    """What is said of speculative decoding; empty where there is none."""
    config = args.values.get("speculative_config")
    return config if isinstance(config, dict) else {}


def batch_limits(args: Arguments, version: Version, machine: Hardware) -> tuple[int, int]:
    """(tokens per step, sequences): as given, or the defaults of this GPU class and version."""
    big = machine.memory >= 70 * GIB and machine.family != "a100"
    if machine.family == "gb10" and version >= "0.33.0":
        big = False
    huge = machine.memory >= 160 * GIB and version >= "0.28.0"
    tokens = 16384 if huge else 8192 if big else 2048
    seqs = 1024 if (big or huge) and version >= "0.9.2" else 256
    if machine.is_cpu:
        tokens, seqs = 2048, 128
    seqs = args.get("max_num_seqs", seqs)
    return args.get("max_num_batched_tokens", tokens), seqs


def block_size(args: Arguments, machine: Hardware, shape: Model) -> int:
    """Tokens per block: 16, 128 on CPUs, and what the recurrent state needs on hybrid models."""
    if shape.hybrid:
        return HYBRID_BLOCK
    given = args.values.get("block_size")
    return int(given) if given else 128 if machine.is_cpu else 16


def caches(args: Arguments, version: Version, shape: Model) -> bool:
    """Whether prefixes are cached: on by default, on hybrid models from 0.28."""
    given: Any = args.values.get("enable_prefix_caching")
    if shape.hybrid:
        return bool(given) if version >= "0.11.1" and given is not None else version >= "0.28.0"
    return given is not False


def pace_of(args: Arguments, machine: Hardware, shape: Model, degree: int, element: float) -> Pace:
    """Times from the roofline: memory bandwidth, arithmetic, overhead per step."""
    reach = CPU if machine.is_cpu else SPARSE if shape.experts else DENSE
    bandwidth = machine.bandwidth * degree * reach
    activity = shape.experts_per_token / shape.experts if shape.experts else 1.0
    shared = shape.read - shape.expert_bytes * activity
    overhead = 0.001 if machine.vendor == "none" else 0.0015
    return Pace(
        shared=shared / bandwidth,
        all_experts=shape.expert_bytes / bandwidth,
        activity=activity,
        per_context_token=shape.kv_bytes(element) / bandwidth,
        per_token=2 * shape.active / (machine.peak(shape.dtype) * degree * MFU),
        overhead=overhead * (5 if args.get("enforce_eager") and machine.vendor != "none" else 1),
    )
