"""The engine: queues, batches continuously, computes in virtual time and hands out tokens.

A step prefills and decodes what fits, takes the time that the pace says, and ends with the tokens of all its
sequences handed out at once. Which tokens come is known beforehand; the engine decides when.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING

from pytest_vllm.sim.engine.drafts import Drafts
from pytest_vllm.sim.engine.scheduler import Plan, Scheduler
from pytest_vllm.sim.engine.stats import Stats

if TYPE_CHECKING:
    from collections import deque

    from pytest_vllm.sim.boot.capacity import Capacity
    from pytest_vllm.sim.clock import Clock
    from pytest_vllm.sim.defects.hooks import Hooks
    from pytest_vllm.sim.engine.blocks import BlockPool
    from pytest_vllm.sim.engine.sequence import Sequence


#: Seconds that a busy machine may be behind before its delay counts as the server's own, where the server's
#: seconds are the wall's. Where they pass faster the engine's clock is its own, however late it is shown.
SLACK = 0.05


class EngineDead(Exception):  # noqa: N818 - a state
    """The engine core has died: nothing will be computed any more."""


class Engine:
    """Scheduler, clock and counters of one simulated server."""

    def __init__(self, capacity: Capacity, clock: Clock, hooks: Hooks) -> None:
        """Nothing runs yet."""
        self.capacity, self.clock, self.hooks = capacity, clock, hooks
        self.stats = Stats.of(capacity.max_model_len)
        self.scheduler = Scheduler(capacity, hooks, self.stats)
        self.drafts = Drafts(capacity.drafted, capacity.drafts_as_matched)
        self.asleep = False
        #: Whether the weights were thrown away, and not loaded again since.
        self.bare = False
        self.paused = False
        self.dead = False
        self.steps = 0
        self._plan: Plan = []
        self._timer: asyncio.TimerHandle | asyncio.Handle | None = None
        self._end = self._came = -math.inf
        self._held = False
        self._slack = SLACK if clock.speed == 1 else math.inf

    @property
    def waiting(self) -> deque[Sequence]:
        """Queued sequences."""
        return self.scheduler.waiting

    @property
    def running(self) -> list[Sequence]:
        """Sequences in the batch."""
        return self.scheduler.running

    @property
    def pool(self) -> BlockPool:
        """The KV blocks."""
        return self.scheduler.pool

    def submit(self, sequence: Sequence) -> None:
        """Queue a sequence. Raises EngineDead."""
        if self.dead:
            raise EngineDead
        # what reading a request takes here is not what it takes a server
        sequence.arrived = self._came = self._now()
        self.scheduler.queue(sequence)
        self.wake()

    def abort(self, sequence: Sequence) -> None:
        """Take a sequence out at once and free what it holds; nothing is counted as finished."""
        if sequence.ended or self.hooks.run("cancel", False, sequence):
            return
        sequence.ended = "abort"
        self.scheduler.drop(sequence)

    def wake(self) -> None:
        """Begin stepping if there is work and nothing holds the engine up."""
        held_up = self.dead or self.asleep or self.paused
        if self._held and not held_up:
            self._end, self._came = -math.inf, self.clock.now()
        self._held = held_up
        if self._timer is None and not held_up and (self.waiting or self.running):
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
        # a busy machine's delays are made up for; a request is never served before it came, and by an idle
        # engine as soon as it came
        now, due = self.clock.now(), max(self._end, self._came)
        self._plan = self.scheduler.plan(due if now - due < self._slack else now)
        if not self._plan:
            return
        prefill = decoding = context = 0
        for sequence, count in self._plan:
            context += sequence.computed
            if sequence.computed < len(sequence.prompt):
                prefill += count
            else:
                decoding += 1
        seconds = self.hooks.run(
            "step", self.capacity.pace.step(decoding * (1 + self.drafts.next), prefill, context), self
        )
        self.stats.observe("iteration_tokens_total", prefill + decoding)
        self._end = (due if now - due < max(seconds, self._slack) else now) + seconds
        self._timer = asyncio.get_running_loop().call_at(self.clock.real(self._end), self._finish)

    def _now(self) -> float:
        """The moment by the engine's clock: where that is its own, not after the step that it is at."""
        now = self.clock.now()
        return min(now, self._end) if math.isinf(self._slack) and self._end > -math.inf else now

    def _finish(self) -> None:
        self._timer = None
        self.steps += 1
        now = self._end
        gaps: dict[float, int] = {}
        plan, self._plan = self._plan, []
        going = [(sequence, count) for sequence, count in plan if not sequence.ended]
        further = [sequence for sequence, count in going if self._advance(sequence, count, now, gaps)]
        for last, times in gaps.items():
            self.stats.gap(now - last, times)
        for sequence in further:
            sequence.listener.progressed(sequence)
        if not (self.waiting or self.running):
            self._end = -math.inf  # an idle engine begins its next step when that is asked for, not before
        self.wake()

    def _advance(self, sequence: Sequence, count: int, now: float, gaps: dict[float, int]) -> bool:
        """Whether there is something to hand out: a part of a prompt that was computed is nothing."""
        size = self.capacity.block_size
        before = sequence.computed // size
        sequence.computed += count
        if sequence.computed // size > before and self.capacity.prefix_caching:
            self.scheduler.remember(sequence)
        if sequence.computed < sequence.known:
            return False
        if not sequence.output:
            self._pool(sequence, now)
            return True
        given = 1
        if sequence.first is not None:
            given += self.drafts.right(len(sequence.output) - sequence.done - 1)
        sequence.done += given
        self.stats.counters["generation_tokens"] += given
        if sequence.first is None:
            self.stats.first_token(sequence, now)
        else:
            gaps[sequence.last] = gaps.get(sequence.last, 0) + 1
        sequence.last = now
        if sequence.done >= len(sequence.output):
            sequence.ended = sequence.finish
            self.scheduler.drop(sequence)
            self.stats.finish(sequence, sequence.finish, now)
        return True

    def _pool(self, sequence: Sequence, now: float) -> None:
        """Of a sequence that is only pooled the prompt was all."""
        self.stats.first_token(sequence, now)
        sequence.last, sequence.ended = now, sequence.finish
        self.scheduler.drop(sequence)
        self.stats.finish(sequence, sequence.finish, now)
