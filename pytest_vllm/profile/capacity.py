"""How many tokens a KV cache of a given size holds, as vLLM shares it out among kinds of layers.

Facts of `vllm/v1/core/kv_cache_utils.py`: layers of one kind form groups of equal size, every group has
blocks of the same bytes, and all groups draw on one pool. A recurrent state fills one block, so the blocks of
attention grow until they are as large. The logged size is the concurrency times max-model-len.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.profile.caches import CacheLayers

#: Blocks of attention beside recurrent states are multiples of what the kernels take.
ALIGNED, ALIGNED_MLA = 16, 64
#: Groups are as large as the smallest kind, unless the largest is not much larger.
SIMILAR = 1.5


@dataclass(frozen=True)
class Serving:
    """What decides how a cache is shared out.

    Args:
        split: tensor-parallel GPUs.
        stages: pipeline-parallel stages; the one with the most layers counts.
        dtype: of the KV cache.
        block: tokens per block that were asked for.
        length: max-model-len.
        in_flight: tokens that are scheduled at once.
        drafted: tokens that are drafted.
        caching: whether prefixes are cached, for which a state needs a second block.
        by_length: whether the size is logged as concurrency * max-model-len, else as blocks / groups.
        shared: GPUs that each hold a part of every sequence's tokens (context parallelism).
    """

    split: int = 1
    stages: int = 1
    dtype: str = "auto"
    block: int = 16
    length: int = 4096
    in_flight: int = 2048
    drafted: int = 0
    caching: bool = True
    by_length: bool = True
    shared: int = 1


@dataclass(frozen=True)
class Pool:
    """A KV cache on one GPU.

    Args:
        block_bytes: bytes of one block of the pool, over the layers that share it.
        block: tokens of such a block in a layer of attention; those of all GPUs that share a sequence.
        per_request: blocks that one sequence of max-model-len takes.
        groups: groups that draw on the pool.
    """

    block_bytes: float
    block: int
    per_request: int
    groups: int

    @property
    def request_bytes(self) -> float:
        """Bytes that one sequence of max-model-len needs; vLLM refuses to start with less."""
        return self.block_bytes * self.per_request

    def requests(self, available: float) -> float:
        """Sequences of max-model-len that whole blocks hold, for so many bytes on each GPU."""
        return available // self.block_bytes / self.per_request

    def tokens(self, available: float, serving: Serving) -> int:
        """Tokens as vLLM logs them, for so many bytes on each GPU."""
        blocks = int(available // self.block_bytes)
        if self.groups == 1 or not serving.by_length:
            return blocks // self.groups * self.block
        return int(blocks / self.per_request * serving.length)


def pool(caches: Sequence[CacheLayers], serving: Serving) -> Pool | None:
    """How the cache is shared out; None where a kind is not understood. No layers with a cache: None."""
    if not caches or any(one.kind == "unknown" for one in caches):
        return None
    if all(one.grows for one in caches):
        each = sum(_layers(one, serving) * one.token_bytes(serving.dtype, serving.split) for one in caches)
        block = serving.block * serving.shared
        return Pool(each * serving.block, block, ceil(serving.length / block), 1)
    return _mixed(list(caches), serving)


def _layers(one: CacheLayers, serving: Serving) -> int:
    return ceil(one.layers / serving.stages)


def _mixed(caches: list[CacheLayers], serving: Serving) -> Pool | None:
    attending = [one for one in caches if one.kind != "state"]
    costs = [one.token_bytes(serving.dtype, serving.split) for one in attending]
    if serving.shared > 1 or not attending or any(max(costs) % cost for cost in costs):
        return None
    block = _block(caches, min(costs), serving) * round(max(costs) / min(costs))
    page = block * min(costs)
    counts = [_layers(one, serving) for one in caches]
    size = max(counts) if max(counts) < SIMILAR * min(counts) else min(counts)
    request = groups = 0
    for one, count in zip(caches, counts, strict=True):
        times = ceil(count / size)
        groups += times
        request += times * _blocks(one, page, serving)
    smallest = min(round(page / cost) for cost in costs)
    return Pool(page * size, smallest, request, groups)


def _block(caches: list[CacheLayers], cost: float, serving: Serving) -> int:
    """Tokens per block of attention: as large as the largest state, in steps that the kernels take."""
    states = [one.state_bytes / serving.split for one in caches if one.kind == "state"]
    if not states:
        return serving.block
    latent = any(one.kind in ("mla", "sparse-mla") for one in caches)
    step = ALIGNED_MLA if latent else max(ALIGNED, serving.block)
    return max(serving.block, ceil(max(states) / cost / step) * step)


def _blocks(one: CacheLayers, page: float, serving: Serving) -> int:
    """Blocks that one sequence takes of a group."""
    if one.kind == "state":
        return (2 if serving.caching else 1) + serving.drafted
    block = round(page / one.token_bytes(serving.dtype, serving.split))
    held = ceil(one.held_tokens(serving.length, serving.in_flight) / block)
    return held + 1 if one.kind == "window" else held
