"""How busy this machine is: whether it, and not the server, may be why nothing came for a while.

Linux alone tells: the kernel's pressure files (PSI), `/proc/stat`, the load average, the cgroup's throttling.
Elsewhere nothing is known, and nothing is excused.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

#: Shares of a stretch from which on the machine is too busy: taken by the hypervisor or the cgroup's quota;
#: waited for a processor, while so many tasks per processor want one; stalled altogether for memory or disk.
STOLEN, WAITED, CROWD, STALLED = 0.2, 0.6, 2.0, 0.2


@dataclass(frozen=True)
class Pressure:
    """What the kernel had counted at a moment. Seconds, summed over processors where there are several.

    Args:
        at: the moment, by `time.monotonic`.
        stolen: seconds that the hypervisor gave to others.
        throttled: seconds that this cgroup's quota kept tasks from running.
        waited: seconds in which some task waited for a processor.
        memory: seconds in which every task waited for memory.
        disk: the same for the disk.
        load: tasks that run or want to, over a minute.
        processors: how many there are.
    """

    at: float
    stolen: float = 0.0
    throttled: float = 0.0
    waited: float = 0.0
    memory: float = 0.0
    disk: float = 0.0
    load: float = 0.0
    processors: int = 1


@dataclass(frozen=True)
class Strain:
    """What a machine was under between two moments; shares of that time from 0 to 1.

    Args:
        stolen: share of its processors that the hypervisor gave to others.
        throttled: share of the time that the cgroup's quota took.
        waited: share in which some task waited for a processor.
        memory: share in which everything waited for memory.
        disk: the same for the disk.
        load: tasks per processor that run or want to.
    """

    stolen: float = 0.0
    throttled: float = 0.0
    waited: float = 0.0
    memory: float = 0.0
    disk: float = 0.0
    load: float = 0.0

    @property
    def starves(self) -> bool:
        """Whether a healthy server may well stand still on such a machine."""
        crowded = self.waited >= WAITED and self.load >= CROWD
        short = max(self.memory, self.disk) >= STALLED
        return crowded or short or max(self.stolen, self.throttled) >= STOLEN

    @property
    def text(self) -> str:
        """In words: `load 6.1 per processor, tasks waited for one in 93 % of the time`."""
        told = [f"load {self.load:.2g} per processor"]
        shares = (
            (self.waited, "tasks waited for one in {} of the time"),
            (self.stolen, "the hypervisor took {}"),
            (self.throttled, "the cgroup's quota took {}"),
            (self.memory, "everything waited for memory in {}"),
            (self.disk, "everything waited for the disk in {}"),
        )
        return ", ".join([*told, *(words.format(f"{share:.0%}") for share, words in shares if share >= 0.01)])


def read(root: Path = Path("/")) -> Pressure:
    """The pressure now; what the system does not tell is 0.

    Args:
        root: where `proc` and `sys` lie.
    """
    count = os.cpu_count() or 1
    stat = _text(root / "proc/stat").split("\n", 1)[0].split()
    group = dict(_pair(line) for line in _text(root / "sys/fs/cgroup/cpu.stat").splitlines())
    return Pressure(
        at=time.monotonic(),
        stolen=float(stat[8]) / 100 if len(stat) > 8 else 0.0,
        throttled=group.get("throttled_usec", 0.0) / 1e6,
        waited=_stalled(root, "cpu", "some"),
        memory=_stalled(root, "memory", "full"),
        disk=_stalled(root, "io", "full"),
        load=float((_text(root / "proc/loadavg").split() or ["0"])[0]),
        processors=count,
    )


def between(before: Pressure, after: Pressure) -> Strain:
    """What the machine was under between two moments."""
    seconds = max(after.at - before.at, 1e-3)

    def share(name: str, parts: int = 1) -> float:
        grown: float = getattr(after, name) - getattr(before, name)
        return min(1.0, max(0.0, grown / seconds / parts))

    return Strain(
        stolen=share("stolen", after.processors),
        throttled=share("throttled"),
        waited=share("waited"),
        memory=share("memory"),
        disk=share("disk"),
        load=after.load / after.processors,
    )


def _stalled(root: Path, name: str, kind: str) -> float:
    for line in _text(root / "proc/pressure" / name).splitlines():
        words = line.split()
        if words and words[0] == kind:
            return float(words[-1].partition("=")[2]) / 1e6
    return 0.0


def _pair(line: str) -> tuple[str, float]:
    name, _, value = line.partition(" ")
    return name, float(value) if value.strip().isdigit() else 0.0


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError:
        return ""
