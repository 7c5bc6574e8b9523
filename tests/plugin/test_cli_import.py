"""`pytest-vllm import` and `pytest-vllm show --as`, as a person types them."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.cli import main
from pytest_vllm.locate import data_dir
from pytest_vllm.profile.importers import imported
from pytest_vllm.profile.load import load

if TYPE_CHECKING:
    from pathlib import Path

GUIDE = data_dir("fixtures") / "imports" / "rtx5090-qwq-awq.sh"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project as the current folder."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_profile_is_written(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file is a profile: it loads, and is what was imported; notes are apart."""
    out = project / "vllm-profiles" / "mine.toml"

    assert main(["import", str(GUIDE), "--out", str(out)]) == 0

    said = capsys.readouterr()
    assert said.out == f"wrote {out}: pytest --vllm-profile={out}\n"
    assert said.err.startswith(f"note: {GUIDE}:4: HUGGING_FACE_HUB_TOKEN is written down there")
    assert load("mine", project, expand=False).server == imported(GUIDE).profile.server


def test_nothing_is_overwritten(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A profile that a person has edited stays."""
    out = project / "mine.toml"
    out.write_text("# mine\n")

    assert main(["import", str(GUIDE), "--out", str(out)]) == 4
    assert capsys.readouterr().err == f"pytest-vllm: {out} exists: remove it first, or name another file\n"
    assert out.read_text() == "# mine\n"


def test_a_pasted_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """From standard input."""
    monkeypatch.setattr("sys.stdin", io.StringIO("vllm serve a/b -tp 2"))

    assert main(["import", "-"]) == 0
    assert "tensor-parallel-size = 2" in capsys.readouterr().out


def test_a_problem_is_one_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 4, no traceback."""
    (project / "a.sh").write_text("vllm serve a/b --port\n")

    assert main(["import", "a.sh"]) == 4
    assert capsys.readouterr().err == "pytest-vllm: a.sh:1: --port lacks its value; write --port VALUE\n"


@pytest.mark.parametrize("kind", ["compose", "docker-run", "podman-run", "systemd", "k8s", "serve"])
def test_a_profile_in_another_form(project: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is printed can be imported."""
    assert main(["show", "spark-qwen35", "--as", kind]) == 0

    found = imported(capsys.readouterr().out).profile.server
    assert (found.model, found.served_model_name) == ("/models/qwen35", "qwen3.5-35b")


def test_losses_go_to_standard_error(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is on standard output is the file alone."""
    assert main(["show", "rtxpro6000-bf16", "--as", "serve"]) == 0

    said = capsys.readouterr()
    assert said.out.startswith("vllm serve Qwen/Qwen3-32B")
    assert said.err == "note: image, gpus, volumes, ipc: a command line of vLLM cannot say it\n"
