"""Removing everything of one guarded server, whatever state it is in."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.launch import docker, engine, processes, scratch
from pytest_vllm.launch.protocol import BootError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    import psutil

_LEFTOVERS = (scratch.OWNER_FILE, "*.lock", "*.tmp")
_QUICK = 10.0


def clear(scope: str, made: Sequence[tuple[str, str]], folder: Path | None = None) -> list[str]:
    """Remove everything of one guarded server, whatever state it is in. Returns what was removed.

    Args:
        scope: the server's mark.
        made: what `LaunchContext.made` was told: (kind, id). Says where to look, not what to remove.
        folder: the run folder whose lock files go too.
    """
    removed: list[str] = []
    if any(kind == "process" for kind, _ in made):
        leaders = {int(id_) for kind, id_ in made if kind == "process" and id_.isdigit()}
        removed += [f"process {pid}" for pid in processes.end(lambda: _of_scope(scope, leaders))]
    for url in dict.fromkeys(id_.split()[0] for kind, id_ in made if kind in ("docker", "podman")):
        with contextlib.suppress(BootError):
            removed += _clear_engine(docker.connect(url, answer=_QUICK), scope)
    for path in (Path(id_) for kind, id_ in made if kind == "folder"):
        if path.exists():
            scratch.remove(path)
            removed.append(f"folder {path}")
    if folder is not None:
        remove_leftovers(folder)
    return removed


def _clear_engine(one: engine.Engine, scope: str) -> list[str]:
    removed = []
    with contextlib.closing(one.client), contextlib.suppress(*one.errors):
        for container in one.containers(f"{engine.SCOPE}={scope}"):
            remove_container(one, container)
            processes.end(lambda id_=container.id: list(processes.lingering(id_)))  # type: ignore[misc]
            removed.append(f"container {container.name}")
    return removed


def _of_scope(scope: str, leaders: set[int]) -> Collection[psutil.Process]:
    marked = {p.pid: p for p, _ in processes.marked(lambda environ: environ.get(processes.SCOPE) == scope)}
    # a session is only looked at while its leader still carries the mark: numbers are used again
    living = leaders & marked.keys()
    return ({p.pid: p for p in processes.of_session(living)} | marked).values()


def remove_container(one: engine.Engine, container: Any) -> None:
    """Remove a container by force, with its anonymous volumes. Raises OSError when it stays."""
    try:
        container.remove(force=True, v=True)
    except one.missing:
        return
    except one.errors as error:
        if "already in progress" not in str(error):
            raise OSError(engine.words_of(error)) from error


def remove_leftovers(folder: Path) -> None:
    """Remove lock files and half-written files of a run folder."""
    for pattern in _LEFTOVERS:
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)
