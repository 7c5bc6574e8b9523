"""Processes of a run: marked in their environment, found and ended.

vLLM's EngineCore outlives a killed API server (measured on 0.32.0: 90 s and more), so ending a server means
ending everything that carries its mark or lives in its session, not only the process that was started.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import psutil

from pytest_vllm.launch.owner import Owner

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from pytest_vllm.launch.protocol import LaunchContext

RUN, SCOPE, OWNER, KEEP = "PYTEST_VLLM_RUN", "PYTEST_VLLM_SCOPE", "PYTEST_VLLM_OWNER", "PYTEST_VLLM_KEEP"
_GONE_WITHIN = 5.0


def marks(context: LaunchContext) -> dict[str, str]:
    """The environment entries that mark a process as belonging to a run."""
    found = {RUN: context.run_id, SCOPE: context.scope, OWNER: str(Owner.of(context.owner_pid))}
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


def end(find: Callable[[], Collection[psutil.Process]]) -> list[int]:
    """Kill what is found until nothing is found any more. Returns the numbers of what was killed."""
    ended: list[int] = []
    while found := [process for process in find() if process.pid not in ended]:
        for process in found:
            ended.append(process.pid)
            try:
                process.kill()
            except psutil.Error:
                continue
        psutil.wait_procs(found, timeout=_GONE_WITHIN)
    return ended
