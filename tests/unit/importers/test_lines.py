"""Command lines as people paste them: `vllm serve`, `docker run`, scripts around them."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_vllm.profile.importers import imported
from pytest_vllm.profile.model import Secret, ServerPart

ENVIRON = {"HOME": "/home/me"}


def server(text: str, environ: dict[str, str] | None = None) -> ServerPart:
    """The server of a text."""
    return imported(text, environ=ENVIRON | (environ or {})).profile.server


@pytest.mark.parametrize(
    ("words", "args"),
    [
        ("-tp 2", {"tensor-parallel-size": 2}),
        ("--tensor_parallel_size=2", {"tensor-parallel-size": 2}),
        ("--max-model-len 32k", {"max-model-len": "32k"}),
        ("--gpu-memory-utilization .5", {"gpu-memory-utilization": 0.5}),
        ("--swap-space 4", {"swap-space": 4}),
        ("--no-enable-prefix-caching", {"enable-prefix-caching": False}),
        ("--enable-chunked-prefill=False", {"enable-chunked-prefill": False}),
        ("--enable-chunked-prefill true --seed 1", {"enable-chunked-prefill": True, "seed": 1}),
        ("-O3", {"optimization-level": 3}),
        ("--compilation-config '{\"mode\": 3}'", {"compilation-config": {"mode": 3}}),
        ("--compilation-config.mode 3", {"compilation-config": {"mode": 3}}),
        (
            "-cc.cudagraph_mode NONE --compilation-config.pass_config.fuse-x 1",
            {"compilation-config": {"cudagraph_mode": "NONE", "pass_config": {"fuse_x": 1}}},
        ),
        ("--cudagraph-capture-sizes 1 2 4", {"cudagraph-capture-sizes": [1, 2, 4]}),
        ("--lora-modules a=/x b=/y --enable-lora", {"lora-modules": ["a=/x", "b=/y"], "enable-lora": True}),
        ("--middleware a.B --middleware c.D", {"middleware": ["a.B", "c.D"]}),
        ("--served-model-name one two", {"served-model-name": ["one", "two"]}),
        ("--max-lora-rank 64", {"max-lora-rank": 64}),
        ("--max-prompt-adapter-token 8 --hf-token", {"max-prompt-adapter-token": 8, "hf-token": True}),
        ("--hf-token hf_abc", {"hf-token": {"from-env": "HF_TOKEN"}}),
        ("--dtype bfloat16", {"dtype": "bfloat16"}),
        ("--rope-scaling '{\"factor\": null}'", {"rope-scaling": '{"factor": null}'}),
    ],
)
def test_values_have_the_type_of_their_flag(words: str, args: dict[str, Any]) -> None:
    """Aliases, underscores, switches, JSON, lists."""
    assert server(f"vllm serve a/b {words}").args == args


@pytest.mark.parametrize(
    ("line", "command", "model"),
    [
        ("vllm serve a/b", None, "a/b"),
        ("vllm serve --seed 1 a/b", None, "a/b"),
        ("sudo nohup vllm serve ~/models/x > log 2>&1 &", None, "/home/me/models/x"),
        ("$ vllm serve $HOME/x", None, "/home/me/x"),
        ("/opt/v/bin/vllm serve a/b", ["/opt/v/bin/vllm", "serve"], "a/b"),
        ("uv run vllm serve a/b", ["uv", "run", "vllm", "serve"], "a/b"),
        (
            "python3 -m vllm.entrypoints.openai.api_server --model a/b",
            ["python3", "-m", "vllm.entrypoints.openai.api_server"],
            "a/b",
        ),
    ],
)
def test_what_starts_vllm(line: str, command: list[str] | None, model: str) -> None:
    """`vllm serve` itself need not be said."""
    found = server(line)

    assert (found.launcher, found.command, found.model) == ("process", command, model)


def test_a_script_around_it() -> None:
    """Its variables count, exported ones are the server's; what else it does is said."""
    found = imported(
        """#!/bin/bash
set -euo pipefail
MODEL=a/b            # what is served
ARGS="--seed 1 --enforce-eager"
NONE=
LEN=${LEN:-4096}
export HF_HOME=/hf
export HF_TOKEN=$(cat /run/token)
docker rm -f redis
VLLM_LOGGING_LEVEL=DEBUG exec vllm serve "$MODEL" \\
  --max-model-len $LEN $ARGS $NONE --api-key "$KEY_OF_OURS"
""",
        environ=ENVIRON,
    )

    args = {"max-model-len": 4096, "seed": 1, "enforce-eager": True}
    assert (found.profile.server.model, found.profile.server.args) == ("a/b", args)
    assert found.profile.server.env == {
        "HF_HOME": "/hf",
        "HF_TOKEN": Secret(from_env="HF_TOKEN"),
        "VLLM_LOGGING_LEVEL": "DEBUG",
    }
    assert found.profile.server.api_key == Secret(from_env="KEY_OF_OURS")
    assert "the text:9: `docker rm -f redis` is not carried over" in found.notes


