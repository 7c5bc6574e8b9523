"""Shows on the terminal that a long phase is alive.

On a terminal one line is rewritten in place. Anywhere else a line is printed when the phase takes a new
step, and every 30 s, so that a CI log shows life. Nothing half-written is ever left before other output.
"""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING, Protocol, Self

from pytest_vllm.report.terminal import phase_line, probe_text
from pytest_vllm.report.text import PLAIN, Style, clip, nouns, printable, wrap
from pytest_vllm.report.text import clock as clock_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pytest_vllm.wire.server import Server

HEARTBEAT = 30.0
#: Seconds between two rewritings of the line.
REFRESH = 0.1

_CLEAR, _OURS = "\r\x1b[2K", "vllm: "


class Stream(Protocol):
    """Where progress goes: a text file, or pytest's terminal writer."""

    def write(self, text: str, /) -> object:
        """Write the text."""

    def flush(self) -> object:
        """Make it visible."""


class BootProgress(Protocol):
    """How far a start is."""

    @property
    def text(self) -> str:
        """The step, how far it is, the age of the last log line."""


class Booted(Protocol):
    """A start that succeeded."""

    @property
    def url(self) -> str:
        """Where the server answers."""

    @property
    def slowest(self) -> tuple[str, float]:
        """The step that took longest, and its seconds."""


class Progress:
    """The progress of a run, one phase at a time. Thread-safe."""

    def __init__(
        self,
        stream: Stream,
        *,
        tty: bool = False,
        clock: Callable[[], float] = time.monotonic,
        style: Style = PLAIN,
        heartbeat: float = HEARTBEAT,
    ) -> None:
        """Start counting.

        Args:
            stream: where to write.
            tty: whether a line can be rewritten in place.
            clock: monotonic seconds.
            style: colour and width; on a terminal its width.
            heartbeat: seconds after which an unchanged step is printed again without a terminal.
        """
        self._stream, self._tty, self._clock, self._style = stream, tty, clock, style
        self._heartbeat = heartbeat
        self._lock = threading.RLock()
        self._started = clock()
        self._label = ""
        self._step: str | None = None
        self._shown_at = self._started
        self._open = ""

    def __enter__(self) -> Self:
        """Use in `with`, so that an open line is closed whatever happens."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Leave what the open line said as a line of its own."""
        self.pause()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._started

    def phase(self, name: str, text: str = "") -> None:
        """A phase begins: boot, probe, record, judge."""
        with self._lock:
            self.pause()
            self._label, self._step = name, None
            if text:
                self.update(text)

    def update(self, text: str, age: float | None = None) -> None:
        """What the phase is doing now.

        Args:
            text: the step, and after a comma how far it is: `loading weights, 7 of 15 shards`.
            age: seconds since the server's last log line, shown from 1 s on.
        """
        step = re.sub(r"\d+", "#", re.split("[,:]", text, maxsplit=1)[0])
        if age is not None and age >= 1:
            text = f"{text}, last log line {int(age)}s ago"
        with self._lock:
            now = self._clock()
            due = now - self._shown_at >= (REFRESH if self._tty else self._heartbeat)
            if step != self._step or due:
                self._step, self._shown_at = step, now
                self._show(phase_line(self._label, self.elapsed, text, style=self._style))

    def done(self, text: str, name: str = "") -> None:
        """The phase is over; `text` stays, under `name` if it is given."""
        with self._lock:
            indent = len(phase_line(name or self._label, self.elapsed, ""))
            first, *rest = wrap(printable(text), self._style.width - indent)
            line = phase_line(name or self._label, self.elapsed, first, style=self._style)
            self._wipe()
            self._write("".join(f"{row}\n" for row in (line, *(" " * indent + more for more in rest))))
            self._step = None

    def say(self, text: str) -> None:
        """Something that stays, in lines of its own: nothing of it is cut."""
        with self._lock:
            self.pause()
            first, *rest = wrap(printable(text), self._style.width - len(_OURS))
            self._write(
                "".join(f"{row}\n" for row in (_OURS + first, *(" " * len(_OURS) + more for more in rest)))
            )

    def pause(self) -> None:
        """Close the open line, so that other output starts at the left; the next update opens a new one."""
        with self._lock:
            if self._open:
                self._open = ""
                self._write("\n")

    def boot(self, progress: BootProgress) -> None:
        """The boot is so far."""
        self.update(progress.text)

    def booted(self, boot: Booted) -> None:
        """The server is ready; its slowest step is named when it took 1 s or more."""
        step, seconds = boot.slowest
        slowest = f", slowest step: {step} {clock_text(seconds)}" if seconds >= 1 else ""
        self.done(f"{boot.url}{slowest}", "ready")

    def probed(self, server: Server, expected: Iterable[str] = ()) -> None:
        """The probe is over: what it found."""
        self.done(probe_text(server, expected), "probe")

    def recorded(self, done: int, total: int) -> None:
        """So many exchanges have been recorded."""
        with self._lock:
            if self._label != "record":
                self.phase("record")
            text = f"{done} of {total} {nouns(total, 'exchange')}"
            if done >= total:
                self.done(text)
            else:
                self.update(text)

    def measuring(self, text: str) -> None:
        """The measurement is so far."""
        with self._lock:
            if self._label != "measure":
                self.phase("measure")
            self.update(text)

    def _show(self, line: str) -> None:
        if self._tty:
            self._wipe()
            self._open = clip(line, self._style.width - 1)
            self._write(self._open)
        else:
            self._write(f"{line}\n")

    def _wipe(self) -> None:
        if self._open:
            self._open = ""
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
