"""A folder as a reader of the documentation has it: the commands, a profile, and a server that runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.launch.protocol import LaunchContext
from pytest_vllm.launch.registry import launcher_for
from pytest_vllm.launch.wait import wait_ready
from pytest_vllm.profile.model import BootPart, Profile, ServerPart

if TYPE_CHECKING:
    from collections.abc import Iterator

PROFILE = '[server]\nlauncher = "sim"\nmodel = "sim-model"\n\n[expect]\ncapabilities = ["chat"]\n'


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of this folder takes Sphinx, schemas or minutes: asked for by `-m site`."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.site)


class Folder:
    """A project of a reader's own, in which commands run as a shell of theirs would run them.

    Args:
        path: the folder; its `.venv` is this test's.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / ".venv").symlink_to(sys.prefix)
        (path / "pytest.ini").write_text("[pytest]\n", "utf-8")

    def write(self, name: str, text: str) -> None:
        """Write a file, with its folders."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")

    def run(self, command: str, *options: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """A command line by bash.

        Args:
            command: as it is written down.
            options: of pytest, that narrow what is asked without changing the command.
            environ: variables.
        """
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTEST_", "COV_", "GITHUB_", "VLLM_")) and name != "CI"
        }
        path = f"{self.path / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        env = {**kept, "PATH": path, "PYTEST_ADDOPTS": " ".join(options), **environ}
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.path,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=400,
            check=False,
        )


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """An empty project."""
    return Folder(tmp_path)


@pytest.fixture
def project(folder: Folder) -> Folder:
    """One that has the profile of which the recipes speak, by the simulator."""
    folder.write("vllm-profiles/chat.toml", PROFILE)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a simulator that runs."""
    path = tmp_path_factory.mktemp("server")
    context = LaunchContext("site", path, os.getpid(), scope=f"site-{os.getpid()}")
    profile = Profile(name="chat", server=ServerPart(launcher="sim", model="sim-model"))
    with launcher_for("sim").start(profile, context) as handle:
        wait_ready(handle, BootPart())
        assert handle.url is not None
        yield handle.url