def test_comments_behind_backslashes() -> None:
    """A shell would run half of it; whoever wrote it meant the whole."""
    found = server(
        "docker run -d --gpus all \\   # the GPU\n  # and the image:\n  vllm/vllm-openai:v0.32.0 \\ # v1\n"
        "  --model a/b \\\n# a line of its own\n  --max-num-seqs 8   # end\n"
    )

    assert (found.gpus, found.model, found.args) == ("all", "a/b", {"max-num-seqs": 8})


@pytest.mark.parametrize(
    ("options", "key", "value"),
    [
        ("--gpus all", "gpus", "all"),
        ("--gpus=2", "gpus", 2),
        ("--gpus '\"device=0,1\"'", "gpus", ["0", "1"]),
        ("--gpus device=GPU-3faa", "gpus", ["GPU-3faa"]),
        ("--device nvidia.com/gpu=all", "gpus", ["nvidia.com/gpu=all"]),
        ("--runtime nvidia", "gpus", "all"),
        ("--shm-size=16g", "shm", "16g"),
        ("--ipc=host", "ipc", "host"),
        ("--ulimit memlock=-1 --ulimit nofile=1:2", "ulimits", {"memlock": "-1", "nofile": "1:2"}),
        ("--device /dev/kfd --device=/dev/dri", "devices", ["/dev/kfd", "/dev/dri"]),
        ("--group-add video --group-add=110", "group_add", ["video", "110"]),
        ("--cap-add SYS_PTRACE --cap-add=IPC_LOCK", "cap_add", ["SYS_PTRACE", "IPC_LOCK"]),
        ("--privileged", "privileged", True),
        ("--runtime habana", "runtime", "habana"),
        ("--runtime nvidia -e NVIDIA_VISIBLE_DEVICES=2,3", "gpus", ["2", "3"]),
        ("-v ~/hf:/hf", "volumes", ["~/hf:/hf"]),
        ("-v$HOME/hf:/hf:ro", "volumes", ["/home/me/hf:/hf:ro"]),
        ("--mount type=bind,src=/a,dst=/b,readonly", "volumes", ["/a:/b:ro"]),
        ("-e A=1 --env=B=2", "env", {"A": "1", "B": "2"}),
        ("-e HF_TOKEN", "env", {"HF_TOKEN": Secret(from_env="HF_TOKEN")}),
        ("-e HF_TOKEN=$T", "env", {"HF_TOKEN": Secret(from_env="T")}),
        ("-e HF_TOKEN=abc", "env", {"HF_TOKEN": Secret(from_env="HF_TOKEN")}),
        ("-e VLLM_API_KEY=abc", "api_key", Secret(from_env="VLLM_API_KEY")),
        ("--entrypoint /start", "entrypoint", ["/start"]),
    ],
)
def test_options_of_a_run_line(options: str, key: str, value: object) -> None:
    """Each in the forms that people write."""
    found = server(f"docker run -it --rm {options} vllm/vllm-openai:v0.32.0 --model a/b")

    assert getattr(found, key) == value
    assert (found.image, found.model) == ("vllm/vllm-openai:v0.32.0", "a/b")


def test_an_entry_point_that_starts_vllm_is_the_command() -> None:
    """Wherever the program stands, it is one."""
    module = "vllm.entrypoints.openai.api_server"
    found = server(f"docker run --entrypoint python3 vllm/vllm-openai -m {module} --model a/b")

    assert (found.entrypoint, found.command) == (None, ["python3", "-m", module])


def test_production_of_a_run_line() -> None:
    """Ports, network, restart policy; what has no place is said, what says nothing is not."""
    found = imported(
        "podman run -dp 127.0.0.1:1:8000 --name=x --net host --restart on-failure:3 --memory 64g "
        "--security-opt=label=disable -q vllm/vllm-openai --model a/b",
        environ=ENVIRON,
    )
    deployment = found.profile.deployment

    assert (deployment.name, deployment.kind, deployment.network) == ("x", "podman-run", "host")
    assert (deployment.ports, deployment.restart) == (["127.0.0.1:1:8000"], "on-failure:3")
    assert (deployment.security_opt, deployment.remove) == (["label=disable"], False)
    assert found.profile.name == "x"
    assert found.notes == ()
    assert found.profile.deployment.memory == 64 * 1024**3


@pytest.mark.parametrize("key", ["sk-abcdefgh123", "my-own-key"])
def test_a_key_on_the_command_line_is_not_copied(key: str) -> None:
    """Whatever it looks like."""
    found = imported(f"vllm serve a/b --api-key {key}", environ=ENVIRON)

    assert found.profile.server.api_key == Secret(from_env="VLLM_API_KEY")
    assert key not in repr(found)


def test_two_images_one_of_them_vllm() -> None:
    """Other containers of a script are said, not taken."""
    found = imported("docker run -d redis\ndocker run vllm/vllm-openai --model a/b\n", environ=ENVIRON)

    assert found.profile.server.model == "a/b"
    assert found.notes == ("the text:1: `docker run -d redis` is not carried over",)


def test_json_that_the_shell_has_eaten() -> None:
    """Without quotes, its own quotes are gone; the server would not start either."""
    found = imported('vllm serve a/b --speculative-config {"method":"ngram"}', environ=ENVIRON)

    assert found.profile.server.args == {"speculative-config": "{method:ngram}"}
    assert found.notes == (
        "the text:1: --speculative-config is not JSON that a profile can hold: {method:ngram}; it stays text",
    )
