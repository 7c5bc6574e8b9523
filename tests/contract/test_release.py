"""What a release rests on: tags that are versions, notes that exist, and one place for each."""

from __future__ import annotations

import subprocess
import tomllib
from typing import TYPE_CHECKING

import pytest
import yaml

import pytest_vllm
from tests.contract.imports import ROOT
from tools.release_notes import notes

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
CHANGES = (
    "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [0.2.0] - 2026-12-01\n\n- two\n\n## [0.1.0] - 2026-11-01\n"
)


def git(folder: Path, *words: str) -> str:
    """A git command in a folder of its own."""
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", *who, *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    "others",
    [[], ["nightly-1"], ["v0.3.0-nightly"], ["deployed"], ["v1"], ["vllm-0.32.0"], ["v0.3.0rc1-broken"]],
)
def test_only_versions_are_versions(others: list[str], tmp_path: Path) -> None:
    """A build describes the commit by the newest tag that is one."""
    describe = PROJECT["tool"]["hatch"]["version"]["raw-options"]["git_describe_command"]
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
    git(tmp_path, "tag", "v0.2.0")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "two")
    for name in others:
        git(tmp_path, "tag", name)

    assert git(tmp_path, *describe[1:]).startswith("v0.2.0-1-g")


def test_the_version_is_written_down_nowhere() -> None:
    """It is the tag's; what runs says what was installed."""
    assert "version" not in PROJECT["project"]
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert "version" not in yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert pytest_vllm.__version__[0].isdigit()


@pytest.mark.parametrize(
    ("version", "text"), [("0.2.0", "- two"), ("0.2.0rc1", "- two"), ("0.3.0rc2", "- new")]
)
def test_a_release_has_its_notes(version: str, text: str) -> None:
    """A candidate has those of what it is to become."""
    assert notes(CHANGES, version) == text


@pytest.mark.parametrize("version", ["0.3.0", "0.1.0", "2.0", "0.2"])
def test_a_release_without_notes_is_refused(version: str) -> None:
    """No section, or an empty one."""
    with pytest.raises(ValueError, match=f"no entries under ## \\[{version}\\]"):
        notes(CHANGES, version)


def test_the_workflow_publishes_what_it_checked() -> None:
    """By identity, in one environment, after the tests, without a secret; and only for tags."""
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))
    jobs = workflow["jobs"]
    steps = str(jobs["build"]["steps"])

    assert set(workflow[True]) == {"push"}  # YAML reads `on` as true
    assert set(workflow[True]["push"]) == {"tags"}
    assert workflow["permissions"] == {"contents": "read"}
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert (jobs["publish"]["needs"], jobs["install"]["needs"]) == ("install", "build")
    assert "secrets." not in str(workflow)
    for words in (".ci/run tests", "twine check --strict", "tools.release_notes", "'fetch-depth': 0"):
        assert words in steps
    pythons = {line.rpartition(" ")[2] for line in PROJECT["project"]["classifiers"] if ":: 3." in line}
    assert pythons <= set(jobs["install"]["strategy"]["matrix"]["python"])
