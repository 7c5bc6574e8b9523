"""Progress on a terminal and without one."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass

import pytest

from pytest_vllm.report.progress import Progress
from pytest_vllm.report.text import Style
from tests.golden.sample_parts import server


@dataclass
class Clock:
    """A clock that is set by hand."""

    now: float = 50.0

    def __call__(self) -> float:
        """The present second."""
        return self.now


class Screen(io.StringIO):
    """A terminal of one line: what stays above it, and what the line shows."""

    def seen(self) -> list[str]:
        """The lines as a person sees them after all rewriting; the last one is the open line."""
        lines = []
        for line in self.getvalue().split("\n"):
            shown = re.split(r"\r\x1b\[2K", line)[-1]
            lines.append(shown)
        return lines


@dataclass
class Boot:
    """A start that succeeded."""

    url: str
    slowest: tuple[str, float]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def screen() -> Screen:
    return Screen()


def on_terminal(screen: Screen, clock: Clock, width: int = 100) -> Progress:
    return Progress(screen, tty=True, clock=clock, style=Style(width=width))


def test_a_terminal_shows_one_line_that_is_rewritten(screen: Screen, clock: Clock) -> None:
    """However many updates come, there is one line, and it is the last one."""
    progress = on_terminal(screen, clock)
    progress.phase("boot")
    for shard in range(1, 16):
        clock.now += 10
        progress.update(f"loading weights, {shard} of 15 shards", age=2.4)

    assert screen.seen() == ["vllm: boot    2:30  loading weights, 15 of 15 shards, last log line 2s ago"]


def test_the_line_ends_as_one_permanent_line(screen: Screen, clock: Clock) -> None:
    """A phase that is over leaves one line and the cursor at the left."""
    progress = on_terminal(screen, clock)
    progress.phase("boot")
    progress.update("loading weights")
    clock.now += 592
    progress.booted(Boot("http://127.0.0.1:49153", ("compiling", 282.0)))

    assert screen.seen() == ["vllm: ready   9:52  http://127.0.0.1:49153, slowest step: compiling 4:42", ""]


def test_a_pause_closes_the_open_line(screen: Screen, clock: Clock) -> None:
    """Other output starts at the left; the next update opens a new line."""
    progress = on_terminal(screen, clock)
    progress.phase("boot")
    progress.update("loading weights")
    progress.pause()
    screen.write("somebody else\n")
    progress.update("compiling")

    assert screen.seen() == [
        "vllm: boot    0:00  loading weights",
        "somebody else",
        "vllm: boot    0:00  compiling",
    ]


def test_leaving_the_block_closes_the_open_line(screen: Screen, clock: Clock) -> None:
    """An interrupted boot says where it was, on a line of its own."""

    def interrupted() -> None:
        with on_terminal(screen, clock) as progress:
            progress.phase("boot")
            progress.update("loading weights")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert screen.getvalue().endswith("loading weights\n")


def test_a_line_never_fills_the_terminal(screen: Screen, clock: Clock) -> None:
    """A full line would wrap, and could not be taken back."""
    progress = on_terminal(screen, clock, width=60)
    progress.phase("boot")
    progress.update("x" * 200)

    assert max(len(line) for line in screen.seen()) == 59


def test_a_terminal_is_not_flooded(screen: Screen, clock: Clock) -> None:
    """Updates within a tenth of a second are dropped, the first of a step is not."""
    progress = on_terminal(screen, clock)
    for done in range(1, 60):
        clock.now += 0.001
        progress.recorded(done, 80)

    assert screen.getvalue().count("exchanges") == 1


def test_without_a_terminal_nothing_is_rewritten(screen: Screen, clock: Clock) -> None:
    """No carriage return, no escape: one line per step and a heartbeat."""
    progress = Progress(screen, clock=clock)
    progress.phase("boot", "container started")
    for _ in range(100):
        clock.now += 1
        progress.update("loading weights, 1 of 15 shards")

    text = screen.getvalue()
    assert "\r" not in text
    assert "\x1b" not in text
    assert [line.split()[2] for line in text.splitlines()] == ["0:00", "0:01", "0:31", "1:01", "1:31"]


def test_the_probe_says_what_is_there_and_what_is_missing(screen: Screen, clock: Clock) -> None:
    """Expected capabilities that are absent are named apart from those nobody needs."""
    probed = Progress(screen, clock=clock, style=Style(width=80))
    probed.probed(server("sim"), expected=["chat", "lora"])

    assert screen.getvalue().splitlines() == [
        "vllm: probe   0:00  simulated vLLM 0.32.0; chat stream tools metrics; expected",
        "                    but absent: lora; not vision",
    ]


def test_recording_opens_its_own_phase_and_ends_it(screen: Screen, clock: Clock) -> None:
    """The last exchange leaves the final line."""
    progress = Progress(screen, clock=clock)
    progress.phase("boot", "started")
    clock.now += 3
    for done in (1, 41, 80):
        progress.recorded(done, 80)

    assert screen.getvalue().splitlines()[1:] == [
        "vllm: record  0:03  1 of 80 exchanges",
        "vllm: record  0:03  80 of 80 exchanges",
    ]


def test_a_line_of_its_own_stays(screen: Screen, clock: Clock) -> None:
    """`say` does not land inside an open line."""
    progress = on_terminal(screen, clock)
    progress.phase("boot")
    progress.update("loading weights")
    progress.say("left running at http://127.0.0.1:1")

    assert screen.seen() == [
        "vllm: boot    0:00  loading weights",
        "vllm: left running at http://127.0.0.1:1",
        "",
    ]
