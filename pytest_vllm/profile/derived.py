"""What hardware and model allow: ceilings for speed and memory, so that a profile needs no hand-set floor.

A ceiling is a bound that no server beats without speculation: the bytes that a step must read over the
memory bandwidth, or its FLOPs over the peak. Capacity is an estimate from above: weights and KV cache are
counted, the rest is guessed. Symbols: P parameters, B sequences, c tokens of context, K bytes of KV cache per
token, W bytes of weights that a step reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts import batch_defaults, flags
from pytest_vllm.profile.hardware import GIB, Hardware, load_hardware
from pytest_vllm.profile.modelfile import ModelFile, load_model, model_of_repo
from pytest_vllm.profile.units import Share

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.profile.limits import Bound
    from pytest_vllm.profile.model import Profile
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
    """

    profile: Profile
    hardware: Hardware
    model: ModelFile

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
    def weight_bytes(self) -> float:
        """Bytes of weights on each device."""
        return self.model.weights / self.devices

    @property
    def kv_bytes_per_token(self) -> int:
        """Bytes of KV cache per token over all devices: K = 2 * layers * KV heads * head width * bytes."""
        return self.model.kv_bytes_per_token(str(self.args.get("kv-cache-dtype", "auto")))

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
        """Tokens that fit: whole blocks of K bytes per token. An upper bound for hybrid models."""
        return int(self.kv_cache_bytes // (self.kv_bytes_per_token * self.block_size)) * self.block_size

    @property
    def full_contexts(self) -> float | None:
        """Sequences of `max-model-len` tokens that fit at once; None when the length is not set in tokens."""
        length = self.args.get("max-model-len")
        return self.kv_cache_tokens / length if isinstance(length, int) and length > 0 else None

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
        return max(1, min(streams, self.max_num_seqs, self.kv_cache_tokens // max(context, 1)))

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
                return float(self.kv_cache_tokens)
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
            "kv-cache-tokens": self.kv_cache_tokens,
            "full-contexts": _rounded(self.full_contexts),
            "max-num-seqs": self.max_num_seqs,
            "decode-tok-s": _rounded(self.decode_ceiling()),
            "aggregate-tok-s": _rounded(self.aggregate_ceiling(self.max_num_seqs)),
            "prefill-tok-s": _rounded(self.prefill_ceiling()),
        }


def _number(value: object, default: float = 4.0) -> float:
    try:
        return float(str(value))
    except ValueError:
        return default


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def figures_of(profile: Profile, rootdir: Path) -> Figures | None:
    """The figures of a profile; None when it names no hardware, or no model that has a file."""
    model = profile.model or model_of_repo(profile.server.model, rootdir)
    if profile.hardware is None or model is None:
        return None
    return Figures(profile, load_hardware(profile.hardware, rootdir), load_model(model, rootdir))
