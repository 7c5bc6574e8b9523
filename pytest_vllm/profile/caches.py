"""Kinds of cache that a model's layers keep, and what one of them costs on one GPU.

The kinds are those of vLLM's KV cache specs (`vllm/v1/kv_cache_interface.py`): full attention, a sliding
window, chunks, MLA's latent, the index of sparse attention, a recurrent state, cross attention, none.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pytest_vllm.profile.table import Part

Kind = Literal["full", "window", "chunk", "mla", "sparse-mla", "index", "state", "cross", "unknown"]

#: Bytes of one element of the KV cache.
KV_BYTES: dict[str, float] = {
    "auto": 2,
    "bfloat16": 2,
    "float16": 2,
    "float32": 4,
    "fp8": 1,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp8_ds_mla": 1,
}
#: One token of sparse MLA in FP8: 512 codes, 4 scales of 4 bytes, 64 rotary elements of 2 bytes.
SPARSE_FP8 = 656


class CacheLayers(Part):
    """Layers of one model that keep the same kind of cache."""

    kind: Kind
    """What they keep."""
    layers: int = Field(gt=0)
    """How many."""
    kv_heads: int = Field(default=1, ge=1)
    """Key and value heads; 1 for MLA and for an index."""
    width: int = Field(default=0, ge=0)
    """Elements per token and head, keys and values together; bytes for an index."""
    window: int = Field(default=0, ge=0)
    """Tokens of the window, the chunk, or the encoder."""
    state_bytes: int = Field(default=0, ge=0)
    """Bytes of recurrent state per layer and sequence, over all GPUs of a tensor-parallel group."""

    @property
    def grows(self) -> bool:
        """Whether every token of the context takes room."""
        return self.kind in ("full", "mla", "sparse-mla", "index")

    @property
    def split(self) -> bool:
        """Whether tensor parallelism splits it; MLA's latent and the index are held whole on every GPU."""
        return self.kind not in ("mla", "sparse-mla", "index")

    def token_bytes(self, dtype: str, split: int) -> float:
        """Bytes per token and layer on one GPU of `split`; 0 for a state.

        Fewer KV heads than GPUs are held more than once: each GPU has at least one.
        """
        if self.kind == "state":
            return 0
        if self.kind == "index":
            return self.width
        each = KV_BYTES[dtype]
        if self.kind == "sparse-mla" and each == 1:
            return SPARSE_FP8
        heads = max(1, -(-self.kv_heads // split)) if self.split else self.kv_heads
        return heads * self.width * each

    def held_tokens(self, length: int, in_flight: int) -> int:
        """Most tokens of one sequence that are in the cache at once."""
        if self.kind == "window":
            return min(self.window - 1 + in_flight, length)
        if self.kind == "chunk":
            return min(self.window + in_flight, length)
        return self.window if self.kind == "cross" else length


def as_full(caches: list[CacheLayers]) -> list[CacheLayers]:
    """The same where vLLM keeps windows and chunks as if they were full attention."""
    return [
        one.model_copy(update={"kind": "full"}) if one.kind in ("window", "chunk") else one for one in caches
    ]
