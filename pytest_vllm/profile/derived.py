"""What hardware and model allow: ceilings for speed and memory, so that a profile needs no hand-set floor.

A ceiling is a bound that no server beats without speculation: the bytes that a step must read over the
memory bandwidth, or its FLOPs over the peak. Capacity is an estimate from above: weights and KV cache are
counted by kind of layer, the rest is guessed. Symbols: P parameters, B sequences, c tokens of context,
K bytes of KV cache per token, W bytes of weights that a step reads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts import batch_defaults, flags, version_of
from pytest_vllm.profile.caches import KV_BYTES, CacheLayers, as_full
from pytest_vllm.profile.capacity import Pool, Serving, pool
from pytest_vllm.profile.hardware import GIB, Hardware, load_hardware
from pytest_vllm.profile.recognised import recognised
from pytest_vllm.profile.units import Share

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.profile.limits import Bound
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.profile.modelfile import ModelFile
    from pytest_vllm.profile.units import Load

#: Blocks of the KV cache: vLLM's default on GPUs and on the CPU.
BLOCK = {"cpu": 128}
#: Memory beside weights, activations and KV cache: CUDA context, graphs, workspaces. With the activations
#: below it gives the 2 to 4 GB seen on an RTX 5090, an H100 and a GB10.
FIXED_OVERHEAD = 1.5e9
#: Context that an aggregate ceiling is given for, prompt and answer together.
CONTEXT = 1024


@dataclass(frozen=True)
class Figures:
    """Derived figures of a profile.

    Args:
        profile: what they are about.
        hardware: one device; tensor-parallel-size of them work together.
        model: the checkpoint.
        draft: the model that drafts for it; None without one, or where it is not known.
    """

    profile: Profile
    hardware: Hardware
    model: ModelFile
    draft: ModelFile | None = None

    @property
    def args(self) -> dict[str, Any]:
        """The serve arguments."""
        return self.profile.server.args

    @property
    def devices(self) -> int:
        """Devices that share each step."""
        return int(self.args.get("tensor-parallel-size", 1))

    @property
    def max_num_seqs(self) -> int:
        """Sequences in a batch: as asked for, else vLLM's default for the version and the device."""
        return int(self.args.get("max-num-seqs") or self._defaults[1])

    @property
    def max_num_batched_tokens(self) -> int:
        """Tokens in a step: as asked for, else vLLM's default for the version and the device."""
        return int(self.args.get("max-num-batched-tokens") or self._defaults[0])

    @cached_property
    def _defaults(self) -> tuple[int, int]:
        version = self.profile.server.vllm_version
        return batch_defaults(version, memory_gib=self.hardware.memory_gib, name=self.hardware.family)

    @property
    def block_size(self) -> int:
        """Tokens per KV cache block."""
        asked = self.args.get("block-size") or self.profile.expect.block_size
        return int(asked or BLOCK.get(self.hardware.family, 16))

    @property
    def stages(self) -> int:
        """Pipeline-parallel stages."""
        return int(self.args.get("pipeline-parallel-size", 1))

    @property
    def sharing(self) -> int:
        """Devices that share the routed experts: those of all data-parallel replicas."""
        return self.devices * int(self.args.get("data-parallel-size", 1))

    @property
    def weight_bytes(self) -> float:
        """Bytes of weights on each device: the model's, adapters' and what drafts.

        Tensor parallelism splits layers, pipeline parallelism shares them out; data-parallel replicas hold
        routed experts together and the rest each.
        """
        split = self.devices * self.stages
        own = (self.model.weights - self.model.expert_bytes + self._repeated) / split
        own *= 2 if self._wide else 1
        experts = self.model.expert_bytes * self._padding / (self.sharing * self.stages)
        return own + experts + self._adapters + self._drafting

    @property
    def _padding(self) -> float:
        """How much larger experts in MXFP4 are held than stored: kernels take whole tiles of 256 by 128."""
        model, kind = self.model, self.model.expert_quantization or self.model.quantization
        stored = 3 * model.layers * model.experts * model.hidden * model.intermediate
        if kind != "mxfp4" or not model.expert_params or abs(stored / model.expert_params - 1) > 0.02:
            return 1.0
        width = model.intermediate / (1 if self.args.get("enable-expert-parallel") else self.devices)
        return _tiles(model.hidden, 256) * _tiles(width, 128) / (model.hidden * width)

    @property
    def _repeated(self) -> float:
        """Bytes that are held more than once: keys' and values' projections of heads that TP cannot split."""
        model, split = self.model, self.devices
        if split <= model.kv_heads or any(not one.split for one in model.cache_layers):
            return 0.0
        growing = model.attention_layers or model.layers
        return 2.0 * 2 * growing * model.hidden * model.head_dim * (split - model.kv_heads)

    @property
    def _adapters(self) -> float:
        """Bytes of LoRA slots on each device: rank * (in + out) of every linear layer, 16 bits."""
        if not self.args.get("enable-lora"):
            return 0.0
        rank, slots = int(self.args.get("max-lora-rank", 16)), int(self.args.get("max-loras", 1))
        model = self.model
        asked, kept = model.heads * model.head_dim, model.kv_heads * model.head_dim
        wide = 2 * (model.hidden + asked) + 2 * (model.hidden + kept)
        if not model.experts:
            wide += 3 * (model.hidden + model.intermediate)
        return 2.0 * slots * rank * model.layers * wide / (self.devices * self.stages)

    @property
    def speculation(self) -> dict[str, Any]:
        """`speculative-config` as a table; empty without speculation, or where it is not one."""
        given = self.args.get("speculative-config")
        return (
            {str(key).replace("-", "_"): value for key, value in given.items()}
            if isinstance(given, dict)
            else {}
        )

    @property
    def drafted(self) -> int:
        """Tokens that are drafted at once."""
        given = self.speculation.get("num_speculative_tokens", 0)
        return given if isinstance(given, int) else 0

    @property
    def _own_draft(self) -> bool:
        """Whether the checkpoint's own layers draft."""
        return "mtp" in str(self.speculation.get("method", "")) and bool(self.model.drafting_params)

    @property
    def _drafting(self) -> float:
        if self.draft is not None:
            split = int(self.speculation.get("draft_tensor_parallel_size") or self.devices)
            return self.draft.weights / split
        if self._own_draft:
            return self.model.drafting_params * self.model.weights / self.model.params / self.devices
        return 0.0

    @property
    def cache_dtype(self) -> str:
        """The type of the KV cache; `auto` for types whose size is not known."""
        given = str(self.args.get("kv-cache-dtype", "auto"))
        if given in KV_BYTES and given != "auto":
            return given
        return "float32" if self._wide and self.model.cache_dtype == "auto" else self.model.cache_dtype

    @property
    def _wide(self) -> bool:
        """Whether weights, and a cache of the model's type, are held in 32 bits: `dtype = "float32"`."""
        return self.args.get("dtype") in ("float32", "float") and self.model.quantization == "none"

    @property
    def cache_layers(self) -> list[CacheLayers]:
        """Layers by kind of cache, those that draft among them."""
        found = self.model.cache_layers
        if self.draft is not None:
            found = [*found, *self.draft.cache_layers]
        elif self._own_draft and (full := next((one for one in found if one.grows), None)):
            index = found.index(full)
            more = full.model_copy(update={"layers": full.layers + 1})
            found = [*found[:index], more, *found[index + 1 :]]
        if self.args.get("disable-hybrid-kv-cache-manager") is True or self._older("0.10"):
            found = as_full(found)
        return found

    def _older(self, version: str) -> bool:
        key, bound = version_of(self.profile.server.vllm_version), version_of(version)
        return key is not None and bound is not None and key < bound

    @property
    def length(self) -> int:
        """max-model-len: as set in tokens, else the model's."""
        given = self.args.get("max-model-len")
        return given if isinstance(given, int) and given > 0 else self.model.context

    @property
    def _holding(self) -> int:
        """GPUs that each hold a part of every sequence's tokens: context parallelism."""
        given = ("decode-context-parallel-size", "prefill-context-parallel-size")
        return math.prod(int(self.args.get(flag) or 1) for flag in given)

    @cached_property
    def serving(self) -> Serving:
        """What decides how the cache is shared out."""
        asked = self.args.get("enable-prefix-caching")
        caching = not self._older("0.28") if asked is None else bool(asked)
        if self.args.get("no-enable-prefix-caching") is True:
            caching = False
        asynchronous = not (
            self.args.get("no-async-scheduling") is True or self.args.get("async-scheduling") is False
        )
        return Serving(
            split=self.devices,
            stages=self.stages,
            dtype=self.cache_dtype,
            block=self.block_size,
            length=self.length,
            in_flight=self.max_num_batched_tokens * (1 if self._older("0.21") or not asynchronous else 2),
            drafted=self.drafted,
            caching=caching,
            by_length=not self._older("0.20.1"),
            shared=self._holding,
        )

    @cached_property
    def pool(self) -> Pool | None:
        """How the KV cache is shared out; None for models without one and for kinds not understood."""
        return pool(self.cache_layers, self.serving)

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of KV cache per token over all devices, of layers that grow with the context.

        K = 2 * layers * KV heads * head width * bytes; what each device holds for itself counts for each,
        unless context parallelism shares it out.
        """
        return self.model.kv_bytes_per_token(self.cache_dtype, self.devices) // self._holding

    @property
    def utilization(self) -> float:
        """`gpu-memory-utilization`: as asked for, else the version's default."""
        default = flags(self.profile.server.vllm_version)["gpu-memory-utilization"].default
        return float(self.args.get("gpu-memory-utilization") or default)

    @property
    def activation_bytes(self) -> float:
        """Peak of the activations of one step: tokens * (2 * feed-forward + 4 * hidden) * 2 bytes."""
        width = 2 * self.model.intermediate * max(self.model.experts_per_token, 1) + 4 * self.model.hidden
        return self.max_num_batched_tokens * width * 2.0

    @property
    def kv_cache_bytes(self) -> float:
        """Memory that is left for the KV cache on all devices; not below zero.

        Utilisation * memory - weights - activations - overhead; `kv-cache-memory-bytes`, and on the CPU
        `VLLM_CPU_KVCACHE_SPACE` (GiB), are taken as they are.
        """
        if asked := self.args.get("kv-cache-memory-bytes"):
            return float(asked) * self.devices
        if self.hardware.vendor == "cpu":
            return _number(self.profile.server.env.get("VLLM_CPU_KVCACHE_SPACE")) * GIB
        spent = self.weight_bytes + self.activation_bytes + FIXED_OVERHEAD
        left = self.utilization * self.hardware.memory_bytes - spent
        return max(left, 0.0) * self.devices

    @property
    def kv_cache_tokens(self) -> int:
        """Tokens that fit, as vLLM logs them; 0 where the kind of cache is not understood."""
        return self.pool.tokens(self.kv_cache_bytes / self.devices, self.serving) if self.pool else 0

    @property
    def request_bytes(self) -> float | None:
        """Bytes that one sequence of max-model-len needs on each device; None where it is not known."""
        return self.pool.request_bytes if self.pool else None

    @property
    def full_contexts(self) -> float | None:
        """Sequences of `max-model-len` tokens that fit at once; None when the length is not set in tokens."""
        length = self.args.get("max-model-len")
        if self.pool is None or not isinstance(length, int) or length <= 0:
            return None
        return self.pool.requests(self.kv_cache_bytes / self.devices)

    def step_seconds(self, batch: int, context: int) -> float:
        """The least time of a decode step: max((W(B) + B*c*K) / bandwidth, 2*P_active*B / FLOPs)."""
        read = self.model.step_bytes(batch) + batch * context * self.kv_bytes_per_token
        memory = read / (self.hardware.bandwidth * self.devices)
        compute = (
            2 * self.model.active * batch / (self.hardware.flops(self.model.quantization) * self.devices)
        )
        return max(memory, compute)

    def decode_ceiling(self, context: int = 0) -> float:
        """Tokens per second of one stream that cannot be beaten without speculation."""
        return 1 / self.step_seconds(1, context)

    def batch(self, streams: int, context: int = CONTEXT) -> int:
        """How many of these streams run at once: no more than `max-num-seqs`, nor than the cache holds."""
        length = max(context, 1)
        held = pool(self.cache_layers, replace(self.serving, length=length, drafted=0, caching=False))
        most = min(streams, self.max_num_seqs)
        if held is None:  # no cache, or of a kind that is not understood: nothing limits them for certain
            return max(1, most)
        return max(1, min(most, int(self.kv_cache_bytes / self.devices // held.request_bytes)))

    def aggregate_ceiling(self, streams: int, context: int = CONTEXT) -> float:
        """Tokens per second of all streams together; those that do not fit wait."""
        batch = self.batch(streams, context)
        return batch / self.step_seconds(batch, context)

    def prefill_ceiling(self) -> float:
        """Prompt tokens per second: FLOPs over 2 * P_active, attention not counted."""
        return self.hardware.flops(self.model.quantization) * self.devices / (2 * self.model.active)

    def ceiling(self, limit: str, load: Load) -> float | None:
        """What hardware and model allow for a limit, in its unit; None where nothing follows."""
        context = (load.prompt or 0) + (load.output or 0)
        match limit:
            case "decode-tok-s":
                return self.decode_ceiling(context)
            case "aggregate-tok-s":
                return self.aggregate_ceiling(load.streams, context or CONTEXT)
            case "prefill-tok-s":
                return self.prefill_ceiling()
            case "kv-cache-tokens":
                return float(self.kv_cache_tokens) if self.pool else None
            case "kv-cache":
                return self.kv_cache_bytes
        return None

    def floor(self, limit: str, bound: Bound) -> float | None:
        """The least value that a bound allows, shares of a ceiling resolved; None when it sets none."""
        if not isinstance(bound.min, Share):
            return bound.min
        ceiling = self.ceiling(limit, bound.load)
        return None if ceiling is None else bound.min.fraction * ceiling

    def plain(self) -> dict[str, float | int | None]:
        """All figures by name: bytes, tokens, tokens per second."""
        return {
            "weight-bytes": round(self.weight_bytes),
            "kv-bytes-per-token": self.kv_bytes_per_token,
            "kv-cache-bytes": round(self.kv_cache_bytes),
            "kv-cache-tokens": self.kv_cache_tokens if self.pool else None,
            "full-contexts": _rounded(self.full_contexts),
            "max-num-seqs": self.max_num_seqs,
            "decode-tok-s": _rounded(self.decode_ceiling()),
            "aggregate-tok-s": _rounded(self.aggregate_ceiling(self.max_num_seqs)),
            "prefill-tok-s": _rounded(self.prefill_ceiling()),
        }


def _tiles(width: float, tile: int) -> int:
    return -(-math.ceil(width) // tile) * tile


def _number(value: object, default: float = 4.0) -> float:
    try:
        return float(str(value))
    except ValueError:
        return default


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def figures_of(profile: Profile, rootdir: Path) -> Figures | None:
    """The figures of a profile; None when it names no hardware, or no model that is known."""
    if profile.hardware is None:
        return None
    model = recognised(profile, rootdir).model
    if model is None or not model.certain:  # a speed is not judged by the figures of a likeness
        return None
    return Figures(profile, load_hardware(profile.hardware, rootdir), model)
