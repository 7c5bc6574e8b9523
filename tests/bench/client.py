"""Capacity and truth of measuring clients against a server that computes nothing, in one table each.

    python -m tests.bench.client [--quick] [--with guidellm --with aiperf] [--python-with-vllm PYTHON]

The server (`tools.calibrator`) and each client have a core and processes of their own.
Truth: all streams begin together, the first word comes after 50 ms, the others 10 ms apart; the server
writes down when each went out. Shown is what a client itself reports, median and 99th percentile, beside what
was. Capacity: for how many events a second of processor time of all its processes is enough, each event a
read of its own. Of a program it is the difference of a long and a short run: without its start.
Clients: ours, httpx with its lines read and decoded, openai; programs of others as they are asked for, each
in an environment that is made here and removed at the end (guidellm takes 6 GB, aiperf one).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from tests.bench.inprocess import CLIENTS
from tests.bench.tools import INSTALLED, VLLM, Load, NoFigures, Tool, install
from tests.bench.truth import Pair, Truth, calibrator, pinned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Words of each answer, the seconds between two, in the run for the truth.
WORDS, GAP = 100, 0.01
#: Streams at once: seconds between two words, words of our own clients, and of programs, whose start is dear.
CAPACITY = {64: (0.01, 200, 1100), 256: (0.0125, 160, 900), 1000: (0.01, 60, 0)}
#: More than a core can read in time: ours has to notice it. Others are not asked.
BEYOND = 1000
#: A client of our own is given up after so many seconds.
LONGEST = 90.0


@dataclass(frozen=True)
class Row:
    """What was found of one client at so many streams; `why` instead where there is nothing.

    Args:
        client: its name.
        streams: how many at once it was asked for.
        why: why there are no figures.
        ttft: as it reports it.
        itl: as it reports it.
        truth: what the server wrote down of the same run.
        cpu: seconds of processor per event.
        notes: what one has to know of the figures.
    """

    client: str
    streams: int
    why: str = ""
    ttft: Pair | None = None
    itl: Pair | None = None
    truth: Truth | None = None
    cpu: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The row of the table."""
        if self.why or not (self.ttft and self.itl and self.truth):
            return f"| {self.client} | {self.streams} | {self.why} | | | | | | |"
        rate = f"{1 / self.cpu:,.0f}" if self.cpu > 0 else "too little to tell"
        cells = (
            *(self.client, self.streams, self.truth.at_once),
            *(self.ttft.text, self.truth.ttft.text, self.itl.text, self.truth.itl.text),
            *(rate, "; ".join(self.notes)),
        )
        return f"| {' | '.join(map(str, cells))} |"


_COLUMNS = (
    *("client", "streams", "at once", "TTFT p50 / p99, ms", "as it was", "ITL p50 / p99, ms", "as it was"),
    *("events per CPU second", "notes"),
)
HEAD = (f"| {' | '.join(_COLUMNS)} |", "| --- " * len(_COLUMNS) + "|")


def own(client: str, streams: int) -> Row:
    """A client that runs in a process of the bench's own."""
    gap, words, _ = CAPACITY[streams]
    try:
        (_, lag), told, truth = _in_process(client, streams, GAP, WORDS)
        (cpu, _), taken, _ = _in_process(client, streams, gap, words)
        ttft = Pair.of([times[0] - sent for _, sent, times in told if times])
        itl = Pair.of([b - a for _, _, times in told for a, b in pairwise(times)])
    except (subprocess.SubprocessError, ValueError) as error:
        return Row(client, streams, why=f"gave up: {str(error)[:120]}")
    late = (f"it read {lag * 1e3:.0f} ms late (p99), and would call its ITL undecided",) if lag > GAP else ()
    events = max(1, sum(len(times) for _, _, times in taken))
    return Row(client, streams, "", ttft, itl, truth, cpu / events, late)


def _in_process(
    client: str, streams: int, gap: float, words: int
) -> tuple[tuple[float, float], list[tuple[int, float, list[float]]], Truth]:
    """What a client says of itself, what of each stream, and the server's truth. Raises SubprocessError."""
    with calibrator(gap, words) as server:
        command = [sys.executable, "-m", "tests.bench.inprocess", client, str(server.port), str(streams)]
        done = subprocess.run(
            [*pinned(1), *command], capture_output=True, text=True, timeout=LONGEST, check=True
        )
        truth = server.truth()
    about, streamed = (json.loads(line) for line in done.stdout.splitlines())
    return about, streamed, truth


