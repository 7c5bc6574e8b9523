"""Who owns a server: the process whose death makes everything of its run an orphan.

A process number alone is not an identity: numbers are used again, and a container's numbers mean nothing
outside of it. What cannot be told counts as alive, so that nothing of somebody else's is ever removed.
"""

from __future__ import annotations

import os
import socket
from dataclasses import astuple, dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class Owner:
    """A process, named so that it can be recognised later.

    Args:
        pid: its number in its own process namespace.
        start: when it started, in the kernel's clock ticks since boot where there is a /proc.
        boot: which boot of the machine it lives in.
        host: which machine.
        namespace: which process namespace.
        user: whose it is.
    """

    pid: int
    start: str
    boot: str
    host: str
    namespace: str
    user: str

    @classmethod
    def of(cls, pid: int) -> Owner:
        """The running process with this number."""
        return cls(pid, _start(pid) or "", _boot(), _host(), _namespace(), _user())

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """Read back what `str()` wrote; None for anything else."""
        parts = text.split(":")
        if len(parts) != 6 or not parts[0].isdigit():
            return None
        return cls(int(parts[0]), *parts[1:])

    def __str__(self) -> str:
        """One word for labels and environment variables."""
        return ":".join(str(part) for part in astuple(self))

    def alive(self) -> bool:
        """Whether the process runs, or whether that cannot be told from here."""
        if self.host != _host() or self.user != _user():
            return True
        if self.boot != _boot():
            return False
        if self.namespace != _namespace():
            return True
        start = _start(self.pid)
        return start is not None and start in ("?", self.start)


def _start(pid: int) -> str | None:
    """When a process started; None when there is none, "?" when it may not be looked at."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return None if (_PROC / "self").exists() else _start_without_proc(pid)
    except PermissionError:
        return "?"
    state, *rest = stat.rpartition(")")[2].split()
    return None if state in "ZX" else rest[18]


def _start_without_proc(pid: int) -> str | None:
    import psutil  # noqa: PLC0415 - the watchdog must start without it

    try:
        return f"{psutil.Process(pid).create_time():.0f}"
    except psutil.NoSuchProcess:
        return None
    except psutil.AccessDenied:
        return "?"


def _boot() -> str:
    return _first_line("/proc/sys/kernel/random/boot_id")


def _host() -> str:
    return f"{socket.gethostname()}/{_first_line('/etc/machine-id')[:8]}"


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else ""


def _namespace() -> str:
    try:
        return str((_PROC / "self/ns/pid").stat().st_ino)
    except OSError:
        return ""


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except OSError:
        return ""


def own() -> Owner:
    """The owner that this process is."""
    return Owner.of(os.getpid())
