"""The code that the documents show runs as shown."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.contract.imports import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def gate(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """A run as a person makes it in that folder."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_the_example_folder_is_go(tmp_path: Path) -> None:
    """docs/example passes with the profile that its pyproject.toml names."""
    folder = shutil.copytree(
        ROOT / "docs" / "example", tmp_path / "example", ignore=shutil.ignore_patterns(".vllm", "__pycache__")
    )

    run = gate(folder, "test_support_bot.py")

    assert run.returncode == 0, run.stdout
    assert re.search(r"^GO  support-bot \(simulated\): 2 checks decided", run.stdout, re.MULTILINE)


def test_the_readme_example_is_go(tmp_path: Path) -> None:
    """The README's test file passes on the simulator."""
    (shown,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "test_ours.py").write_text(shown, "utf-8")

    run = gate(tmp_path, "test_ours.py", "--vllm-profile=sim")

    assert run.returncode == 0, run.stdout
    assert "1 check decided" in run.stdout


def test_the_readme_profile_is_valid(tmp_path: Path) -> None:
    """The README's profile can be shown, every key of it is known."""
    (shown,) = re.findall(r"```toml\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "chat.toml").write_text(shown, "utf-8")

    run = subprocess.run(
        [sys.executable, "-m", "pytest_vllm.cli", "show", "./chat.toml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    assert "max-model-len" in run.stdout
