"""The folder of a matrix run: gone at its end, and reaped by the next run when it was killed."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import tempfile
import threading
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.launch import scratch
from pytest_vllm.launch.protocol import LaunchContext
from pytest_vllm.launch.signals import ending_signals

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = f"{scratch.PREFIX}matrix-"
#: The folder, for the processes of the run.
NAMED = "PYTEST_VLLM_MATRIX_ROOM"


@contextlib.contextmanager
def own_room() -> Iterator[Path]:
    """A folder for everything of this run; one within another is the same."""
    if NAMED in os.environ:
        yield Path(os.environ[NAMED])
        return
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    # marked like a server's temporary files, so that the sweep before any later start removes it
    scratch.note_owner(folder, LaunchContext("matrix", folder, os.getpid()))
    os.environ[NAMED] = str(folder)
    try:
        with ending_signals():
            yield folder
    finally:
        del os.environ[NAMED]
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def room(name: str) -> Iterator[Path]:
    """A run folder for one server: nobody else looks into it."""
    with own_room() as whole:
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=whole))
        try:
            yield folder / "run"
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def own_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes of a run, with its folder. What ends the run ends them, at once and not after their work."""
    with own_room(), ProcessPoolExecutor(workers, initializer=end_with_parent) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.kill()  # a worker takes the end of its own process for the end of one task
            raise


def end_with_parent() -> None:
    """Let this process of a pool end when its maker is killed; its server's watchdog sees to the rest."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name="ends with its parent", daemon=True).start()
