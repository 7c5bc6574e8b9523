"""A server that this run has started or found: its handle, log and gauges, until it is stopped."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.launch.access import access_of
from pytest_vllm.launch.arguments import request_key
from pytest_vllm.launch.diagnose import boot_error
from pytest_vllm.launch.diagnosis import Sure, diagnose
from pytest_vllm.launch.guard import guarded
from pytest_vllm.launch.notable import startup_warnings
from pytest_vllm.launch.places import suited, suiting
from pytest_vllm.launch.protocol import BootError, LaunchContext
from pytest_vllm.launch.registry import launcher_for
from pytest_vllm.launch.wait import wait_ready
from pytest_vllm.preflight.evict import make_room, shares_memory
from pytest_vllm.run.gauges import gauges_for
from pytest_vllm.run.server_log import ServerLog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_vllm.launch.protocol import Exit, Handle
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.run.context import RunContext
    from pytest_vllm.run.gauges import Gauges


@dataclass
class BootedServer:
    """A server that answers.

    Args:
        run: what the run gives to every server of it.
        profile: what it was started by.
        folder: where its log and recordings go.
        stack: what is to be undone when it is stopped.
        handle: how its launcher reaches it.
        log: its log, copied to a file.
        gauges: memory, KV cache and queue over time.
        boot_phases: (phase, seconds since start) as read from its log.
        unended: why no load is put on it, as its streams have no end; empty while they have.
    """

    run: RunContext
    profile: Profile
    folder: Path
    stack: ExitStack
    handle: Handle
    log: ServerLog
    gauges: Gauges
    boot_phases: tuple[tuple[str, float], ...] = ()
    unended: str = ""

    @property
    def url(self) -> str:
        """Where it answers. Raises BootError when its launcher published no port."""
        if self.handle.url is None:
            raise BootError("the server is ready but published no port", evidence=(self.handle.description,))
        return self.handle.url

    @property
    def api_key(self) -> str | None:
        """The key that requests carry, from the environment."""
        return request_key(self.profile, os.environ)

    def death(self) -> str:
        """How it ended, in words; empty while it lives."""
        self.log.flush()
        if self.handle.alive():
            return ""
        if tripped := self.gauges.tripped:
            return f"the server was {tripped}"
        ended = self.handle.exit()
        why = diagnose(self.handle.logs(), ended)
        cause = f": {self.run.redactor.text(why.means)}" if why.sure in (Sure.CERTAIN, Sure.LIKELY) else ""
        return f"the server ended{_status(ended)} while it was being tested{cause}"

    def ended(self) -> BootError | None:
        """The block that says how it ended at its first requests; None while it lives, or is not ours."""
        if not self.profile.server.kind.starts or self.handle.alive():
            return None
        self.log.flush()
        ended = self.handle.exit()
        what = f"the server was ready, and ended{_status(ended)} at its first requests"
        return suited(boot_error(what, self.handle.logs(), ended), self.profile.server.launcher)

    def replaced_by(self, handle: Handle) -> None:
        """Follow the log and the memory of a server that was started in its place."""
        self.handle = handle
        self.log = ServerLog(handle, self.folder / "server-restarted.log", self.run.redactor.text)
        self.stack.callback(self.log.close)
        self.gauges.watch(handle)
        self.gauges.scrape(self.url, self.api_key, access_of(self.profile))

    def stop(self) -> None:
        """Stop it; its log, its exit status and its recordings stay readable."""
        self.log.flush()
        if self.run.keep:
            self.run.progress.say(
                f"left running at {self.handle.url}, as --vllm-keep asks; `pytest-vllm reap` stops it"
            )
        self.stack.close()


def _status(ended: Exit | None) -> str:
    return "" if ended is None or ended.status is None else f" with status {ended.status}"


def folder_of(run: RunContext, profile: Profile) -> Path:
    """The folder of a profile's server within the run folder."""
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in profile.name)
    return run.folder / name


def boot(run: RunContext, profile: Profile) -> BootedServer:
    """Start the profile's server and wait until it answers. Raises BootError; nothing is left then."""
    started = time.monotonic()
    folder = folder_of(run, profile)
    folder.mkdir(parents=True, exist_ok=True)
    context = LaunchContext(
        run.run_id, folder, os.getpid(), tuple(profile.defects), dict(os.environ), keep=run.keep
    )
    with ExitStack() as stack:
        guard = stack.enter_context(guarded(context, run.folder.parent))
        for orphan in guard.reaped:
            run.progress.say(f"reaped what a dead run had left: {orphan.kind} {orphan.name}")
        profile = _staged(run, profile, folder, stack)
        if shares_memory(profile):
            make_room(run.progress.say, evict=run.evict_tenants)
        gauges = gauges_for(profile, folder, run.rootdir, tier=run.tier)
        stack.callback(gauges.close)
        with suiting(profile.server.launcher), _memory_named(gauges):
            handle = stack.enter_context(guard.start(launcher_for(profile.server.launcher), profile))
            gauges.watch(handle)
            run.progress.phase("boot", handle.description)
            log = ServerLog(handle, folder / "server.log", run.redactor.text)
            stack.callback(log.close)
            access = access_of(profile)
            report = wait_ready(handle, profile.boot, run.progress.boot, access=access)
        run.progress.booted(report)
        for one in startup_warnings(handle.logs()):
            run.progress.say(run.redactor.text(f"start-up warning, line {one.number}: {one.means}"))
        run.spent("boot", started, profile=profile.name)
        phases = tuple(report.phases)
        return BootedServer(run, profile, folder, stack.pop_all(), handle, log, gauges, phases)


def _staged(run: RunContext, profile: Profile, folder: Path, stack: ExitStack) -> Profile:
    """A scripted server's profile with the model that is made for it; removed once the server is gone."""
    if not profile.server.scripted:
        return profile
    from pytest_vllm.scripted.stage import staged  # noqa: PLC0415 - few runs are scripted

    stage = folder.absolute() / "scripted"
    if not run.keep:
        stack.callback(shutil.rmtree, stage, ignore_errors=True)
    try:
        return staged(profile, stage)
    except LookupError as error:
        others = "pick others: --vllm-tool-parser=NAME --vllm-reasoning-parser=NAME"
        raise BootError(str(error.args[0]), try_=(others,)) from error


@contextmanager
def _memory_named(gauges: Gauges) -> Iterator[None]:
    """Let a boot that our own guard of the memory ended say so."""
    try:
        yield
    except BootError as error:
        if not gauges.tripped:
            raise
        raise BootError(
            f"the server was {gauges.tripped}",
            evidence=error.evidence,
            means="model, KV cache and everything else on this machine do not fit together",
            try_=("lower gpu-memory-utilization in [server.args]", "end what else holds memory"),
            cause="shared-memory-low",
        ) from error
