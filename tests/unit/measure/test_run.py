"""A load from beginning to end: on a server that keeps time, and on servers that break in every way."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from pytest_vllm.measure import load as loading
from pytest_vllm.measure.driver import Call
from pytest_vllm.measure.run import perform, speed_of
from pytest_vllm.measure.talk import speed_told
from pytest_vllm.measure.wirebytes import Head
from pytest_vllm.measure.workload import Goal, Kind, Prompts, Workload
from pytest_vllm.wire.server import Server
from tests.unit.measure.conftest import FIRST, GAP, WORDS
from tests.unit.measure.serving import Asked, serving
from tests.unit.measure.test_driver import closed_port

if TYPE_CHECKING:
    from collections.abc import Callable

KINDS = (Kind(prompts=Prompts(tokens=8), output=WORDS),)
#: Nothing but the load itself.
BARE = Workload(kinds=KINDS, warmup=0, canary=False, seconds=0.2, requests=3, patience=0.3)


def written(calibrator: Server) -> list[dict[str, Any]]:
    """What the calibrator wrote down since it was asked last."""
    return list(httpx.get(f"{calibrator.url}/truth", trust_env=False).json())


@pytest.mark.parametrize("chat", [False, True])
def test_a_closed_loop_finds_the_times_that_the_server_wrote_down(calibrator: Server, chat: bool) -> None:
    kinds = (Kind(prompts=Prompts(tokens=8), output=WORDS, chat=chat),)
    written(calibrator)
    found = perform("x", Workload(streams=2, kinds=kinds, requests=8, seconds=20, canary=False), calibrator)
    _, *rows = written(calibrator)

    assert found.stopped == "requests"
    # those that begin the load are asked for fewer words, so that ends spread out; this server does not care
    assert [one.error for one in found.samples if one.asked == WORDS] == [""] * 7
    assert len(found.samples) == len(rows) == 8
    assert {len(one.deltas) for one in found.samples} == {WORDS}
    pairs = list(zip(found.samples, rows, strict=True))
    late = [(one.ttft or 0.0) - (row["written"][0] - row["arrived"]) for one, row in pairs]
    apart = [(row["written"][-1] - row["written"][0]) / (WORDS - 1) for _, row in pairs]
    # the machine may hold either side up between a write and its stamp, but not in most of eight answers
    assert abs(median(late)) < 0.01
    assert median(abs((one.tpot or 0.0) - gap) for (one, _), gap in zip(pairs, apart, strict=True)) < 0.001
    assert found.client["events-s"] > 0


def test_a_load_that_no_time_is_left_for_ends(calibrator: Server) -> None:
    """Others used up the budget: nothing is decided, and nothing breaks."""
    goals = (Goal("decode-tok-s", within=0.5),)
    found = perform("x", replace(BARE, seconds=0.0, requests=None, goals=goals), calibrator)

    assert found.stopped in ("budget", "decided")
    assert not found.errors


@pytest.mark.parametrize(("share", "enough"), [(0.6, True), (0.2, False)])
def test_a_load_goes_on_until_something_can_be_said(calibrator: Server, share: float, enough: bool) -> None:
    """Eight first tokens are the least; a slow server gets up to three times as long for them."""
    eight = 8 * (FIRST + WORDS * GAP)
    load = replace(BARE, seconds=share * eight, requests=None, goals=(Goal("ttft", within=0.0001),))
    found = perform("x", load, calibrator)

    assert found.stopped == "budget"
    assert (len(found.values("ttft")) >= 8) is enough
    assert found.seconds == pytest.approx(eight if enough else 3 * share * eight, rel=0.4)


def test_canaries_are_heard_before_and_after(calibrator: Server) -> None:
    found = perform("x", Workload(streams=1, kinds=KINDS, requests=2, seconds=20), calibrator)

    assert found.alone == (" word" * WORDS,) * 2
    assert found.loaded == ()


def test_a_trace_is_sent_when_it_is_due(calibrator: Server) -> None:
    """Several at the same moment, although one stream would be busy: the loop is open."""
    trace = (0.0, 0.04, 0.04, 0.1)
    found = perform("x", Workload(trace=trace, kinds=KINDS, seconds=20, canary=False), calibrator)

    assert [one.intended for one in found.samples] == pytest.approx(list(trace), abs=1e-6)
    first, second, third, _ = found.samples
    assert first.sent <= second.sent <= third.sent < first.end
    assert all(one.sent >= one.intended for one in found.samples)
    assert found.stopped == "requests"


def test_what_a_busy_client_sends_late_counts_from_the_intended_moment(calibrator: Server) -> None:
    """The client computes for a while just when two requests are due."""
    stuck: list[float] = []

    def say(text: str) -> None:
        if "in flight" in text and not stuck:
            stuck.append(until := time.perf_counter() + 0.15)
            while time.perf_counter() < until:
                pass

    found = perform(
        "x", Workload(trace=(0.0, 0.05, 0.05), kinds=KINDS, seconds=20, canary=False), calibrator, say
    )

    _, *late = found.samples
    assert [one.intended for one in late] == pytest.approx([0.05, 0.05], abs=1e-6)
    for one in late:
        assert one.queued > 0.08
        assert one.ttft is not None
        assert one.ttft > one.queued + FIRST * 0.95


@pytest.mark.parametrize(("share", "doubted"), [(0.95, True), (0.5, False)])
def test_a_client_that_takes_a_whole_core_is_doubted(
    calibrator: Server, monkeypatch: pytest.MonkeyPatch, share: float, doubted: bool
) -> None:
    """The processor's clock is made to run at this share of the wall's."""
    monkeypatch.setattr(time, "process_time", lambda: time.perf_counter() * share)
    found = perform("x", Workload(kinds=KINDS, requests=4, seconds=20, canary=False), calibrator)

    assert found.client["cpu-share"] == pytest.approx(share, abs=0.01)
    assert any(one.reason.startswith("the client was the limit") for one in found.doubts) is doubted


def refusing() -> Server:
    return Server(f"http://127.0.0.1:{closed_port()}", "m")


def test_a_server_that_is_not_there() -> None:
    server = refusing()
    found = perform("x", BARE, server)

    assert found.stopped.startswith("the server cannot be reached: 127.0.0.1:")
    assert found.stopped.endswith("takes no connections: connection refused")
    assert (found.samples, speed_of(server)) == ((), 1.0)


def test_an_address_that_is_none() -> None:
    found = perform("x", BARE, Server("http://127.0.0.1:99999", "m"))

    assert found.stopped.startswith("not begun: Port out of range")
    assert found.samples == ()


def closing(asked: Asked) -> None:
    """Half of an answer."""
    asked.send_response(200)
    asked.send_header("transfer-encoding", "chunked")
    asked.end_headers()
    asked.wfile.write(b"b\r\ndata: {}\n\n\r\n")
    asked.close_connection = True


def streaming(*payloads: str) -> Callable[[Asked], None]:
    """An answer of these events."""

    def answer(asked: Asked) -> None:
        body = "".join(f"data: {one}\n\n" for one in payloads).encode()
        asked.tell(200, body, "text/event-stream")

    return answer


WORD = json.dumps({"choices": [{"text": "word", "finish_reason": None}]})


@pytest.mark.parametrize(
    ("answer", "status", "error"),
    [
        (
            lambda asked: asked.tell(500, b'{"error": {"message": "out of memory"}}'),
            500,
            "answered with 500: ",
        ),
        (closing, 200, "the connection was closed before the response was whole"),
        (lambda _: None, 0, "not answered within "),
        (Asked.hold, 0, "not answered within "),
        (streaming("[1, 2", "null", "7", '{"choices": "no"}', "[DONE]"), 200, "not one token came"),
        (streaming(WORD), 200, "the stream ended without [DONE]"),
        (
            streaming(WORD, '{"usage": {"completion_tokens": 3}}', "[DONE]"),
            200,
            f"3 tokens instead of {WORDS}",
        ),
        (streaming('{"error": {"message": "out of memory"}}', "[DONE]"), 200, "an error in the stream: "),
        (lambda asked: asked.tell(200, b"\xff\x00 no events"), 200, "the stream ended without [DONE]"),
    ],
)
def test_a_server_that_breaks_is_told_in_the_record(
    answer: Callable[[Asked], None], status: int, error: str
) -> None:
    """Nothing is raised, nothing hangs, and no request that failed is counted as answered."""
    with serving(answer) as server:
        found = perform("x", BARE, server)

    assert found.samples
    assert {one.status for one in found.samples} == {status}
    assert all(one.error.startswith(error) for one in found.samples), found.samples[0].error
    assert found.wrong or found.unsure  # which it is where this process was held up meanwhile


def test_a_server_on_which_everything_fails_is_not_asked_for_ever() -> None:
    """Fifty failures in a row are enough, whatever the budget."""
    with serving(lambda asked: asked.tell(503, b"busy")) as server:
        found = perform("x", Workload(kinds=KINDS, warmup=0, canary=False, seconds=60), server)

    assert found.stopped == "50 requests in a row failed"
    assert 50 <= len(found.samples) <= 52


@pytest.mark.parametrize("alive", [False, True], ids=["frozen", "computes without a word"])
def test_a_load_on_a_server_that_says_nothing_any_more(monkeypatch: pytest.MonkeyPatch, alive: bool) -> None:
    """One that answers not even /health ends it at once; one that does may have a long prompt to read."""
    monkeypatch.setattr(loading, "DOUBTFUL", 0.1)
    monkeypatch.setattr(loading, "SILENT", 0.3)
    posted: list[str] = []

    def post(asked: Asked) -> None:
        posted.append(asked.path)
        asked.hold()

    def get(asked: Asked) -> None:
        if posted and not alive:
            asked.hold()
        else:
            asked.tell(404, b"")

    asked = replace(BARE, seconds=1.0, patience=0.5 if alive else 600.0)
    with serving(post, got=get) as server:
        found = perform("x", asked, server)

    assert found.hung is not alive
    assert found.unanswered
    words = "not answered within 0.5 s" if alive else "no byte of any answer came for 0 s, nor of /health"
    assert [one.error for one in found.samples] == [words]
    assert found.stopped == ("budget" if alive else words)


@pytest.mark.parametrize(("told", "speed"), [("4", 4.0), ("0.5", 0.5), ("", 1.0), ("fast", 1.0)])
def test_a_simulated_clock_is_told_by_the_server(told: str, speed: float) -> None:
    call = Call(b"", lambda _: None, 0.0, head=Head(200, {"x-sim-speed": told}, 0))

    assert speed_told(call) == speed
