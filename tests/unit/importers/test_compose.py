"""Compose files: interpolation, env files, GPUs in every form, several services."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.profile.importers import ImportProblem, imported
from pytest_vllm.profile.model import Secret

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.profile.importers import ImportResult

HEAD = "services:\n  vllm:\n    image: vllm/vllm-openai:v0.32.0\n"


def read(folder: Path, text: str, environ: dict[str, str] | None = None, **how: Any) -> ImportResult:
    """A compose file of this text in a folder."""
    file = folder / "compose.yaml"
    file.write_text(text, "utf-8")
    found = imported(file, environ=environ or {}, **how)
    return found.__class__(found.profile, tuple(note.removeprefix(f"{file}:") for note in found.notes))


def test_variables_in_every_form(tmp_path: Path) -> None:
    """`.env` lies beside the file, the environment wins over it, defaults hold for what neither has."""
    (tmp_path / ".env").write_text("# versions\nTAG=v0.31.0\nexport LEN='4096'\nMODEL=\"a/b\" # ours\n")
    text = """
x-base: &base
  image: "vllm/vllm-openai:${TAG}"
services:
  vllm:
    <<: *base
    command: >
      --model ${MODEL} --max-model-len ${LEN:-1} --max-num-seqs ${SEQS:-16}
      --chat-template '{{ "$$x" }}' ${EXTRA:+--enforce-eager}
"""
    found = read(tmp_path, text, {"TAG": "v0.32.0"})

    assert found.profile.server.image == "vllm/vllm-openai:v0.32.0"
    assert found.profile.server.model == "a/b"
    assert found.profile.server.args == {
        "max-model-len": 4096,
        "max-num-seqs": 16,
        "chat-template": '{{ "$x" }}',
    }


def test_secrets_are_named_and_never_read(tmp_path: Path) -> None:
    """Written down, in an env file, in `.env`, passed on: a reference each, the value nowhere."""
    token = "hf_" + "a" * 30
    (tmp_path / ".env").write_text(f"TOKEN_OF_CI={token}\n")
    (tmp_path / "vllm.env").write_text(f"HUGGING_FACE_HUB_TOKEN={token}\nHF_HOME=/hf\n")
    text = f"""{HEAD}    env_file: [vllm.env]
    environment:
      HF_TOKEN: ${{TOKEN_OF_CI}}
      AWS_SECRET_ACCESS_KEY: {token}
      WANDB_API_KEY:
      VLLM_API_KEY: ${{KEY_OF_OURS:-}}
      PLAIN: {token}
      DO_NOT_TRACK: 1
    command: --model a/b
"""
    found = read(tmp_path, text, {"WANDB_API_KEY": token})
    env = found.profile.server.env

    assert env == {
        "HUGGING_FACE_HUB_TOKEN": Secret(from_env="HUGGING_FACE_HUB_TOKEN"),
        "HF_HOME": "/hf",
        "HF_TOKEN": Secret(from_env="TOKEN_OF_CI"),
        "AWS_SECRET_ACCESS_KEY": Secret(from_env="AWS_SECRET_ACCESS_KEY"),
        "WANDB_API_KEY": Secret(from_env="WANDB_API_KEY"),
        "PLAIN": Secret(from_env="PLAIN"),
        "DO_NOT_TRACK": "1",
    }
    assert found.profile.server.api_key == Secret(from_env="KEY_OF_OURS")
    assert token not in repr(found)
    assert found.notes == (
        (
            "4: HUGGING_FACE_HUB_TOKEN is written down in vllm.env:1; its value is not copied: "
            "set HUGGING_FACE_HUB_TOKEN where pytest runs"
        ),
        (
            "7: AWS_SECRET_ACCESS_KEY is written down there; its value is not copied: "
            "set AWS_SECRET_ACCESS_KEY where pytest runs"
        ),
        "9: KEY_OF_OURS may be empty there; here it has to be set",
        "10: PLAIN is written down there; its value is not copied: set PLAIN where pytest runs",
    )


@pytest.mark.parametrize(
    ("lines", "gpus"),
    [
        ("gpus: all", "all"),
        ("gpus: [{driver: nvidia, count: 2}]", 2),
        ("runtime: nvidia", "all"),
        ("devices: [nvidia.com/gpu=0, nvidia.com/gpu=1]", ["nvidia.com/gpu=0", "nvidia.com/gpu=1"]),
        ("deploy: {resources: {reservations: {devices: [{capabilities: [gpu]}]}}}", "all"),
        ("deploy: {resources: {reservations: {devices: [{count: 1, capabilities: [gpu]}]}}}", 1),
        ("deploy: {resources: {reservations: {devices: [{device_ids: ['0', '3']}]}}}", ["0", "3"]),
        ("ipc: host", None),
    ],
)
def test_gpus_in_every_form(lines: str, gpus: object, tmp_path: Path) -> None:
    """As compose has had them over the years."""
    assert read(tmp_path, f"{HEAD}    {lines}\n    command: --model a/b\n").profile.server.gpus == gpus


def test_the_other_keys(tmp_path: Path) -> None:
    """Volumes in both forms, shared memory, production, and a note for each key without a place."""
    text = f"""{HEAD}    command: ["--model", "a/b", "--port", "9000"]
    shm_size: 16gb
    ipc: host
    restart: always
    ports: ["127.0.0.1:9000:9000", {{target: 9001, published: 9002}}]
    volumes:
      - ./models:/models:ro
      - hf:/root/.cache/huggingface
      - {{type: bind, source: /opt, target: /opt, read_only: true}}
      - /anonymous
    healthcheck: {{test: curl, start_period: 10m}}
    ulimits: {{memlock: -1}}
  web:
    image: nginx
    depends_on: [vllm]
