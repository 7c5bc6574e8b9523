"""Finding and removing what dead runs left behind, and never anything else.

A thing is an orphan when it carries this tool's mark and the process that the mark names is gone. What
carries no mark, or belongs to a process that lives or cannot be judged from here, is not touched.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from pytest_vllm.launch import docker, engine, podman, processes, scratch
from pytest_vllm.launch.clear import remove_container, remove_leftovers
from pytest_vllm.launch.owner import Owner
from pytest_vllm.launch.protocol import BootError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

_QUICK = 5.0


@dataclass(frozen=True)
class Orphan:
    """Something of a dead run.

    Args:
        kind: "docker container", "podman container", "process", "folder" (temporary) or "lock files".
        name: container name, process command or path.
        run_id: the run that made it.
        age: seconds since it was made.
        owner_pid: the process that is gone.
        kept: whether it was meant to stay (`--vllm-keep`); only removed when asked for by hand.
        remove: removes it.
    """

    kind: str
    name: str
    run_id: str
    age: float
    owner_pid: int
    kept: bool = False
    remove: Callable[[], None] = field(default=lambda: None, repr=False, compare=False)


def find_orphans(runs: Path | None = None, environ: Mapping[str, str] | None = None) -> list[Orphan]:
    """What dead runs left: containers of every engine of this machine, processes, temporary files.

    Args:
        runs: the folder of run folders, to look for lock files in; None looks for none.
        environ: where DOCKER_HOST and the like are taken from; this process's own by default.
    """
    found = [*_processes()]
    with _engines(environ or os.environ) as reachable:
        for one in reachable:
            with contextlib.suppress(*one.errors):
                found += list(_containers(one))
    return [*found, *_folders(), *(_files(runs) if runs else ())]


def reap(orphans: Iterable[Orphan]) -> list[Orphan]:
    """Remove them. Returns those that could not be removed."""
    failed = []
    for orphan in orphans:
        try:
            orphan.remove()
        except (OSError, BootError):
            failed.append(orphan)
    return failed


def sweep(runs: Path | None = None, environ: Mapping[str, str] | None = None) -> list[Orphan]:
    """Remove what dead runs left, kept servers excepted. Returns what was removed."""
    orphans = [orphan for orphan in find_orphans(runs, environ) if not orphan.kept]
    failed = reap(orphans)
    return [orphan for orphan in orphans if orphan not in failed]


def _processes() -> Iterator[Orphan]:
    def dead(environ: Mapping[str, str]) -> bool:
        owner = Owner.parse(environ.get(processes.OWNER, ""))
        return owner is not None and not owner.alive()

    for process, environ in processes.marked(dead):
        with contextlib.suppress(psutil.Error):
            owner = Owner.parse(environ[processes.OWNER])
            yield Orphan(
                "process",
                f"{process.pid} {' '.join(process.cmdline())[:120]}",
                environ.get(processes.RUN, ""),
                time.time() - process.create_time(),
                owner.pid if owner else 0,
                processes.KEEP in environ,
                lambda process=process: _kill(process),  # type: ignore[misc]
            )


def _kill(process: Any) -> None:
    # psutil compares the start time too: another process that got the number meanwhile is safe
    with contextlib.suppress(psutil.NoSuchProcess):
        processes.end(lambda: [process])


@contextlib.contextmanager
def _engines(environ: Mapping[str, str]) -> Iterator[list[engine.Engine]]:
    with contextlib.ExitStack() as stack:
        found = []
        for url in dict.fromkeys((docker.url_from(environ), podman.url_from(environ))):
            path = Path(url.removeprefix("unix://"))
            if url.startswith("unix://") and path.exists() and os.access(path, os.W_OK):
                with contextlib.suppress(BootError):
                    found.append(docker.connect(url, answer=_QUICK))
                    stack.enter_context(contextlib.closing(found[-1].client))
        yield found


def _containers(one: engine.Engine) -> Iterator[Orphan]:
    for container in one.containers(engine.RUN):
        labels = container.labels
        owner = Owner.parse(labels.get(engine.OWNER, ""))
        if owner is None or owner.alive():
            continue
        yield Orphan(
            f"{one.name} container",
            container.name,
            labels[engine.RUN],
            _age(str(container.attrs.get("Created", ""))),
            owner.pid,
            engine.KEEP in labels,
            lambda id_=container.id: _remove_later(one.url, id_),  # type: ignore[misc]
        )


def _remove_later(url: str, id_: str) -> None:
    one = docker.connect(url, answer=2 * _QUICK)
    with contextlib.closing(one.client), contextlib.suppress(one.missing):
        remove_container(one, one.client.containers.get(id_))


def _age(created: str) -> float:
    try:
        moment = dt.datetime.fromisoformat(created[:19]).replace(tzinfo=dt.UTC)
    except ValueError:
        return 0.0
    return (dt.datetime.now(dt.UTC) - moment).total_seconds()


def _folders() -> Iterator[Orphan]:
    for folder in scratch.all_of_this_user():
        marker = folder / scratch.OWNER_FILE
        yield from _marked(marker, "folder", lambda folder=folder: scratch.remove(folder))  # type: ignore[misc]


def _files(runs: Path) -> Iterator[Orphan]:
    for folder in _subfolders(runs, 2):
        marker = folder / scratch.OWNER_FILE
        yield from _marked(marker, "lock files", lambda folder=folder: remove_leftovers(folder))  # type: ignore[misc]


def _subfolders(folder: Path, depth: int) -> Iterator[Path]:
    """Folders below this one; others come and go meanwhile, which `Path.glob` does not bear."""
    with contextlib.suppress(OSError):
        for one in sorted(folder.iterdir()):
            if one.is_dir() and not one.is_symlink():
                yield one
                if depth > 1:
                    yield from _subfolders(one, depth - 1)


def _marked(marker: Path, kind: str, remove: Callable[[], None]) -> Iterator[Orphan]:
    with contextlib.suppress(OSError):
        owner, run_id, kept = scratch.read_owner(marker)
        if owner is not None and not owner.alive():
            age = time.time() - marker.stat().st_mtime
            yield Orphan(kind, str(marker.parent), run_id, age, owner.pid, kept, remove)
