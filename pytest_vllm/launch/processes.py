"""Processes of a run: marked in their environment, found and ended.

vLLM's EngineCore outlives a killed API server (measured on 0.32.0: 90 s and more), so ending a server means
ending everything that carries its mark or lives in its session, not only the process that was started.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil

from pytest_vllm.launch.owner import Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from pytest_vllm.launch.protocol import LaunchContext

RUN, SCOPE, SERVER = "PYTEST_VLLM_RUN", "PYTEST_VLLM_SCOPE", "PYTEST_VLLM_SERVER"
OWNER, KEEP = "PYTEST_VLLM_OWNER", "PYTEST_VLLM_KEEP"
#: Seconds that the rest of a server gets to end once its main process has.
LEAVING = 3.0
_GONE_WITHIN, _TRACKED_WITHIN, _LOOK_EVERY = 5.0, 2.0, 0.01


def marks(context: LaunchContext, server: str) -> dict[str, str]:
    """The environment entries that mark a process as belonging to a run, and to one server of it."""
    owner = str(Owner.of(context.owner_pid))
    found = {RUN: context.run_id, SCOPE: context.scope, SERVER: server, OWNER: owner}
    if context.keep:
        found[KEEP] = "1"
    # setproctitle, which vLLM uses, writes titles over /proc/PID/environ unless told not to
    return found | {"SPT_NOENV": "1"}


def marked(wanted: Callable[[Mapping[str, str]], bool]) -> Iterator[tuple[psutil.Process, Mapping[str, str]]]:
    """Running processes that carry a run's mark, other than this process and those above it."""
    spared = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    for process in psutil.process_iter():
        if process.pid in spared:
            continue
        try:
            environ = process.environ()
            if RUN in environ and wanted(environ) and process.status() != psutil.STATUS_ZOMBIE:
                yield process, environ
        except (psutil.Error, OSError):
            continue


def of_session(leaders: Collection[int]) -> Iterator[psutil.Process]:
    """Running processes of these sessions. A leader's number is only safe while its zombie is kept."""
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) in leaders and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except (psutil.Error, OSError):
            continue


def resident(pid: int) -> int | None:
    """Bytes of main memory that a process and those below it hold, shared ones counted each time."""
    try:
        first = psutil.Process(pid)
        members = [first, *first.children(recursive=True)]
    except psutil.Error:
        return None
    total = 0
    for one in members:
        with suppress(psutil.Error):
            total += one.memory_info().rss
    return total


def lingering(container_id: str) -> Iterator[psutil.Process]:
    """What Podman leaves of a removed container for minutes: the monitor of a command that was run inside."""
    for process in psutil.process_iter(["name", "cmdline"]):
        if process.info["name"] == "conmon" and container_id in (process.info["cmdline"] or ()):
            yield process


def end(find: Callable[[], Collection[psutil.Process]]) -> list[int]:
    """Kill what is found until nothing is found any more. Returns the numbers of what was killed.

    Python's resource trackers come last: when all others are gone they remove their shared memory and end.
    """
    ended = _kill(lambda: [process for process in find() if not _is_tracker(process)])
    _await_end(list(find()), within=_TRACKED_WITHIN)
    return ended + _kill(find)


def outliving(find: Callable[[], Collection[psutil.Process]], within: float) -> list[psutil.Process]:
    """What is still found after so many seconds, trackers of shared memory aside; nothing ends the wait."""
    until = time.monotonic() + within
    while found := [process for process in find() if not _is_tracker(process)]:
        if time.monotonic() >= until:
            return found
        time.sleep(_LOOK_EVERY)
    return []


def alive(pid: int) -> bool:
    """Whether a process of that number runs, rather than waits to be collected."""
    try:
        return _runs(psutil.Process(pid))
    except psutil.Error:
        return False


def running(those: Collection[psutil.Process]) -> list[psutil.Process]:
    """Those that still run."""
    return [process for process in those if _runs(process)]


def of_rows(rows: Collection[Sequence[str]]) -> list[psutil.Process]:
    """The processes of an engine's `top`, as `ps -ef` writes it: number second, command last.

    An engine in a virtual machine tells numbers that mean others here, so the command must be the same.
    """
    found = []
    for row in rows:
        with suppress(psutil.Error, ValueError, IndexError):
            process = psutil.Process(int(row[1]))
            if " ".join(process.cmdline()) == row[-1].strip():
                found.append(process)
    return found


def names_of(found: Collection[psutil.Process]) -> tuple[str, ...]:
    """`VLLM::EngineCore (4711)` for each."""
    shown = []
    for process in found:
        with suppress(psutil.Error):
            shown.append(f"{process.name()} ({process.pid})")
    return tuple(shown)


def _kill(find: Callable[[], Collection[psutil.Process]]) -> list[int]:
    ended: list[int] = []
    while found := [process for process in find() if process.pid not in ended]:
        for process in found:
            ended.append(process.pid)
            with suppress(psutil.Error):
                process.kill()
        _await_end(found, within=_GONE_WITHIN)
    return ended


def _is_tracker(process: psutil.Process) -> bool:
    try:
        return any("multiprocessing.resource_tracker" in word for word in process.cmdline())
    except psutil.Error:
        return False


def _await_end(those: Collection[psutil.Process], within: float) -> None:
    """Wait without psutil's own waiting, which would reap children that somebody else waits for."""
    until = time.monotonic() + within
    while any(map(_runs, those)) and time.monotonic() < until:
        time.sleep(_LOOK_EVERY)


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
