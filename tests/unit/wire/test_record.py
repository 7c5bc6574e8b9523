"""The recording phase sends everything once, in order, and stops when the server is gone."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.declare.exchanges import ExchangeSpec
from pytest_vllm.run.plan import Planned
from pytest_vllm.run.recorder import record_all
from pytest_vllm.run.vigil import Patience
from pytest_vllm.wire.client import WireClient
from pytest_vllm.wire.recording import Recording, Request, Undecided
from pytest_vllm.wire.scrape import Scraper
from pytest_vllm.wire.server import Server
from pytest_vllm.wire.store import RecordingStore
from tests.unit.wire.fake import Call, fake_server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from pytest_vllm.run.pace import RecordingReport
    from pytest_vllm.wire.failure import Failure


#: A hung or dead server is found out about within a second.
QUICK = Patience(gone=0.2, hung=0.3, health=0.1, pause=0.02)


def planned(key: str, *after: str, **spec: Any) -> Planned:
    return Planned(key, ExchangeSpec(key, lambda: Request("GET", "/"), **spec), {}, {a: a for a in after})


def build(one: Planned, done: Mapping[str, Recording]) -> Request:
    assert set(done) == set(one.after.values())
    return Request(
        "POST", f"/{one.key}", json={"after": [done[key].ok["said"] for key in one.after.values()]}
    )


class Run:
    """One recording phase against a fake server, and what came of it."""

    def __init__(self, folder: Path) -> None:
        self.store = RecordingStore(folder)
        self.progress: list[tuple[str, int, int]] = []
        self.calls: list[Call] = []
        self.report: RecordingReport | None = None
        self.died: Callable[[], str] = str
        self.patience = QUICK
        #: Seconds that late tokens are waited for.
        self.grace = 0.05
        self.told: Callable[[], str] = str

    def on_done(self, one: Planned, recording: Recording, done: int, total: int) -> None:
        assert self.store.get(one.key) == recording
        self.progress.append((one.key, done, total))

    @property
    def errors(self) -> dict[str, str]:
        return {
            key: self.store.get(key).error for key in sorted(self.store.keys()) if self.store.get(key).error
        }

    @property
    def failures(self) -> Counter[Failure | None]:
        return Counter(map(self._failure, sorted(self.store.keys())))

    def _failure(self, key: str) -> Failure | None:
        return self.store.get(key).failure

    async def against(
        self, url: str, plan: Sequence[Planned], *, concurrency: int = 4, build: Any = build, **limits: Any
    ) -> RecordingReport:
        server = Server(url, "m")
        async with WireClient(server, **limits) as client:
            self.report = await record_all(
                server,
                plan,
                client,
                concurrency=concurrency,
                store=self.store,
                on_done=self.on_done,
                build=build,
                scraper=Scraper(client, deadline=0.2, pause=0.0, grace=self.grace),
                died=self.died,
                patience=self.patience,
                told=self.told,
            )
        return self.report

    def __call__(
        self, plan: Sequence[Planned], handler: Callable[[Call], Awaitable[None]], **options: Any
    ) -> RecordingReport:
        async def run() -> RecordingReport:
            async with fake_server(handler) as fake:
                report = await self.against(fake.url, plan, **options)
                self.calls = fake.calls
                return report

        return asyncio.run(run())


@pytest.fixture
def record(tmp_path: Path) -> Run:
    return Run(tmp_path)


async def says_its_name(call: Call) -> None:
    if call.path == "/metrics":
        await call.answer({}, 404)
    else:
        await call.answer({"said": call.path[1:], "usage": {"completion_tokens": 10}})


def test_everything_is_recorded_once(record: Run) -> None:
    plan = [planned(f"e{number}") for number in range(20)]
    report = record(plan, says_its_name)

    assert Counter(call.path for call in record.calls) == {f"/{one.key}": 1 for one in plan}
    assert record.errors == {}
    assert record.progress[-1][1:] == (20, 20)
    assert report.generated_tokens == 200
    assert set(report.exchange_seconds) == {one.key for one in plan}
    assert report.aggregate_rate > 0


def test_dependencies_get_their_recordings(record: Run) -> None:
    record([planned("c", "a", "b"), planned("b", "a"), planned("a")], says_its_name)

    assert record.store.get("c").request.json == {"after": ["a", "b"]}
    assert [call.path for call in record.calls] == ["/a", "/b", "/c"]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_never_more_at_once_than_allowed(record: Run, concurrency: int) -> None:
    open_, most = 0, 0
    full = asyncio.Event()

    async def handler(call: Call) -> None:
        nonlocal open_, most
        open_ += 1
        most = max(most, open_)
        if open_ == concurrency:
            full.set()
        async with asyncio.timeout(10):
            await full.wait()  # nobody is answered before as many as allowed are there
        open_ -= 1
        await says_its_name(call)

    record([planned(f"e{number}") for number in range(9)], handler, concurrency=concurrency)

    assert most == concurrency
    assert record.errors == {}


def test_alone_means_alone_and_last(record: Run) -> None:
    open_: set[str] = set()
    company: dict[str, int] = {}

    async def handler(call: Call) -> None:
        open_.add(call.path)
        for _ in range(20):
            await asyncio.sleep(0)
        company[call.path] = len(open_)
        await says_its_name(call)
        open_.discard(call.path)

    plan = [
        planned("x", alone=True),
        planned("y", alone=True),
        *(planned(f"e{number}") for number in range(4)),
    ]
    record(plan, handler)

    assert company["/x"] == company["/y"] == 1
    assert [call.path for call in record.calls if call.path != "/metrics"][-2:] == ["/x", "/y"]


def test_without_a_response_the_followers_are_not_sent(record: Run) -> None:
    async def handler(call: Call) -> None:
        if call.path != "/a":
            await says_its_name(call)

    record([planned("a"), planned("b", "a"), planned("c", "b"), planned("d")], handler)

    assert record.errors == {
        "a": "the connection closed before the response head was complete",
        "b": "not sent: a got no response",
        "c": "not sent: b got no response",
    }
    assert record.progress[-1][1:] == (4, 4)


def test_a_request_that_cannot_be_built_is_recorded_with_the_reason(record: Run) -> None:
    def bad(one: Planned, done: Mapping[str, Recording]) -> Request:
        if one.key == "a":
            raise Undecided("the model called no tool")
        if one.key == "b":
            raise KeyError("choices")
        return build(one, {})

    plan = [planned("a"), planned("b", alone=True), planned("c")]
    record(plan, says_its_name, build=bad)

    assert record.errors == {
        "a": "not sent: the model called no tool",
        "b": "not sent: its request could not be built: KeyError: 'choices' (test_record.py:204)",
    }


def test_a_refused_answer_is_still_an_answer(record: Run) -> None:
    async def handler(call: Call) -> None:
        await call.answer({"error": {"message": "no"}}, 400)

    record([planned("a"), planned("b", "a")], handler, build=build)

    assert record.errors == {"b": "not sent: a was answered with 400, so this was not tested"}


class Counting:
    """A server with metrics that lag behind its answers, as vLLM's may."""

    def __init__(self, lag: int = 0, stuck: float = 0.0) -> None:
        self.lag, self.stuck = lag, stuck
        self.requests = self.tokens = 0
        self.scrapes_until_counted = 0
        self.order: list[str] = []

    async def __call__(self, call: Call) -> None:
        self.order.append(call.path)
        if call.path != "/metrics":
            self.scrapes_until_counted = self.lag
            self.requests += 1
            self.tokens += 10
            await says_its_name(call)
            return
        behind = self.scrapes_until_counted > 0
        self.scrapes_until_counted -= behind
        seen = (self.requests - behind, self.tokens - 10 * behind)
        await call.answer(
            f"vllm:num_requests_running {self.stuck}\nvllm:num_requests_waiting 0.0\n"
            f"vllm:request_success_total {seen[0]}\nvllm:generation_tokens_total {seen[1]}\n".encode()
        )


