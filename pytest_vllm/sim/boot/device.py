"""The simulated accelerator's memory, in a file: what several starts on one machine leave and find."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Names the file; without it every start has the machine to itself.
VARIABLE = "VLLM_SIM_DEVICE"
#: Who holds memory that no process is there for any more.
DRIVER = "driver"
#: Seconds that a worker stays which nobody ends.
STAYS = 120


class Device:
    """Who holds how many bytes, by process number, and how often a server was started here."""

    def __init__(self, path: Path | None) -> None:
        """Read what earlier starts left."""
        self._path, self._total = path, 0.0
        found: dict[str, Any] = {}
        if path is not None:
            with suppress(OSError, ValueError):
                found = json.loads(path.read_text("utf-8"))
        self.starts: int = found.get("starts", 0)
        held: dict[str, float] = found.get("held", {})
        self._held = {who: size for who, size in held.items() if who == DRIVER or _lives(int(who))}

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Device:
        """The device that the environment names."""
        given = environ.get(VARIABLE)
        return cls(Path(given) if given else None)

    @property
    def taken(self) -> float:
        """Bytes that others hold."""
        return sum(self._held.values())

    def take(self, size: float, total: float) -> None:
        """This process holds so many bytes of so many from now on."""
        self.starts += 1
        self._held[str(os.getpid())] = size
        self._write(total)

    def leave(self, what: str) -> None:
        """This process ends: nothing stays, or its `memory` does, or a `worker` that holds it."""
        size = self._held.pop(str(os.getpid()), 0.0)
        if what == "memory":
            self._held[DRIVER] = size
        elif what == "worker":
            command = [sys.executable, "-c", f"import time; time.sleep({STAYS})"]
            output = subprocess.DEVNULL
            worker = subprocess.Popen(command, stdin=output, stdout=output, stderr=output)  # noqa: S603 - ours
            self._held[str(worker.pid)] = size
        self._write()

    def _write(self, total: float | None = None) -> None:
        if self._path is None:
            return
        if total is not None:
            self._total = total
        body = {"starts": self.starts, "held": self._held, "total": self._total}
        self._path.write_text(json.dumps(body), "utf-8")


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
