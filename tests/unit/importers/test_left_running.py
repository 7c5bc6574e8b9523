"""Programs that start vLLM and do not stay, scripts that are elsewhere, and files by what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.profile.importers import ImportProblem, ImportResult, imported

if TYPE_CHECKING:
    from pathlib import Path


#: What is installed, built and fetched before.
COMPOSED = """\
sudo apt install -y docker-compose
npm run build
docker pull vllm/vllm-openai
sg docker -c 'docker compose up'
"""


def read(tmp_path: Path, name: str, text: str) -> ImportResult:
    """A file of that name."""
    (tmp_path / name).write_text(text)
    return imported(tmp_path / name, service=None, environ={"HOME": "/home/me"})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("systemd-run --user --unit=vllm vllm serve org/a", "makes a unit of it"),
        ("systemd-run -p MemoryMax=9G --setenv=A=b vllm serve org/a", "systemctl cat NAME"),
        ("start-stop-daemon --start --background --exec /opt/bin/vllm -- serve org/a", "leaves it running"),
        ("bash scripts/start_vllm.sh org/a", "runs a script that is not there"),
        ("nohup ./start-vllm.sh > vllm.log 2>&1 &", "runs a script that is not there"),
        (
            COMPOSED,
            ":4: `sg docker -c docker compose up` starts what another file describes",
        ),
    ],
)
def test_refused_by_what_is_done_instead(tmp_path: Path, text: str, says: str) -> None:
    """The command that starts it is named, not one that installs or builds."""
    with pytest.raises(ImportProblem) as refused:
        read(tmp_path, "a.sh", f"{text}\n")

    assert says in str(refused.value)


def test_a_scope_stays(tmp_path: Path) -> None:
    """`systemd-run --scope` runs what it is given, and ends with it."""
    server = read(tmp_path, "a.sh", "systemd-run --scope -p MemoryMax=9G vllm serve org/a\n").profile.server

    assert list(server.command or ())[:2] == ["systemd-run", "--scope"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("fly.toml", 'app = "a"\n[[vm]]\nsize = "a100-40gb"\n', "a fly.toml"),
        ("pyproject.toml", '[tool.poe.tasks]\nserve = "vllm serve org/a"\n', "a pyproject.toml"),
        ("profile.toml", '[server]\nmodel = "org/a"\n', "TOML, as profiles are"),
        ("helmfile.yaml", "releases:\n- {name: a, chart: vllm/vllm-stack}\n", "helmfile template"),
        ("process-compose.yaml", "processes:\n  a: {command: vllm serve org/a}\n", "process-compose"),
        ("A.cs", 'var p = new P { Image = "vllm/vllm-openai:latest" };\n', "source code of a program"),
    ],
)
def test_named_by_what_they_are(tmp_path: Path, name: str, text: str, says: str) -> None:
    """With the next step."""
    with pytest.raises(ImportProblem) as refused:
        read(tmp_path, name, text)

    assert says in str(refused.value)


def test_a_bracket_that_closes_nothing(tmp_path: Path) -> None:
    """In the pattern of an expansion it is a text, and what follows is read."""
    text = 'L="[1,2]"\na="${L#[}"\na="${a%]}"\nb=${L%%]*}\nvllm serve "org/m${a}" --served-model-name "$b"\n'

    server = read(tmp_path, "a.sh", text).profile.server

    assert (server.model, server.served_model_name) == ("org/m1,2", "[1,2")
