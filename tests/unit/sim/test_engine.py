"""The engine: batching, blocks, prefix cache, preemption, cancellation, time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.sim.boot.capacity import Capacity, Pace
from pytest_vllm.sim.clock import Clock
from pytest_vllm.sim.defects.hooks import Hooks
from pytest_vllm.sim.engine.blocks import BlockPool, block_keys
from pytest_vllm.sim.engine.core import Engine
from pytest_vllm.sim.engine.drafts import Drafts
from pytest_vllm.sim.engine.sequence import Sequence

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.sim.client import Client

LONG = "word " * 100


class Watcher:
    """Waits for sequences to end."""

    def __init__(self) -> None:
        """None has yet."""
        self.order: list[str] = []
        self.counts: list[int] = []
        self.moved, self.ended = asyncio.Event(), asyncio.Event()
        self.wanted = 1

    def progressed(self, sequence: Sequence) -> None:
        """Note who moved."""
        self.order.append(sequence.id)
        self.counts.append(sequence.done)
        self.moved.set()
        if sequence.ended:
            self.wanted -= 1
            if not self.wanted:
                self.ended.set()


def engine_of(**limits: int) -> Engine:
    """An engine that takes no time."""
    pace = Pace(shared=1e-6, per_token=0, overhead=0)
    return Engine(Capacity(**{"num_blocks": 101, **limits}, pace=pace), Clock(), Hooks())  # type: ignore[arg-type]


def sequence_of(name: str, watcher: Watcher, prompt: int, output: int) -> Sequence:
    """A sequence of so many tokens, unlike others with another name."""
    start = sum(map(ord, name)) * 1000
    tokens = list(range(start, start + prompt))
    return Sequence(name, tokens, [7] * output, "stop", watcher)


def run(engine: Engine, *wanted: tuple[str, int, int], watcher: Watcher) -> None:
    """Submit sequences together and wait until all have ended."""

    async def go() -> None:
        watcher.ended = asyncio.Event()
        watcher.wanted = len(wanted)
        for name, prompt, output in wanted:
            engine.submit(sequence_of(name, watcher, prompt, output))
        await asyncio.wait_for(watcher.ended.wait(), 10)

    asyncio.run(go())


def test_sequences_are_batched() -> None:
    """Two sequences take turns token by token."""
    watcher = Watcher()
    engine = engine_of()
    run(engine, ("a", 8, 3), ("b", 8, 3), watcher=watcher)

    assert watcher.order == ["a", "b"] * 3
    assert engine.steps == 3


def test_no_more_run_than_allowed() -> None:
    """The third waits until the first two have ended."""
    watcher = Watcher()
    run(engine_of(max_num_seqs=2), ("a", 8, 2), ("b", 8, 2), ("c", 8, 1), watcher=watcher)

    assert watcher.order == ["a", "b", "a", "b", "c"]


def test_a_long_prompt_is_prefilled_in_chunks() -> None:
    """The first token comes once all chunks are computed; of a chunk nobody hears, as on a real server."""
    watcher = Watcher()
    engine = engine_of(max_num_batched_tokens=32)
    run(engine, ("a", 100, 1), watcher=watcher)

    assert engine.steps == 4
    assert watcher.counts == [1]


@pytest.mark.parametrize(("prompt", "hits"), [(15, 0), (16, 0), (17, 16), (32, 16), (33, 32), (100, 96)])
def test_hits_are_whole_blocks_without_the_last_token(prompt: int, hits: int) -> None:
    """floor((prompt - 1) / block) * block, as on a real server."""
    watcher = Watcher()
    engine = engine_of()
    run(engine, ("a", prompt, 1), watcher=watcher)
    run(engine, ("a", prompt, 1), watcher=watcher)

    assert engine.stats.counters["prefix_cache_hits"] == hits
    assert engine.stats.counters["prefix_cache_queries"] == 2 * prompt


def test_blocks_come_back() -> None:
    """After the end nothing is used; cached blocks can be taken again."""
    watcher = Watcher()
    engine = engine_of()
    run(engine, ("a", 100, 20), watcher=watcher)

    assert engine.pool.usage == 0
    assert engine.pool.available == engine.pool.total == 100


def test_too_little_room_preempts_the_youngest() -> None:
    """It is computed again, gives all of its tokens, and is counted."""
    watcher = Watcher()
    engine = engine_of(num_blocks=9, prefix_caching=False)
    run(engine, ("a", 40, 60), ("b", 40, 60), watcher=watcher)

    assert engine.stats.counters["num_preemptions"] >= 1
    assert watcher.order.count("a") >= 60
    assert watcher.counts.count(60) == 2
    assert engine.pool.available == engine.pool.total


def test_an_abort_frees_at_once() -> None:
    """Running or waiting."""

    async def go() -> Engine:
        watcher = Watcher()
        engine = engine_of(max_num_seqs=1)
        first, second = (sequence_of(name, watcher, 40, 10_000) for name in "ab")
        engine.submit(first)
        engine.submit(second)
        await asyncio.wait_for(watcher.moved.wait(), 10)
        engine.abort(first)
        engine.abort(second)
        return engine

    engine = asyncio.run(go())
    assert (engine.running, list(engine.waiting), engine.pool.usage) == ([], [], 0)


def test_oldest_cached_blocks_go_first() -> None:
    """Least recently used."""
    pool = BlockPool(3)
    for key in (1, 2):
        assert pool.take(1)
        pool.remember(key)
        pool.release([key], 0)
    pool.pin([1])
    pool.release([1], 0)

    assert pool.take(1)
    assert (pool.known_prefix([1]), pool.known_prefix([2])) == (1, 0)


def test_a_key_stands_for_all_before_it() -> None:
    """Another beginning or another salt gives other keys all the way."""
    first, other, salted = (
        block_keys([1, 2, 3, 4], 2, None),
        block_keys([9, 2, 3, 4], 2, None),
        block_keys([1, 2, 3, 4], 2, "s"),
    )

    assert not set(first) & set(other)
    assert not set(first) & set(salted)


def test_a_step_is_as_long_as_the_roofline_says() -> None:
    """Reading bounds small batches, computing large prefills; experts are read as they are touched."""
    dense = Pace(shared=0.1, per_context_token=0.001, per_token=0.01, overhead=0.005)
    sparse = Pace(shared=0.1, all_experts=1.0, activity=0.25, per_token=0, overhead=0)

    assert dense.step(1, 0, 100) == pytest.approx(0.205)
    assert dense.step(1, 99, 0) == pytest.approx(1.005)
    assert sparse.step(1, 0, 0) == pytest.approx(0.35)
    assert sparse.step(2, 0, 0) == pytest.approx(0.1 + 1 - 0.75**2)


def test_salt_parts_the_cache(sim: Client) -> None:
    """The same prompt with another salt finds nothing."""
    question = f"{LONG} salted"

    def cached(**params: str) -> int:
        usage = sim.chat(question, max_tokens=1, **params).json["usage"]
        found: int = usage["prompt_tokens_details"]["cached_tokens"]
        return found

    assert cached(cache_salt="one") == 0
    assert cached(cache_salt="one") > 90
    assert cached(cache_salt="two") == 0
    assert cached() == 0


def test_counters_move_exactly_with_the_traffic(simulated: Callable[..., Client]) -> None:
    """Prompt tokens, generated tokens, finished requests."""
    sim = simulated("m", "--sim-seed", "99")
    usages = [sim.chat(text, max_tokens=5).json["usage"] for text in ("Hi", "Count to 10.", LONG)]

    assert sim.counter("vllm:prompt_tokens_total") == sum(usage["prompt_tokens"] for usage in usages)
    assert (
        sim.counter("vllm:generation_tokens_total")
        == sum(usage["completion_tokens"] for usage in usages)
        == 15
    )
    assert sim.counter("vllm:request_success_total") == 3
    assert sim.counter("vllm:e2e_request_latency_seconds_count") == 3
    assert sim.counter("vllm:request_prompt_tokens_sum") == sum(usage["prompt_tokens"] for usage in usages)


def test_a_faster_clock_keeps_virtual_time_true(simulated: Callable[..., Client]) -> None:
    """On slow hardware the server tells of life-size times and of its clock."""
    sim = simulated("Qwen/Qwen3-32B-FP8", "--sim-hardware", "gb10", "--max-model-len", "4096")
    answer = sim.chat("Hi", max_tokens=8, ignore_eos=True, chat_template_kwargs={"enable_thinking": False})
    gaps = sim.counter("vllm:inter_token_latency_seconds_count")
    each = sim.counter("vllm:inter_token_latency_seconds_sum") / gaps

    assert float(answer.headers["x-sim-speed"]) > 20
    assert gaps == 7
    assert 0.12 < each < 0.5


def test_drafts_change_the_pace_and_not_the_text(sim: Client, simulated: Callable[..., Client]) -> None:
    """Every token is the first, the one of a step, or an accepted draft."""
    config = '{"method": "ngram", "num_speculative_tokens": 3}'
    drafting = simulated("sim-model", "--max-model-len", "4096", "--speculative-config", config)
    answer = drafting.chat("Count to 30.", stream=True)

    def count(name: str) -> float:
        return drafting.counter(f"vllm:spec_decode_num_{name}_total")

    assert answer.text == sim.said("Count to 30.")
    assert len(answer.chunks) < drafting.counter("vllm:generation_tokens_total")
    assert 1 + count("drafts") + count("accepted_tokens") == drafting.counter("vllm:generation_tokens_total")
    assert count("draft_tokens") == 3 * count("drafts")
    assert count("accepted_tokens_per_pos") == count("accepted_tokens")
    assert drafting.chat("Hi", temperature=1, min_p=0.1).status == 400


def test_suffix_decoding_drafts_as_many_as_matched() -> None:
    """A draft is one longer than what was right before, and never longer than asked for: not always 32."""
    drafts = Drafts(3, as_matched=True)
    lengths, right = [], []
    for _ in range(4):
        lengths.append(drafts.next)
        right.append(drafts.right(room=100))

    assert (lengths, right) == ([1, 2, 3, 1], [1, 2, 0, 1])
    assert (drafts.tokens, drafts.made, drafts.accepted) == (7, 4, [3, 1, 0])


@pytest.mark.parametrize(("by_priority", "order"), [(False, "abc"), (True, "bca")])
def test_the_most_urgent_comes_first_where_priorities_count(by_priority: bool, order: str) -> None:
    """The lower the number, the sooner; otherwise who came first."""
    watcher = Watcher()
    engine = engine_of(max_num_seqs=1, by_priority=by_priority)

    async def go() -> None:
        watcher.wanted = 3
        for name, priority in (("a", 5), ("b", 1), ("c", 2)):
            sequence = sequence_of(name, watcher, 8, 1)
            sequence.priority = priority
            engine.submit(sequence)
        await asyncio.wait_for(watcher.ended.wait(), 10)

    asyncio.run(go())
    assert "".join(watcher.order) == order
