"""The engine: queues, batches continuously, computes in virtual time and hands out tokens.

A step prefills and decodes what fits, takes the time that the pace says, and ends with the tokens of all its
sequences handed out at once. Which tokens come is known beforehand; the engine decides when.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from pytest_vllm.sim.engine.blocks import BlockPool, block_keys
from pytest_vllm.sim.engine.stats import Stats

if TYPE_CHECKING:
    from pytest_vllm.sim.boot.capacity import Capacity
    from pytest_vllm.sim.clock import Clock
    from pytest_vllm.sim.defects.hooks import Hooks
    from pytest_vllm.sim.engine.sequence import Sequence


class EngineDead(Exception):  # noqa: N818 - a state
    """The engine core has died: nothing will be computed any more."""


class Engine:
    """Queue, running batch, cache and clock of one simulated server."""

    def __init__(self, capacity: Capacity, clock: Clock, hooks: Hooks) -> None:
        """Nothing runs yet."""
        self.capacity, self.clock, self.hooks = capacity, clock, hooks
        self.pool = BlockPool(capacity.num_blocks)
        self.stats = Stats.of(capacity.max_model_len)
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.asleep = False
        self.paused = False
        self.dead = False
        self._plan: list[tuple[Sequence, int]] = []
        self._timer: asyncio.TimerHandle | asyncio.Handle | None = None
        self._end = 0.0
        self.steps = 0

    def submit(self, sequence: Sequence) -> None:
        """Queue a sequence. Raises EngineDead."""
        if self.dead:
            raise EngineDead
        now = self.clock.now()
        sequence.queued = now
        if not sequence.arrived:
            sequence.arrived = now
        self.waiting.append(sequence)
        self.wake()

    def abort(self, sequence: Sequence) -> None:
        """Take a sequence out at once and free what it holds; nothing is counted as finished."""
        if sequence.ended or self.hooks.run("cancel", False, sequence):
            return
        sequence.ended = "abort"
        if sequence in self.running:
            self.running.remove(sequence)
            self._free(sequence)
        elif sequence in self.waiting:
            self.waiting.remove(sequence)

    def wake(self) -> None:
        """Begin stepping if there is work and nothing holds the engine up."""
        if (
            self._timer is None
            and not (self.dead or self.asleep or self.paused)
            and (self.waiting or self.running)
        ):
            self._timer = asyncio.get_running_loop().call_soon(self._begin)

    def die(self) -> None:
        """The engine core ends: whoever waits is told."""
        self.dead = True
        if self._timer:
            self._timer.cancel()
            self._timer = None
        for sequence in [*self.running, *self.waiting]:
            sequence.ended, sequence.error = "error", EngineDead()
            sequence.listener.progressed(sequence)
        self.running.clear()
        self.waiting.clear()

    def _begin(self) -> None:
        self._timer = None
        if self.dead or self.asleep or self.paused:
            return
        self._plan = self._schedule()
        if not self._plan:
            return
        prefill = sum(count for sequence, count in self._plan if sequence.computed < len(sequence.prompt))
        decoding = sum(1 for sequence, _ in self._plan if sequence.computed >= len(sequence.prompt))
        context = sum(sequence.computed for sequence, _ in self._plan)
        seconds = self.capacity.pace.step(decoding, prefill, context)
        seconds = self.hooks.run("step", seconds, self)
        self.stats.observe("iteration_tokens_total", prefill + decoding)
        loop = asyncio.get_running_loop()
        now = self.clock.now()
        start = self._end if now - self._end < seconds else now
        self._end = start + seconds
        self._timer = loop.call_at(self.clock.real(self._end), self._finish)

    def _schedule(self) -> list[tuple[Sequence, int]]:
        budget = self.capacity.max_num_batched_tokens
        plan: list[tuple[Sequence, int]] = []
        for sequence in list(self.running):
            if sequence.ended:
                continue
            count = min(budget, max(1, sequence.known - sequence.computed))
            if count <= 0 or not self._room(sequence, count):
                continue
            plan.append((sequence, count))
            budget -= count
        plan = [entry for entry in plan if entry[0] in self.running] if self._preempted else plan
        self._preempted = False
        while self.waiting and budget > 0 and len(self.running) < self.capacity.max_num_seqs:
            sequence = self.waiting[0]
            count = self._admit(sequence, budget)
            if not count:
                break
            self.waiting.popleft()
            self.running.append(sequence)
            plan.append((sequence, count))
            budget -= count
        return plan

    _preempted = False

    def _admit(self, sequence: Sequence, budget: int) -> int:
        size = self.capacity.block_size
        if not sequence.keys and self.capacity.prefix_caching:
            sequence.keys = block_keys(sequence.prompt, size, sequence.salt)
        hits = 0
        if self.capacity.prefix_caching and not sequence.skip_cache:
            usable = sequence.keys[: (sequence.known - 1) // size]
            hits = self.hooks.run("cache_hits", self.pool.known_prefix(usable), sequence)
        left = sequence.known - hits * size
        count = min(budget, left)
        if count < left and not self.capacity.chunked_prefill:
            return 0
        idle = sum(1 for key in sequence.keys[:hits] if key in self.pool.idle)
        need = -(-(hits * size + count) // size) - hits
        if need > self.pool.available - idle:
            return 0
        self.pool.pin(sequence.keys[:hits])
        self.pool.take(need)
        sequence.held, sequence.plain = list(sequence.keys[:hits]), need
        sequence.computed = hits * size
        if sequence.cached < 0:
            self._first_schedule(sequence, hits * size)
        return count

    def _first_schedule(self, sequence: Sequence, cached: int) -> None:
        sequence.cached = cached
        sequence.scheduled = self.clock.now()
        if self.capacity.prefix_caching and not sequence.skip_cache:
            self.stats.counters["prefix_cache_queries"] += len(sequence.prompt)
            self.stats.counters["prefix_cache_hits"] += cached

    def _room(self, sequence: Sequence, count: int) -> bool:
        need = -(-(sequence.computed + count) // self.capacity.block_size) - sequence.blocks
        if need <= 0 or self.pool.take(need):
            sequence.plain += max(0, need)
            return True
        while self.running:
            victim = self.running[-1]
            self._preempt(victim)
            if victim is sequence:
                return False
            if self.pool.take(need):
                sequence.plain += need
                return True
        return False

    def _preempt(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self._free(sequence)
        sequence.computed = 0
        sequence.keys = []
        sequence.preemptions += 1
        self._preempted = True
        self.stats.counters["num_preemptions"] += 1
        self.waiting.appendleft(sequence)

    def _free(self, sequence: Sequence) -> None:
        self.pool.release(sequence.held, sequence.plain)
        sequence.held, sequence.plain = [], 0

    def _finish(self) -> None:
        self._timer = None
        if self.dead:
            return
        self.steps += 1
        now = self.clock.now()
        gaps: dict[float, int] = {}
        ended: list[Sequence] = []
        tokens = 0
        size = self.capacity.block_size
        for sequence, count in self._plan:
            if sequence.ended:
                continue
            before = sequence.computed // size
            sequence.computed += count
            if self.capacity.prefix_caching and sequence.computed // size > before:
                self._remember(sequence)
            if sequence.computed < sequence.known:
                continue
            given = min(sequence.stride, len(sequence.output) - sequence.done)
            sequence.done += given
            tokens += given
            if sequence.first is None:
                self.stats.first_token(sequence, now)
            else:
                gaps[sequence.last] = gaps.get(sequence.last, 0) + 1
            sequence.last = now
            if sequence.done >= len(sequence.output):
                ended.append(sequence)
        self.stats.counters["generation_tokens"] += tokens
        for last, times in gaps.items():
            self.stats.gap(now - last, times)
        for sequence in ended:
            sequence.ended = sequence.finish
            self.running.remove(sequence)
            self._free(sequence)
            self.stats.finish(sequence, sequence.finish, now)
        plan, self._plan = self._plan, []
        for sequence, _ in plan:
            if sequence.ended != "abort":
                sequence.listener.progressed(sequence)
        self.wake()

    def _remember(self, sequence: Sequence) -> None:
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
