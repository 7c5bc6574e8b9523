"""Waiting until a started server is ready, saying meanwhile how far it is, and why when it will not be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.launch.boot import Boot, Clock, Progress, SystemClock
from pytest_vllm.launch.diagnose import boot_error
from pytest_vllm.launch.health import Health
from pytest_vllm.launch.phases import STARTED, PhaseReader
from pytest_vllm.launch.started import StartedServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.launch.protocol import BootError, Handle
    from pytest_vllm.profile.model import BootPart
    from pytest_vllm.wire.policy import Access

__all__ = ["Boot", "Clock", "Progress", "SystemClock", "wait_ready"]

INTERVAL = 0.25


def wait_ready(
    handle: Handle,
    boot: BootPart,
    on_progress: Callable[[Progress], None] | None = None,
    clock: Clock | None = None,
    healthy: Callable[[str], bool] | None = None,
    *,
    access: Access | None = None,
) -> Boot:
    """Return once the server answers `/health`. Raises BootError when it died, stalled or took too long.

    Args:
        handle: a server that has just been started.
        boot: `timeout` seconds in all, `stalled` seconds without a new log line.
        on_progress: called at every look, about four times a second.
        clock: time.
        healthy: whether the server at a URL is ready; asks `/health` unless given.
        access: how it is reached.
    """
    clock = clock or SystemClock()
    return _Waiting(handle, boot, clock, healthy or Health(access)).until_ready(on_progress or _nobody)


def _nobody(progress: Progress) -> None:
    """Nobody watches."""


class _Waiting:
    def __init__(self, handle: Handle, boot: BootPart, clock: Clock, healthy: Callable[[str], bool]) -> None:
        self._handle, self._boot, self._clock, self._healthy = handle, boot, clock, healthy
        self._started = self._line_at = clock.now()
        self._reader, self._seen = PhaseReader(), 0
        self._has_logs: bool = getattr(handle, "has_logs", True)

    def until_ready(self, on_progress: Callable[[Progress], None]) -> Boot:
        while True:
            self._read()
            if not self._handle.alive():
                raise self._died()
            url = self._handle.url
            if url and self._healthy(url) and self._handle.alive():
                self._read()
                if isinstance(self._handle, StartedServer):
                    self._handle.became_ready()
                return Boot(url, self._elapsed(), tuple(self._reader.history), dict(self._reader.facts))
            if self._elapsed() >= self._boot.timeout:
                raise self._late()
            if self._has_logs and self._line_age() >= self._boot.stalled:
                raise self._stalled()
            on_progress(self._progress())
            self._clock.sleep(INTERVAL)

    def _read(self) -> None:
        lines = self._handle.logs(self._seen)
        if lines:
            self._seen += len(lines)
            self._line_at = self._clock.now()
        for line in lines:
            self._reader.read(line, self._elapsed())

    def _elapsed(self) -> float:
        return self._clock.now() - self._started

    def _line_age(self) -> float:
        return self._clock.now() - self._line_at

    def _progress(self) -> Progress:
        age = self._line_age() if self._has_logs else None
        return Progress(self._elapsed(), self._reader.phase, self._reader.detail, age)

    def _noun(self) -> str:
        return self._handle.description.partition(" ")[0]

    def _died(self) -> BootError:
        failure: BootError | None = getattr(self._handle, "failure", None)
        if failure is not None:
            return failure
        ended = self._handle.exit()
        status = "ended" if ended is None or ended.status is None else f"exited with status {ended.status}"
        if ended is not None and ended.signal:
            status = f"was ended by {ended.signal}"
        if ended is not None and ended.oom:
            status = "was killed because memory ran out"
        if not self._has_logs:
            status = "stopped answering"
        what = f"the {self._noun()} {status} after {_clock_text(self._elapsed())}{self._while()}"
        return boot_error(what, self._handle.logs(), ended)

    def _late(self) -> BootError:
        limit = _clock_text(self._boot.timeout)
        return boot_error(
            f"the {self._noun()} was not ready within {limit}{self._while()}",
            self._handle.logs(),
            None,
            means="it still runs, but the whole start took longer than [boot] timeout",
            try_=("give it longer: [boot] timeout = …, when the log shows that it goes on",),
        )

    def _stalled(self) -> BootError:
        limit = _clock_text(self._boot.stalled)
        return boot_error(
            f"the {self._noun()} logged nothing for {limit}{self._while()}",
            self._handle.logs(),
            None,
            means="it still runs, but nothing shows that its start goes on",
            try_=("allow longer silence: [boot] stalled = …, when this phase is known to be silent",),
        )

    def _while(self) -> str:
        if self._reader.phase == STARTED:
            return f", though its log says {STARTED}"
        return f", while {self._progress().text.partition(', last log line')[0]}"


def _clock_text(seconds: float) -> str:
    """`192` -> `3:12`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
