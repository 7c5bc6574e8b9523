"""Nothing is left behind: a sweep before, a watchdog and signal handlers during, a last look after."""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_vllm.launch import scratch
from pytest_vllm.launch.clear import clear
from pytest_vllm.launch.reap import Orphan, sweep
from pytest_vllm.launch.signals import ending_signals
from pytest_vllm.launch.watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_vllm.launch.protocol import Handle, LaunchContext, Launcher
    from pytest_vllm.profile.model import Profile


@dataclass(frozen=True)
class Guard:
    """Watches over one server.

    Args:
        context: the launch context to start the server with; it reports to the watchdog.
        reaped: what dead runs had left and is removed now.
        watchdog_pid: the watchdog's process, 0 when the server is to be kept.
    """

    context: LaunchContext
    reaped: tuple[Orphan, ...] = ()
    watchdog_pid: int = 0
    made: list[tuple[str, str]] = field(default_factory=list, repr=False)

    def start(self, launcher: Launcher, profile: Profile) -> Handle:
        """Start a server under this guard."""
        return launcher.start(profile, self.context)


@contextlib.contextmanager
def guarded(context: LaunchContext, runs: Path | None = None) -> Iterator[Guard]:
    """Watch over one server of a run, from before it is made until after it is gone.

    Several may be open at a time, one for each server. With `context.keep` the server is left alone.

    Args:
        context: of the run; the guard's own context carries a scope and the watchdog.
        runs: the folder of run folders, where lock files of dead runs are looked for.
    """
    reaped = tuple(sweep(runs, context.environ or None))
    scope = context.scope or f"{context.run_id}-{secrets.token_hex(4)}"
    made: list[tuple[str, str]] = []
    watchdog = Watchdog(scope, context.folder)

    def note(kind: str, id: str) -> None:  # noqa: A002
        made.append((kind, id))
        watchdog.register(kind, id)
        context.made(kind, id)

    own = replace(context, scope=scope, made=note)
    with ending_signals():
        try:
            if not context.keep:
                watchdog.start()
                scratch.note_owner(context.folder, own)
            yield Guard(own, reaped, watchdog.pid, made)
        finally:
            if not context.keep:
                clear(scope, made)
                (context.folder / scratch.OWNER_FILE).unlink(missing_ok=True)
            # only now: when anything above is interrupted, the watchdog sees to the rest
            watchdog.close()