def counted(text: str | None) -> list[str]:
    return [line for line in (text or "").splitlines() if "_total" in line]


@pytest.mark.parametrize("lag", [0, 1, 4])
def test_metrics_are_scraped_before_and_once_counted(record: Run, lag: int) -> None:
    record.grace = 60.0  # longer than any machine takes for four scrapes
    report = record([planned("e"), planned("m", metrics=True), planned("n", metrics=True)], Counting(lag))
    first, second = record.store.get("m"), record.store.get("n")

    assert counted(first.metrics_before) == [
        "vllm:request_success_total 1",
        "vllm:generation_tokens_total 10",
    ]
    assert counted(first.metrics_after) == ["vllm:request_success_total 2", "vllm:generation_tokens_total 20"]
    assert counted(second.metrics_before) == counted(first.metrics_after)
    assert counted(second.metrics_after) == [
        "vllm:request_success_total 3",
        "vllm:generation_tokens_total 30",
    ]
    assert record.store.get("e").metrics_before is None
    assert report.not_idle == ()


def test_a_server_that_is_never_idle_is_waited_for_a_while_only(record: Run) -> None:
    report = record([planned("m", metrics=True)], Counting(stuck=1.0))

    assert report.not_idle == ("m",)
    assert "vllm:num_requests_running 1.0" in (record.store.get("m").metrics_after or "")
    assert record.errors == {}


def test_tokens_that_are_never_counted_are_waited_for_a_while_only(record: Run) -> None:
    report = record([planned("m", metrics=True)], Counting(lag=10**6))

    assert counted(record.store.get("m").metrics_after) == [
        "vllm:request_success_total 0",
        "vllm:generation_tokens_total 0",
    ]
    assert report.not_idle == ()


@pytest.mark.parametrize("status", [404, 500])
def test_without_metrics_there_is_nothing_to_scrape(record: Run, status: int) -> None:
    async def handler(call: Call) -> None:
        await (call.answer({}, status) if call.path == "/metrics" else says_its_name(call))

    report = record([planned("m", metrics=True)], handler)

    assert record.store.get("m").metrics_before is record.store.get("m").metrics_after is None
    assert (record.store.get("m").status, report.not_idle) == (200, ())


def test_metrics_that_are_no_prometheus_text_are_kept(record: Run) -> None:
    async def handler(call: Call) -> None:
        await (call.answer(b"{oops") if call.path == "/metrics" else says_its_name(call))

    record([planned("m", metrics=True)], handler)

    assert record.store.get("m").metrics_after == "{oops"


def test_the_chain_counts_what_waits_for_each_other(record: Run) -> None:
    report = record([planned("a"), planned("b", "a"), planned("z", alone=True)], says_its_name)
    seconds = report.exchange_seconds

    assert report.longest_chain_seconds == pytest.approx(seconds["a"] + seconds["b"] + seconds["z"])
    assert report.seconds >= report.longest_chain_seconds


def test_an_interrupt_ends_open_exchanges(record: Run) -> None:
    async def run() -> None:
        arrived = asyncio.Event()

        async def handler(call: Call) -> None:
            arrived.set()
            await call.closed_by_client()

        async with fake_server(handler) as fake:
            task = asyncio.create_task(record.against(fake.url, [planned("a"), planned("b")]))
            await arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())

    assert record.errors == {}