def program(tool: Tool, python: Path, folder: Path, streams: int) -> Row:
    """A program of others; a short run for the truth, a long one for the price of an event."""
    gap, _, more = CAPACITY[streams]
    try:
        with calibrator(GAP, WORDS) as server:
            short = tool.run(python, Load(server.url, streams, WORDS, _fresh(folder)))
            truth = server.truth()
        with calibrator(gap, more) as server:
            long = tool.run(python, Load(server.url, streams, more, _fresh(folder)))
            words = server.truth().words
    except NoFigures as error:
        return Row(tool.name, streams, why=str(error).replace("|", "/"))
    start = f"{short.cpu:.0f} CPU s to start and end"
    notes = (start, "its ITL is of each request's mean") if short.means else (start,)
    cpu = (long.cpu - short.cpu) / max(1, words - truth.words)
    return Row(tool.name, streams, "", short.ttft, short.itl, truth, cpu, notes)


def _fresh(folder: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=folder))


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Every row, as it is measured; what is going on is told on the error output."""
    streams = [64] if options.quick else [count for count in CAPACITY if count < BEYOND]
    for client in CLIENTS:
        for count in streams if options.quick or client != "ours" else CAPACITY:
            _say(f"{client}: {count} streams")
            beside = Beside()
            yield beside.noted(own(client, count))
    for name in options.tools:
        with tempfile.TemporaryDirectory(prefix=f"bench-{name}-") as place:
            _say(f"{name}: installing it into {place}, which is removed at the end")
            began = time.monotonic()
            try:
                python = install(name, Path(place), options.tool_python)
            except NoFigures as error:
                yield Row(name, streams[0], why=str(error).replace("|", "/"))
                continue
            _say(f"{name}: installed in {time.monotonic() - began:.0f} s")
            yield from _program(INSTALLED[name], python, Path(place), streams)
    if options.python_with_vllm:
        with tempfile.TemporaryDirectory(prefix="bench-vllm-") as place:
            yield from _program(VLLM, Path(options.python_with_vllm), Path(place), streams)


def _program(tool: Tool, python: Path, place: Path, streams: Sequence[int]) -> Iterator[Row]:
    for count in streams:
        _say(f"{tool.name}: {count} streams, a short run and a long one")
        beside = Beside()
        yield beside.noted(program(tool, python, place, count))


def _say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


class Beside:
    """What everything else on the machine computed meanwhile."""

    def __init__(self) -> None:
        """From now on."""
        self._began, self._busy, self._own = time.monotonic(), self._all(), self._ours()
        self._load = os.getloadavg()[0]

    @property
    def share(self) -> float:
        """Of all cores."""
        seconds, cores = time.monotonic() - self._began, os.cpu_count() or 1
        others = (self._all() - self._busy) - (self._ours() - self._own)
        return max(0.0, others) / seconds / cores

    @property
    def text(self) -> str:
        """In words."""
        cores = os.cpu_count()
        return (
            f"{cores} cores; load {self._load:.1f} before it; others took {self.share:.0%} of them meanwhile"
        )

    def noted(self, row: Row) -> Row:
        """The row, with what others took while it was measured."""
        return replace(row, notes=(f"others took {self.share:.0%} of the cores", *row.notes))

    @staticmethod
    def _all() -> float:
        times = psutil.cpu_times()
        return float(sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0))

    @staticmethod
    def _ours() -> float:
        spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(one.ru_utime + one.ru_stime for one in spent)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print a table in Markdown."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.client",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="64 streams only")
    parser.add_argument(
        "--with", dest="tools", action="append", default=[], choices=tuple(INSTALLED), help="install it, too"
    )
    parser.add_argument("--tool-python", default=sys.executable, help="makes the environments of the tools")
    parser.add_argument("--python-with-vllm", help="a Python that has vLLM, for `vllm bench serve`")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the environments go, too
    beside = Beside()
    for line in HEAD:
        print(line, flush=True)
    for row in rows(options):
        print(row.text, flush=True)
    print(f"\n{beside.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
