"""Who computes in the next step: running sequences first, then waiting ones, while tokens and blocks last."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from pytest_vllm.sim.engine.blocks import BlockPool, block_keys

if TYPE_CHECKING:
    from pytest_vllm.sim.boot.capacity import Capacity
    from pytest_vllm.sim.defects.hooks import Hooks
    from pytest_vllm.sim.engine.blocks import Key
    from pytest_vllm.sim.engine.sequence import Sequence
    from pytest_vllm.sim.engine.stats import Stats

Plan = list[tuple["Sequence", int]]


class Scheduler:
    """The queue, the running batch and the blocks they hold."""

    def __init__(self, capacity: Capacity, hooks: Hooks, stats: Stats) -> None:
        """Nothing runs yet."""
        self.capacity, self.hooks, self.stats = capacity, hooks, stats
        self.pool = BlockPool(capacity.num_blocks)
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        #: Ends of chunks in the cache outside; nothing is thrown out of it.
        self.outside: set[Key] = set()

    def queue(self, sequence: Sequence) -> None:
        """Put a sequence last, or before those that are less urgent where priorities count."""
        self.waiting.append(sequence)
        if self.capacity.by_priority:
            self.waiting = deque(sorted(self.waiting, key=_urgency))

    def plan(self, now: float) -> Plan:
        """Sequences of the step that begins now, with the tokens that each computes."""
        budget = self.capacity.max_num_batched_tokens
        plan: Plan = []
        preempted = False
        for sequence in list(self.running):
            if sequence not in self.running:
                continue
            count = min(budget, max(1, sequence.known - sequence.computed))
            if count <= 0:
                continue
            before = len(self.running)
            if self._grow(sequence, count):
                plan.append((sequence, count))
                budget -= count
            preempted = preempted or len(self.running) < before
        if preempted:
            return [entry for entry in plan if entry[0] in self.running]
        while self.waiting and budget > 0 and len(self.running) < self.capacity.max_num_seqs:
            count = self._admit(self.waiting[0], budget, now)
            if not count:
                break
            sequence = self.waiting.popleft()
            self.running.append(sequence)
            plan.append((sequence, count))
            budget -= count
        return plan

    def drop(self, sequence: Sequence) -> None:
        """Take a sequence out, wherever it is, and free what it holds."""
        if sequence in self.running:
            self.running.remove(sequence)
            self.free(sequence)
        elif sequence in self.waiting:
            self.waiting.remove(sequence)

    def free(self, sequence: Sequence) -> None:
        """Give a sequence's blocks back; full ones stay findable."""
        if self.hooks.run("freed", True, sequence):
            self.pool.release(sequence.held, sequence.plain)
        sequence.held, sequence.plain = [], 0

    def remember(self, sequence: Sequence) -> None:
        """Make the blocks findable that have become full."""
        size = self.capacity.block_size
        full = sequence.computed // size
        while len(sequence.held) < full and sequence.plain:
            number = len(sequence.held)
            if number >= len(sequence.keys):
                ids = [sequence.token(at) for at in range(number * size, (number + 1) * size)]
                previous = sequence.keys[number - 1] if number else None
                sequence.keys += block_keys(ids, size, sequence.salt, previous)
            key = sequence.keys[number]
            if not self.pool.remember(key):
                self.pool.pin([key])
                self.pool.blank += 1
            sequence.held.append(key)
            sequence.plain -= 1
            if self._chunk and (number + 1) % self._chunk == 0:
                self.outside.add(key)

    def _admit(self, sequence: Sequence, budget: int, now: float) -> int:
        size, caching = self.capacity.block_size, self.capacity.prefix_caching
        if not sequence.keys and caching:
            sequence.keys = block_keys(sequence.prompt, size, sequence.salt)
        hits = 0
        if caching and not sequence.skip_cache:
            usable = sequence.keys[: (sequence.known - 1) // size]
            hits = self.hooks.run("cache_hits", self.pool.known_prefix(usable), sequence)
        loaded = self._loaded(sequence, hits) if caching and not sequence.skip_cache else 0
        left = sequence.known - (hits + loaded) * size
        count = min(budget, left)
        if count < left and not self.capacity.chunked_prefill:
            return 0
        idle = sum(1 for key in sequence.keys[:hits] if key in self.pool.idle)
        need = -(-((hits + loaded) * size + count) // size) - hits
        if need > self.pool.available - idle:
            return 0
        self.pool.pin(sequence.keys[:hits])
        self.pool.take(need)
        sequence.held, sequence.plain = list(sequence.keys[:hits]), need
        sequence.computed = (hits + loaded) * size
        if loaded:
            self.remember(sequence)
        if sequence.cached < 0:
            self._first_time(sequence, hits * size, now, loaded * size)
        return count

    @property
    def _chunk(self) -> int:
        """Blocks of a chunk in the cache outside; 0 without one."""
        return (
            max(1, self.capacity.external_chunk // self.capacity.block_size)
            if self.capacity.external_chunk
            else 0
        )

    def _loaded(self, sequence: Sequence, hits: int) -> int:
        """Blocks that come from the cache outside, after those that are here: whole chunks of it."""
        if not self._chunk:
            return 0
        usable = (sequence.known - 1) // self.capacity.block_size
        at = hits
        while (end := (at // self._chunk + 1) * self._chunk) <= usable and sequence.keys[
            end - 1
        ] in self.outside:
            at = end
        loaded: int = self.hooks.run("fetched", at - hits, sequence)
        return loaded

    def _first_time(self, sequence: Sequence, cached: int, now: float, loaded: int) -> None:
        sequence.cached = cached + loaded
        sequence.scheduled = now
        if self.capacity.prefix_caching and not sequence.skip_cache:
            self.stats.counters["prefix_cache_queries"] += len(sequence.prompt)
            self.stats.counters["prefix_cache_hits"] += cached
            if self._chunk:
                self.stats.counters["external_prefix_cache_queries"] += len(sequence.prompt) - cached
                self.stats.counters["external_prefix_cache_hits"] += loaded

    def _grow(self, sequence: Sequence, count: int) -> bool:
        need = -(-(sequence.computed + count) // self.capacity.block_size) - sequence.blocks
        if need <= 0:
            return True
        while not self.pool.take(need):
            victim = max(self.running, key=_urgency) if self.capacity.by_priority else self.running[-1]
            self._preempt(victim)
            if victim is sequence:
                return False
        sequence.plain += need
        return True

    def _preempt(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self.free(sequence)
        sequence.computed = 0
        sequence.keys = []
        sequence.preemptions += 1
        self.stats.counters["num_preemptions"] += 1
        self.waiting.appendleft(sequence)


def _urgency(sequence: Sequence) -> tuple[int, float]:
    return sequence.priority, sequence.arrived
