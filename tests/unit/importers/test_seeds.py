"""The commands of the deployment guides, pasted as they stand, against the built-in profiles."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.locate import data_dir
from pytest_vllm.profile.importers import imported
from pytest_vllm.profile.load import load

if TYPE_CHECKING:
    from pytest_vllm.profile.model import ServerPart

NOWHERE = Path(__file__).parent
FILES = data_dir("fixtures") / "imports"
GUIDES: dict[str, dict[str, Any]] = tomllib.loads(
    (NOWHERE.parent / "profile" / "commands.toml").read_text("utf-8")
)
ENVIRON = {"HOME": "~"}

#: File -> profile. What the guide's text says elsewhere, or leaves to the host, is in REST.
PASTED = {
    "spark-fp8.compose.yaml": "spark-fp8",
    "spark-qwen35.sh": "spark-qwen35",
    "rtx5090-qwq-awq.sh": "rtx5090-qwq-awq",
    "rtxpro6000-bf16.sh": "rtxpro6000-bf16",
    "rtxpro6000-awq.sh": "rtxpro6000-awq",
    "rtxpro6000-gguf.sh": "rtxpro6000-gguf",
    "rtxpro6000-shared.sh": "rtxpro6000-shared",
    "rtxpro6000-spec-draft.sh": "rtxpro6000-spec-draft",
    "rtxpro6000-spec-ngram.sh": "rtxpro6000-spec-ngram",
    "rtxpro6000.service": "rtxpro6000-systemd",
    "rtxpro6000-docker.service": "rtxpro6000-systemd",
    "llama32-3b.service": "llama32-3b",
    "llama32-3b-awq.sh": "llama32-3b-awq",
    "llama32-3b-lora.sh": "llama32-3b-lora",
}
#: Flags that the guide of a unit recommends in later sections only.
LATER = {"max-num-seqs", "enable-prefix-caching", "enable-auto-tool-choice", "tool-call-parser"}
#: What a process line of vLLM says nothing about: the container twin of the profile.
TWIN = {"image", "gpus", "volumes", "shm", "ipc", "version"}


def built_in(name: str) -> ServerPart:
    """The server of a built-in profile."""
    return load(name, NOWHERE, environ=ENVIRON).server


@pytest.mark.parametrize(("file", "name"), PASTED.items())
def test_a_guide_is_imported_without_loss(file: str, name: str) -> None:
    """Every value that the file says is the profile's, and every value of the profile is in the file."""
    read, known = imported(FILES / file, environ=ENVIRON), built_in(name)
    server = read.profile.server
    args = {
        key: value for key, value in known.args.items() if file != "llama32-3b.service" or key not in LATER
    }
    docker_unit = file == "rtxpro6000-docker.service"
    if docker_unit:  # there, the port is published instead
        args = {key: value for key, value in args.items() if key not in ("host", "port")}

    assert server.args == args
    assert (server.model, server.served_model_name) == (known.model, known.served_model_name)
    if server.launcher == "process":
        assert [Path(word).name for word in server.command or []] == [
            Path(word).name for word in known.command or []
        ]
        assert server.env == known.env or file.endswith(".sh")
    else:
        for key in ("image", "gpus", "shm", "ipc", "entrypoint"):
            assert getattr(server, key) == getattr(known, key), key
        assert [one.replace("/home/user/.", "~/.") for one in server.volumes] == known.volumes
        assert docker_unit or (server.command, server.env) == (known.command, known.env)


@pytest.mark.parametrize(("file", "name"), PASTED.items())
def test_production_is_kept(file: str, name: str) -> None:
    """Name, restart policy, ports, network and the unit's other lines are those of the profile."""
    if file == "rtxpro6000-docker.service":
        return
    read = imported(FILES / file, environ=ENVIRON).profile.deployment
    known = load(name, NOWHERE, environ=ENVIRON).deployment

    assert read.kind == (known.kind or "shell")
    assert (read.restart, read.service, read.network) == (known.restart, known.service, known.network)
    assert (read.security_opt, read.remove) == (known.security_opt, known.remove)
    assert read.ports == known.ports or read.kind in ("shell", "systemd-user")


@pytest.mark.parametrize("name", GUIDES)
def test_a_command_of_the_table_is_imported(name: str) -> None:
    """The same commands as tests/unit/profile holds the profiles to."""
    command = GUIDES[name]["command"].replace("\n", " ")
    line = f"docker run {GUIDES[name]['image']} {command}" if command.startswith("--") else command
    read, known = imported(line, environ=ENVIRON), built_in(name)

    assert read.notes == ()
    assert read.profile.server.args == known.args
    assert read.profile.server.model == known.model
    assert read.profile.server.served_model_name == known.served_model_name


def test_notes_name_what_was_left_behind() -> None:
    """Tokens that are written down, comments that end a command, and one that is not vLLM; nothing else."""
    notes = [note.rpartition("imports/")[2] for file in PASTED for note in imported(FILES / file).notes]
    said = (
        "HUGGING_FACE_HUB_TOKEN is written down there; its value is not copied: "
        "set HUGGING_FACE_HUB_TOKEN where pytest runs"
    )

    assert notes == [
        (
            "spark-qwen35.sh:7: as it stands, it is another command: a shell ends the command "
            "at the comment or blank behind the backslash: the program gets a blank as an argument "
            "and ends on it, and never sees --gpu-memory-utilization --enable-prefix-caching "
            "--reasoning-parser --enable-auto-tool-choice …; it is read as meant, mend it before it is used"
        ),
        f"rtx5090-qwq-awq.sh:4: {said}",
        (
            "rtxpro6000-gguf.sh:2: `huggingface-cli download Qwen/Qwen3-32B-GGUF qwen3-32b-q5_k_m.gguf "
            "--local-dir ./models` is not carried over"
        ),
        f"rtxpro6000.service:22: {said}",
        f"rtxpro6000-docker.service:9: {said}",
    ]
