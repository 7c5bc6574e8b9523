"""A tiny process that outlives pytest by seconds: when pytest dies, it removes what that run made.

It sits in a session of its own at the other end of a pipe. The end of the pipe, or a new parent, means that
pytest died, by whatever: SIGKILL and the kernel's memory killer included. Told "close" it just leaves.
Until then it needs the standard library only; the means to remove things are imported when they are needed.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

#: After the parent's death: how long things may still turn up that were on their way, seconds.
_LATECOMERS = 60.0
_QUIET = 2
_LOOK_EVERY = 0.5
_CLOSE = b'"close"'


class Watchdog:
    """The parent's end.

    Args:
        scope: the mark of what is to be removed.
        folder: the run folder: its lock files go too, and `watchdog.log` tells what was removed.
    """

    def __init__(self, scope: str, folder: Path) -> None:
        """Nothing is started yet."""
        self._scope, self._folder = scope, folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process; it needs no time to become effective, the pipe is there at once."""
        root = Path(__file__).parents[2]
        # by path and without that path in sys.path: no package is imported while it only waits
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and file
            [sys.executable, "-P", __file__, self._scope, str(self._folder), str(os.getpid()), str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The number of its process; 0 before it is started."""
        return self._process.pid if self._process else 0

    def register(self, kind: str, id: str) -> None:  # noqa: A002
        """Tell it of something that is about to be made: ("docker", "URL NAME"), ("process", "4711")."""
        self._send(json.dumps([kind, id]).encode())

    def close(self) -> None:
        """All is removed: let it leave. Waits until it has."""
        if self._process is None:
            return
        self._send(_CLOSE)
        with suppress(OSError):
            self._input().close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _send(self, line: bytes) -> None:
        # a watchdog that was killed must not take the run with it
        with suppress(OSError, ValueError):
            self._input().write(line + b"\n")
            self._input().flush()

    def _input(self) -> IO[bytes]:
        if self._process is None or self._process.stdin is None:
            raise OSError("the watchdog is not running")
        return self._process.stdin


def main(scope: str, folder: Path, parent: int, root: str) -> None:
    """Wait for the parent's end or its word, then remove what it left."""
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGINT)):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    made = _listen(parent)
    if made is not None:
        sys.path.append(root)
        _remove(scope, folder, made)


def _listen(parent: int) -> list[tuple[str, str]] | None:
    """What was registered until the parent died; None when it said that all is well."""
    text = b""
    while os.getppid() == parent:
        # a child that pytest forked may hold the pipe open, hence the look at the parent
        ready, _, _ = select.select([0], [], [], 1.0)
        if ready:
            piece = os.read(0, 65_536)
            if not piece:
                break
            text += piece
    while select.select([0], [], [], 0)[0] and (piece := os.read(0, 65_536)):
        text += piece
    lines = text.split(b"\n")
    if _CLOSE in lines:
        return None
    return [(kind, id_) for kind, id_ in map(json.loads, filter(None, lines[:-1]))]


def _remove(scope: str, folder: Path, made: list[tuple[str, str]]) -> None:
    from pytest_vllm.launch.clear import clear  # noqa: PLC0415 - only now

    quiet, until = 0, time.monotonic() + _LATECOMERS
    # a container that the daemon was still creating turns up after the first look
    while quiet < _QUIET and time.monotonic() < until:
        removed = clear(scope, made, folder)
        quiet = 0 if removed else quiet + 1
        if removed and folder.is_dir():
            with (folder / "watchdog.log").open("a", encoding="utf-8") as log:
                log.writelines(f"pytest died; removed {one}\n" for one in removed)
        time.sleep(_LOOK_EVERY)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
