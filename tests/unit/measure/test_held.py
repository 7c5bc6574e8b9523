"""A client that was held up: what those times show is not the server's."""

from __future__ import annotations

import socket
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.measure.health import Client, doubts
from pytest_vllm.measure.held import joined, left, length, too_little, touches
from pytest_vllm.measure.measured import Measured
from pytest_vllm.measure.run import perform
from pytest_vllm.measure.samples import Sample
from pytest_vllm.measure.workload import Kind, Prompts, Workload
from tests.unit.measure.conftest import FIRST, GAP, WORDS
from tests.unit.measure.serving import serving

if TYPE_CHECKING:
    from pytest_vllm.measure.held import Span
    from pytest_vllm.wire.server import Server
    from tests.unit.measure.serving import Asked

#: Seconds that the client is held up, and streams of the load.
PAUSE, STREAMS = 0.8, 8
PATIENCE = 10.0
LOAD = Workload(
    streams=STREAMS,
    kinds=(Kind(prompts=Prompts(tokens=8), output=None),),
    seconds=4.0,
    warmup=0,
    canary=False,
)


def held_up(calibrator: Server, *moments: float, load: Workload = LOAD) -> Measured:
    """A load whose client does nothing for a while at these seconds after its begin."""
    coming = list(moments)
    begin = time.perf_counter()

    def say(text: str) -> None:
        if "in flight" in text and coming and time.perf_counter() - begin > coming[0]:
            coming.pop(0)
            time.sleep(PAUSE)

    found = perform("x", load, calibrator, say=say)
    assert not coming
    return found


def test_a_pause_of_the_client_is_cut_out(calibrator: Server) -> None:
    """All streams end in the pause, and none goes on: over the whole window too few were in flight.

    A machine that is busy may hold the client up once more; then the figure is right, or it is doubted.
    """
    found = held_up(calibrator, 1.5)
    rate = found.interval("aggregate-tok-s")
    served = STREAMS * WORDS / (FIRST + (WORDS - 1) * GAP)

    assert max(end - begin for begin, end in found.held) >= PAUSE - 0.1
    assert found.doubt("aggregate-tok-s") or rate.value == pytest.approx(served, rel=0.1)
    assert max(found.values("itl")) < PAUSE / 2
    assert max(found.values("ttft")) < PAUSE / 2


def test_a_load_goes_on_for_as_long_as_its_client_was_held_up(calibrator: Server) -> None:
    found = held_up(calibrator, 0.5, 1.6, 2.7)
    pauses = length(found.held)

    assert pauses >= 3 * PAUSE - 0.3
    assert found.seconds >= LOAD.seconds + pauses - 0.3
    assert found.held_up == ""


def test_a_client_that_is_always_held_up_measures_nothing(calibrator: Server) -> None:
    """It ends all the same, after three times what it was to last."""
    short = replace(LOAD, seconds=1.0)
    found = held_up(calibrator, 0.3, 1.2, 2.1, load=short)

    assert found.seconds == pytest.approx(3 * short.seconds, abs=0.9)
    assert "the client was held up for 2.4 of" in found.doubt("aggregate-tok-s")
    assert "the client was held up" in found.doubt("ttft")


def test_it_is_kept() -> None:
    found = Measured("x", LOAD, held=((0.5, 1.0), (2.0, 2.5)))

    assert Measured.of(found.plain()) == found


@pytest.mark.parametrize(
    ("held", "end", "doubted"),
    [(4.9, 20.0, False), (5.1, 20.0, True), (25.0, 40.0, False), (25.1, 40.0, True), (1.2, 5.0, False)],
)
def test_three_quarters_of_what_was_wanted_are_enough(held: float, end: float, doubted: bool) -> None:
    """20 s were, or all of a window that ended earlier."""
    assert too_little((0.0, end), ((0.0, held),), 20.0) is doubted


@pytest.mark.parametrize("starved", [False, True])
def test_figures_of_a_starved_client_are_in_doubt(starved: bool) -> None:
    client = Client(cpu=0.1, seconds=20.0, lags=[0.0001], stamped=True, held=6.0, starved=starved)

    assert bool(doubts(client, [], 1.0)) is starved