"""
    found = read(tmp_path, text)
    server, deployment = found.profile.server, found.profile.deployment

    assert server.volumes == [f"{tmp_path}/models:/models:ro", "hf:/root/.cache/huggingface", "/opt:/opt:ro"]
    assert (server.shm, server.ipc, server.args) == ("16gb", "host", {})
    assert server.ulimits == {"memlock": "-1"}
    assert (deployment.name, deployment.restart) == ("vllm", "always")
    assert deployment.ports == ["127.0.0.1:9000:9000", "9002:9001"]
    assert found.notes == (
        "13: the anonymous volume /anonymous is not carried over",
        (
            "14: the healthcheck is not carried over: /health is asked anyway; "
            "its start_period 10m is what [boot] timeout is for"
        ),
        "16: the service web is not carried over",
    )


def test_a_service_is_chosen(tmp_path: Path) -> None:
    """By the name it has in the file."""
    two = (
        f"{HEAD}    command: --model a/b\n  second:\n    image: vllm/vllm-openai\n    command: --model c/d\n"
    )

    assert read(tmp_path, two, service="second").profile.server.model == "c/d"


def test_a_shell_around_vllm(tmp_path: Path) -> None:
    """`bash -c` is looked into, an entry point that is a program becomes the command."""
    text = f"""{HEAD}    entrypoint: ["/bin/bash", "-lc"]
    command:
      - |
        pip install arctic-inference
        exec vllm serve a/b --max-num-seqs 8
"""
    found = read(tmp_path, text)

    assert found.profile.server.command == ["vllm", "serve"]
    assert (found.profile.server.model, found.profile.server.args) == ("a/b", {"max-num-seqs": 8})
    assert found.notes == (
        "6: `pip install arctic-inference`, which is run before vLLM, is not carried over",
        "6: the shell around vLLM (/bin/bash -lc) is left out",
    )


def test_the_port_inside_is_kept(tmp_path: Path) -> None:
    """The gate's container listens where it likes; production's is in the profile."""
    found = read(tmp_path, f'{HEAD}    command: --model a/b --port 8001\n    ports: ["8001:8001"]\n')

    assert (found.profile.server.args, found.profile.deployment.listens) == ({}, 8001)


def test_files_put_together(tmp_path: Path) -> None:
    """`include` and `extends` of another file: tables by key, lists behind each other, paths of their own."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "base.yaml").write_text(
        "services:\n  base:\n    image: vllm/vllm-openai:v0.31.0\n    environment: [A=1, B=2]\n"
        "    volumes: [./m:/m]\n    cap_add: [IPC_LOCK]\n"
    )
    (tmp_path / "more.yaml").write_text("services:\n  web:\n    image: nginx\n")
    text = """include: [more.yaml]
services:
  llm:
    extends: {file: sub/base.yaml, service: base}
    command: --model a/b
    environment: {B: "3"}
    cap_add: [SYS_PTRACE]
"""
    found = read(tmp_path, text)
    server = found.profile.server

    assert (server.image, server.env) == ("vllm/vllm-openai:v0.31.0", {"A": "1", "B": "3"})
    assert (server.volumes, server.cap_add) == ([f"{tmp_path}/sub/m:/m"], ["IPC_LOCK", "SYS_PTRACE"])
    assert [note for note in found.notes if "web" in note] == [" the service web is not carried over"]


def test_a_file_that_is_laid_over_another() -> None:
    """Its services name no image; both are merged first."""
    with pytest.raises(ImportProblem, match="the service llm names no image: the file is laid over another"):
        imported("services:\n  llm:\n    command: --model org/a --seed 3\n", environ={})
