"""The tutorial works as it is written: every command, in order, with what it says comes out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml

from tests.site.blocks import DOCS, blocks, files

if TYPE_CHECKING:
    from tests.site.conftest import Folder

PAGE = DOCS / "tutorial.md"


def test_every_command_does_what_the_text_says(folder: Folder) -> None:
    """Files are written where they stand; the lines under a command are in what it prints.

    The first step is `.ci/run wheel`'s: it installs from the repository.
    """
    printed, ran = "", 0
    for block in blocks(PAGE):
        if block.file:
            folder.write(block.file, block.text)
        elif block.kind == "sh" and "pip install" not in block.text:
            done = folder.run(block.text)
            printed = done.stdout
            assert done.returncode == block.status, f"{block.text}\n{printed}"
            ran += 1
        elif block.kind == "text":
            missing = [line for line in block.text.splitlines() if line not in printed]
            assert missing == [], f"the tutorial shows what was not printed in\n{printed}"

    assert ran == len(re.findall(r"^```sh$", PAGE.read_text("utf-8"), re.MULTILINE)) - 1


def test_its_workflow_gates(folder: Folder) -> None:
    """The steps that are commands run; the summary holds the answer."""
    for name, text in files(PAGE).items():
        folder.write(name, text)
    assert folder.run("pytest-vllm import compose.yaml --out vllm-profiles/chat.toml").returncode == 0
    workflow = yaml.safe_load(files(PAGE)[".github/workflows/gate.yml"])
    steps = [step["run"] for step in workflow["jobs"]["rehearsal"]["steps"] if "run" in step]
    install, gate, summary = steps
    assert install.startswith("pip install")

    done = folder.run(gate, "--vllm-check=models", "--vllm-check=ours")
    assert done.returncode == 0, done.stdout
    written = folder.path / "summary.md"
    assert folder.run(summary, GITHUB_STEP_SUMMARY=str(written)).returncode == 0

    assert "GO" in written.read_text("utf-8").splitlines()[0]
