"""By whom a run was made, and of which commit: what a reader of a report asks first."""

from __future__ import annotations

import getpass
import platform
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

#: Seconds that git may take; a report does not wait for a slow disk.
PATIENCE = 2.0


def by_whom() -> str:
    """`user@host`; the host alone where the user has no name, as in some containers."""
    host = platform.node()
    try:
        return f"{getpass.getuser()}@{host}"
    except (OSError, KeyError, ImportError):
        return host


def commit_of(folder: Path) -> str:
    """The commit that is checked out there, with `-dirty` where files differ; empty outside of a clone."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
