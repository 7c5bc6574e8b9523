"""How much fits and how long steps take: the simulated server's memory and speed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Pace:
    """Time of one engine step in virtual seconds.

    A step takes the longer of reading (`base` for the weights plus `per_context_token` for every token of KV
    cache that the running sequences hold) and computing (`per_token` for every token of the batch), plus
    `overhead`.
    """

    base: float = 0.002
    per_context_token: float = 0.0
    per_token: float = 0.00001
    overhead: float = 0.0005
    per_expert_base: float = 0.0
    experts: int = 0
    active: int = 0

    def step(self, decoding: int, prefill_tokens: int, context_tokens: int) -> float:
        """Seconds of a step that decodes `decoding` sequences and prefills `prefill_tokens`."""
        weights = self.base
        if self.experts:
            touched = 1 - (1 - self.active / self.experts) ** max(1, decoding + prefill_tokens)
            weights += self.per_expert_base * self.experts * touched
        reading = weights + self.per_context_token * context_tokens
        return max(reading, self.per_token * (decoding + prefill_tokens)) + self.overhead


@dataclass
class Capacity:
    """Limits of the engine. `num_blocks` includes the one block that vLLM keeps to itself."""

    max_model_len: int = 4096
    block_size: int = 16
    num_blocks: int = 4096
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 2048
    prefix_caching: bool = True
    chunked_prefill: bool = True
    kv_gib: float = 2.0
    pace: Pace = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """A pace of its own unless given."""
        if self.pace is None:
            self.pace = Pace()

    @property
    def kv_tokens(self) -> int:
        """Tokens that the KV cache holds."""
        return self.num_blocks * self.block_size

    @property
    def concurrency(self) -> float:
        """How many requests of full length fit at once."""
        return self.kv_tokens / self.max_model_len
