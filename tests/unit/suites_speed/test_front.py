"""What stands in front of the engine: answers that are held back, that come late, that come in bursts."""

from __future__ import annotations

import json

import pytest

from pytest_vllm.declare.recordings import Recordings
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.server import Server
from suites.performance.speeds import DECODE, FIRST
from suites.performance.test_front import WHOLE
from suites.performance.test_front import test_flows as check_flows
from suites.performance.test_front import test_held as check_held
from suites.performance.test_front import test_late as check_late

SERVER = Server("http://server", model="m", version="0.32.0")
TOKENS = 24


def scrape(**sums: float) -> str:
    """`/metrics` after one request for each sum."""
    lines = []
    for name, seconds in sums.items():
        family = {"whole": WHOLE, "first": FIRST, "decode": DECODE}[name]
        lines += [f"# TYPE {family} histogram", f'{family}_bucket{{le="+Inf"}} {int(seconds > 0)}']
        lines += [f"{family}_sum {seconds}", f"{family}_count {int(seconds > 0)}"]
    return "\n".join([*lines, ""])


def answer(key: str, sent: float, seconds: float, engine: float | None = None) -> Recording:
    """A short whole answer; with the engine's time where its metrics were scraped."""
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    body = json.dumps({"choices": [{"index": 0, "text": "a"}], "usage": usage}).encode()
    known = engine is not None
    return Recording(
        key,
        Request("POST", "/v1/completions", json={"prompt": "Hi", "max_tokens": 4}),
        status=200,
        headers=(("content-type", "application/json"),),
        chunks=((seconds, body),),
        sent=sent,
        seconds=seconds,
        metrics_before=scrape(whole=0.0) if known else None,
        metrics_after=scrape(whole=engine or 0.0) if known else None,
    )


def stream(key: str, each: float, burst: int, held: float = 0.0) -> Recording:
    """A stream of a token each so many seconds; so many come at once, or what comes first is held."""
    pieces = [json.dumps({"choices": [{"index": 0, "text": " a"}]}) for _ in range(TOKENS)]
    times = [max(held, -(-at // burst) * burst * each) for at in range(1, TOKENS + 1)]
    chunks = tuple((at, f"data: {one}\n\n".encode()) for at, one in zip(times, pieces, strict=True))
    body = {"prompt": "Hi", "max_tokens": TOKENS, "stream": True}
    return Recording(
        key,
        Request("POST", "/v1/completions", json=body),
        status=200,
        headers=(("content-type", "text/event-stream"),),
        chunks=(*chunks, (times[-1], b"data: [DONE]\n\n")),
        seconds=times[-1],
        metrics_before=scrape(whole=0.0, first=0.0, decode=0.0),
        metrics_after=scrape(whole=each * TOKENS, first=each, decode=each * (TOKENS - 1)),
    )


def lone(count: int, late: int) -> Recordings:
    """Answers one after the other, of which so many are two seconds late."""
    rows = [answer("timed", 0.0, 0.1, 0.09)]
    at = 1.0
    for number in range(count):
        seconds = 2.1 if number < late else 0.1
        rows.append(answer(f"one[{number}]", at, seconds))
        at += seconds + 0.1
    return Recordings.these([*rows, answer("last", at, 0.1)])


def test_one_answer_that_is_held_is_chance_and_two_are_not() -> None:
    rows = [answer(f"one[{at}]", at, 0.1, 0.09) for at in range(8)]
    slow = [answer(f"slow[{at}]", 20 + 3 * at, 1.6, 0.09) for at in range(2)]

    check_held(Recordings.these([*rows, slow[0]]))
    with pytest.raises(AssertionError, match="2 of 10 times"):
        check_held(Recordings.these([*rows, *slow]))


def test_a_stream_whose_begin_is_held_is_seen_however_long_it_is() -> None:
    check_held(Recordings.these([stream(f"s[{at}]", 0.1, 1) for at in range(3)]))
    with pytest.raises(AssertionError, match="3 of 6 times"):
        check_held(Recordings.these([stream(f"s[{at}]", 0.1, 1, held=1.0) for at in range(3)]))


def test_an_engine_that_is_slow_itself_holds_nothing() -> None:
    check_held(Recordings.these([answer(f"slow[{at}]", 9.0 * at, 4.1, 4.0) for at in range(5)]))


def test_answers_that_are_late_now_and_then_are_seen() -> None:
    check_late(lone(40, 2), SERVER)
    with pytest.raises(AssertionError, match="5 of 4"):
        check_late(lone(40, 5), SERVER)


def test_what_runs_beside_others_is_not_late() -> None:
    rows = [answer("timed", 0.0, 0.1, 0.09), *(answer(f"one[{at}]", 2.0 * at + 1, 0.1) for at in range(20))]
    beside = [answer(f"beside[{at}]", 100.0, 9.0) for at in range(20)]

    check_late(Recordings.these([*rows, *beside]), SERVER)


@pytest.mark.parametrize(("each", "burst", "fails"), [(0.03, 1, False), (0.03, 9, True), (0.3, 1, False)])
def test_bursts_are_longer_than_a_token_takes(each: float, burst: int, fails: bool) -> None:
    rows = [stream(f"performance.{name}", each, burst) for name in ("first", "second", "third")]
    if fails:
        with pytest.raises(AssertionError, match="waits of"):
            check_flows(SERVER, *rows)
    else:
        check_flows(SERVER, *rows)
