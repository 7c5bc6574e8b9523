"""A pytest run that has nothing to do with vLLM: one test, in a folder of its own."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 60
FILES = {
    "pytest.ini": "[pytest]\n",
    "test_one.py": "def test_one():\n    assert 1 + 1 == 2\n",
    "conftest.py": (
        "import sys\n\n\n"
        "def pytest_unconfigure(config):\n"
        "    (config.rootpath / 'modules.txt').write_text('\\n'.join(sorted(sys.modules)))\n"
    ),
}
WITHOUT = ("-p", "no:vllm")
#: For figures: no other plugin of the environment, and ours or none.
NO_PLUGIN = ("--disable-plugin-autoload",)
ALONE = (*NO_PLUGIN, "-p", "pytest_vllm.plugin")


def lay_out(folder: Path) -> None:
    """Write the test and a conftest.py that keeps the names of what was imported."""
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")


def run(folder: Path, *arguments: str) -> float:
    """Run pytest there; returns its CPU time in seconds, user and system. Raises where it does not pass."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    subprocess.run(command, cwd=folder, env=environ, check=True, capture_output=True, timeout=SECONDS)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def imported(folder: Path) -> set[str]:
    """The modules that the last run there had imported when it ended."""
    return set((folder / "modules.txt").read_text("utf-8").split())
