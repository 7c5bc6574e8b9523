"""A folder for a server's temporary files: vLLM leaves its sockets there, also when it ends well."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.launch.owner import Owner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.launch.protocol import LaunchContext

PREFIX = "pytest-vllm-"
OWNER_FILE = ".owner"
_KEPT = "kept"


def make(context: LaunchContext, mark: str) -> Path:
    """A new folder, its path short: the sockets inside may not have long ones."""
    folder = Path(tempfile.gettempdir()) / f"{PREFIX}{mark}"
    context.made("folder", str(folder))
    folder.mkdir(mode=0o700)
    note_owner(folder, context)
    return folder


def note_owner(folder: Path, context: LaunchContext) -> None:
    """Write down whose folder this is."""
    kept = f"\n{_KEPT}" if context.keep else ""
    text = f"{Owner.of(context.owner_pid)}\n{context.run_id}{kept}"
    (folder / OWNER_FILE).write_text(text, "utf-8")


def read_owner(marker: Path) -> tuple[Owner | None, str, bool]:
    """Owner, run and whether it is to be kept, from an owner file."""
    owner, run_id, *rest = [*marker.read_text("utf-8").splitlines(), "", ""]
    return Owner.parse(owner), run_id, _KEPT in rest


def all_of_this_user() -> Iterator[Path]:
    """Every such folder of this user, of whatever run."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if folder.is_dir() and not folder.is_symlink() and folder.stat().st_uid == os.getuid():
            yield folder


def remove(folder: Path) -> None:
    """Remove it with everything inside."""
    shutil.rmtree(folder, ignore_errors=True)