@pytest.mark.parametrize(
    ("held", "pieces"),
    [
        ((), ((1.0, 9.0),)),
        (((0.0, 0.5), (9.5, 10.0)), ((1.0, 9.0),)),
        (((2.0, 3.0),), ((1.0, 2.0), (3.0, 9.0))),
        (((0.0, 2.0), (4.0, 5.0), (8.0, 10.0)), ((2.0, 4.0), (5.0, 8.0))),
        (((0.0, 10.0),), ()),
    ],
)
def test_what_is_left_of_a_window(held: tuple[Span, ...], pieces: tuple[Span, ...]) -> None:
    assert left((1.0, 9.0), held) == pieces
    assert length(pieces) == 8.0 - sum(max(0.0, min(b, 9.0) - max(a, 1.0)) for a, b in held)


def test_spans_that_meet_are_one() -> None:
    assert joined([(3.0, 4.0), (0.0, 1.0), (1.0, 2.0), (0.5, 0.6)]) == ((0.0, 2.0), (3.0, 4.0))


@pytest.mark.parametrize(
    ("begin", "end", "touched"), [(0.0, 1.0, False), (0.0, 1.1, True), (1.4, 9.0, True), (2.0, 3.0, False)]
)
def test_what_touches_a_span(begin: float, end: float, touched: bool) -> None:
    assert touches(begin, end, ((1.0, 2.0), (5.0, 6.0))) is touched


def test_a_request_counts_for_what_came_before_the_pause() -> None:
    """Its first token came in time, its end did not."""
    one = Sample("a", 0.0, 0.0, 0.1, [0.2, 0.4, 1.4], 1.5, tokens=3)
    found = Measured("x", LOAD, samples=(one,), window=(0.0, 2.0), held=((0.5, 1.3),))

    assert list(found.values("ttft")) == [0.2]
    assert list(found.values("itl")) == [0.2]
    assert list(found.values("e2e")) == []


def test_a_wait_lies_between_what_was_looked_at_and_all_of_it() -> None:
    """None is left out: a second of ten that nobody looked leaves nine that somebody did."""
    waits = [Sample("a", at, at, at, [at + 10.0], at + 11.0, tokens=1) for at in (0.0, 20.0)]
    found = Measured("x", LOAD, samples=tuple(waits), window=(0.0, 40.0), held=((4.0, 5.0), (9.5, 12.0)))

    assert list(found.waits("a")) == [(8.5, 10.0), (10.0, 10.0)]
    assert list(found.waits("b")) == []


def lost(at: float, end: float, *, lost: bool = True) -> Sample:
    return Sample("a", at, at, None, [], end, status=0, error="it broke", lost=lost)


GOOD = [Sample("a", 0.0, 0.0, 0.1, [0.2], 0.5, tokens=1)] * 20


@pytest.mark.parametrize(
    ("broken", "excused"),
    [
        (lost(99.0, 121.0), True),  # in flight meanwhile
        (lost(90.0, 96.0), True),  # closed right before
        (lost(124.0, 124.1), True),  # sent soon after, by a client that still caught up
        (lost(50.0, 60.0), False),
        (lost(130.0, 131.0), False),
        (lost(99.0, 121.0, lost=False), False),  # answered, and wrongly
    ],
)
def test_what_fails_around_a_pause_is_not_the_servers_failure(broken: Sample, excused: bool) -> None:
    """The client stood still from 100 to 120."""
    found = Measured("x", LOAD, samples=(*GOOD, broken), window=(0.0, 200.0), held=((100.0, 120.0),))

    assert bool(found.wrong) is not excused
    assert bool(found.errors) is not excused
    assert bool(found.unsure) is excused
    if excused:
        assert found.unsure == (
            "this process was held up for 20 s, and 1 of 21 requests failed around that time: it broke"
        )


def test_a_margin_is_of_the_wall() -> None:
    """On a simulator ten times as fast, five of our seconds are fifty of its own."""
    found = Measured("x", LOAD, speed=10.0, samples=(lost(0.0, 60.0),), held=((100.0, 120.0),))

    assert found.errors == []


def test_a_server_that_closes_while_the_client_stands_still_is_not_accused() -> None:
    """As docker's proxy does with a client that does not read."""
    closing = threading.Event()

    def answer(asked: Asked) -> None:
        closing.wait(PATIENCE)
        asked.close_connection = True
        asked.connection.shutdown(socket.SHUT_RDWR)

    begin = time.perf_counter()

    def say(text: str) -> None:
        if "in flight" in text and not closing.is_set() and time.perf_counter() - begin > 0.3:
            closing.set()
            time.sleep(PAUSE)

    with serving(answer) as server:
        found = perform("x", replace(LOAD, streams=2, requests=2, seconds=1.0, patience=2.0), server, say=say)

    assert closing.is_set()
    assert [one.lost for one in found.samples] == [True, True]
    assert found.errors == []
    assert "this process was held up" in found.unsure
