"""Images that are built: what their Dockerfile starts, alone and as a service of a compose file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.profile.importers import ImportProblem, imported

if TYPE_CHECKING:
    from pathlib import Path

MADE = """FROM nvidia/cuda:13.0.1-runtime-ubuntu24.04
RUN pip install vllm==0.11.0
ENV MODEL=org/a LENGTH=4096
COPY start.sh /opt/
CMD ["bash", "/opt/start.sh"]
"""
SCRIPT = """#!/bin/bash
exec vllm serve "$MODEL" --max-model-len "$LENGTH" "$@"
"""
COMPOSE = """services:
  llm:
    build: {context: app, dockerfile: Dockerfile}
    environment: [LENGTH=8192]
    gpus: all
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A folder with a Dockerfile and the script that it copies, and a compose file above."""
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "Dockerfile").write_text(MADE)
    (folder / "start.sh").write_text(SCRIPT)
    (tmp_path / "compose.yaml").write_text(COMPOSE)
    return folder


def test_a_script_that_is_copied(app: Path) -> None:
    """It is read in the place of its name, with the image's variables."""
    found = imported(app / "Dockerfile", environ={})
    server = found.profile.server
    assert (server.image, server.version, server.model) == ("app:built", "0.11.0", "org/a")
    assert server.args["max-model-len"] == 4096
    assert any("docker build -t app:built" in note for note in found.notes)
    assert any("start.sh is read" in note for note in found.notes)


def test_a_service_that_is_built(app: Path) -> None:
    """Its own variables win; its image is called as compose calls it."""
    server = imported(app.parent / "compose.yaml", environ={"COMPOSE_PROJECT_NAME": "p"}).profile.server
    assert (server.image, server.version, server.gpus) == ("p-llm", "0.11.0", "all")
    assert server.args["max-model-len"] == 8192


def test_a_command_of_the_service_replaces_the_images(app: Path) -> None:
    """As in compose."""
    text = COMPOSE.replace("gpus: all", "command: vllm serve org/b --seed 3")
    (app.parent / "compose.yaml").write_text(text)
    assert imported(app.parent / "compose.yaml", environ={}).profile.server.model == "org/b"


def test_a_script_that_is_not_there(app: Path) -> None:
    """What it starts is not known."""
    (app / "start.sh").unlink()
    with pytest.raises(ImportProblem, match=r"starts no vLLM by itself: it starts bash /opt/start.sh"):
        imported(app / "Dockerfile", environ={})


@pytest.mark.parametrize(
    ("made", "version"), [("RUN apt-get install -y git", "0.32.0"), ("RUN pip install -U vllm", None)]
)
def test_the_bases_version(tmp_path: Path, made: str, version: str | None) -> None:
    """It counts as long as nothing installs another vLLM."""
    file = tmp_path / "Dockerfile"
    file.write_text(f'FROM vllm/vllm-openai:v0.32.0\n{made}\nCMD ["--model", "org/a"]\n')
    assert imported(file, environ={}).profile.server.version == version


def test_a_script_that_is_mounted(app: Path) -> None:
    """An entry point that lies beside the compose file is read, in the service's environment."""
    text = """services:
  llm:
    image: vllm/vllm-openai:v0.32.0
    entrypoint: ["/bin/sh", "/start.sh"]
    command: ["--seed", "3"]
    environment: {MODEL: org/c, LENGTH: 2048}
    volumes: ["./app/start.sh:/start.sh:ro"]
"""
    (app.parent / "compose.yaml").write_text(text)
    found = imported(app.parent / "compose.yaml", environ={})
    assert found.profile.server.model == "org/c"
    assert found.profile.server.args == {"max-model-len": 2048, "seed": 3}
    assert any("/start.sh is read, which is mounted" in note for note in found.notes)
