"""What a launcher is: something that starts one server and can always end it.

A launcher imports the profile and nothing of the run. `start` returns at once; waiting is `wait.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pytest_vllm.profile.model import Profile


def _nobody(kind: str, id: str) -> None:  # noqa: A002
    """The default of `LaunchContext.made`: nobody needs to know."""


@dataclass(frozen=True)
class LaunchContext:
    """What a launcher may know of the run.

    Args:
        run_id: names this run on everything it makes.
        folder: the run folder, for files that the launcher keeps.
        owner_pid: the process whose death makes everything of this run an orphan.
        defects: names of simulator defects (sim launcher only).
        environ: the environment that secrets are taken from; empty means this process's own.
        scope: names one guarded server of the run, so that several can run side by side.
        keep: leave the server running when its handle is left.
        made: told of everything right before it comes into being: (kind, id). See guard.py.
    """

    run_id: str
    folder: Path
    owner_pid: int
    defects: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    scope: str = ""
    keep: bool = False
    made: Callable[[str, str], None] = field(default=_nobody, repr=False, compare=False)


@dataclass(frozen=True)
class Exit:
    """How a server ended: its exit status, whether the kernel killed it for memory, when."""

    status: int | None
    oom: bool = False
    signal: str = ""


@dataclass(frozen=True)
class Halt:
    """How a server was stopped so that it can be started again.

    Args:
        seconds: from the signal until the main process had ended.
        killed: whether it had to be killed, because it did not end by itself in time.
        left: what of it still ran a while after its main process had ended, each as `name (pid)`.
    """

    seconds: float
    killed: bool = False
    left: tuple[str, ...] = ()


class BootError(Exception):
    """The server could not be started. Printed as one block, exit status 20.

    Args:
        what: what happened, one sentence.
        evidence: lines that show it (log lines, the daemon's words).
        means: what it means, empty when unknown.
        try_: the next steps.
        cause: id of the known cause (causes.toml), empty when it is none of these.
    """

    def __init__(
        self,
        what: str,
        *,
        evidence: tuple[str, ...] = (),
        means: str = "",
        try_: tuple[str, ...] = (),
        cause: str = "",
    ) -> None:
        """Keep the parts; `str()` is the first sentence."""
        super().__init__(what)
        self.what, self.evidence, self.means, self.try_ = what, evidence, means, try_
        self.cause = cause


class Handle(Protocol):
    """A started server. Usable in `with`: leaving it stops what was started, always."""

    @property
    def url(self) -> str | None:
        """Base URL without `/v1`; None until the published port is known."""

    @property
    def description(self) -> str:
        """What runs, for people: `container pytest-vllm-7c1e started`."""

    def alive(self) -> bool:
        """Whether the server's main process still runs."""

    def logs(self, after: int = 0) -> list[str]:
        """Log lines from line number `after` on; still readable once stopped."""

    def exit(self) -> Exit | None:
        """How it ended, None while it runs; still readable once stopped."""

    def facts(self) -> Mapping[str, Any]:
        """What the report records: image digest, container id, command, pid, GPUs seen inside."""

    def stop(self) -> None:
        """End everything that was started. Idempotent, safe at any moment."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...


class Restartable(Handle, Protocol):
    """A server that was started here, so that it may be stopped and started again."""

    def halt(self) -> Halt:
        """Stop it as an operator does: ask, wait, kill what is left. A container stays."""

    def again(self) -> Restartable:
        """Start what `halt` stopped, on the same terms, with a log of its own. Raises BootError."""

    def free_memory(self) -> int | None:
        """Free bytes of accelerator memory where the launcher itself knows; None: ask the machine."""


@runtime_checkable
class Benched(Protocol):
    """A server beside which commands can be run."""

    def inside(self, words: Sequence[str], patience: float, env: Mapping[str, str]) -> tuple[int | None, str]:
        """Run a command there, with these variables beside the server's own.

        Secrets come as variables: everybody sees command lines. Returns its exit status, None when it did not
        end, and what it printed.
        """

    def bench(self) -> tuple[tuple[str, ...], str] | None:
        """How `vllm bench serve` is called there, and the server's URL for it; None where there is none."""


class Launcher(Protocol):
    """Starts servers of one kind."""

    name: str

    def start(self, profile: Profile, context: LaunchContext) -> Handle:
        """Start the profile's server and return at once. Raises BootError."""
