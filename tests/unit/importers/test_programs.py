"""An image with vLLM in it may be told to start another program: that is no server with a strange model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.profile.importers import ImportProblem, imported

if TYPE_CHECKING:
    from pathlib import Path

RUN = "docker run --rm -it --device /dev/kfd"


@pytest.mark.parametrize(
    ("end", "other"),
    [
        ("rocm/vllm:latest bash", "bash"),
        ("rocm/vllm:latest /bin/bash", "/bin/bash"),
        ("vllm/vllm-openai:v0.20.0 sleep infinity", "sleep infinity"),
        ("vllm/vllm-openai:v0.20.0 tail -f /dev/null", "tail -f"),
        ('--entrypoint "" vllm/vllm-openai:v0.20.0 nvidia-smi', "nvidia-smi"),
        ("--entrypoint bash vllm/vllm-openai:v0.20.0 /start.sh --model org/a", "bash /start.sh"),
        ("--entrypoint python3 vllm/vllm-openai:v0.20.0 -c 'import vllm'", "python3 -c"),
        ("--entrypoint vllm vllm/vllm-openai:v0.20.0 bench serve --model org/a", "vllm bench"),
        ("--init vllm/vllm-openai:v0.20.0 tini -- ray start --head", "ray start"),
        ("vllm/vllm-openai:v0.20.0 ./serve.py --model org/a", "./serve.py --model"),
        (
            "vllm/vllm-openai:v0.20.0 python3 -m vllm.entrypoints.api_server --model a",
            "vllm.entrypoints.api_server",
        ),
    ],
)
def test_another_program(end: str, other: str) -> None:
    """It is named, and the file refused."""
    with pytest.raises(ImportProblem) as caught:
        imported(f"{RUN} {end}", environ={})

    assert f"starts {other}" in str(caught.value)
    assert "not vLLM's server" in str(caught.value)


@pytest.mark.parametrize(
    ("end", "model"),
    [
        ("vllm/vllm-openai:v0.20.0 python/codes", "python/codes"),
        ("vllm/vllm-openai:v0.20.0 /models/bash-7b", "/models/bash-7b"),
        ("vllm/vllm-openai:v0.20.0 gpt2", "gpt2"),
        ("--entrypoint /opt/start vllm/vllm-openai:v0.20.0 --model org/a", "org/a"),
        ("--entrypoint tini vllm/vllm-openai:v0.20.0 -- vllm serve org/a", "org/a"),
        ("--entrypoint bash vllm/vllm-openai:v0.20.0 -c 'ulimit -n 9; exec vllm serve org/a'", "org/a"),
        ("--entrypoint python3 own/vllm:1 /srv/vllm/entrypoints/openai/api_server.py --model org/a", "org/a"),
    ],
)
def test_a_server_all_the_same(end: str, model: str) -> None:
    """A model that is called like a program, and a wrapper that starts vLLM in the end."""
    assert imported(f"{RUN} {end}", environ={}).profile.server.model == model


def test_a_service_of_another_program(tmp_path: Path) -> None:
    """A compose file names what its services start instead."""
    file = tmp_path / "compose.yaml"
    file.write_text(
        "services:\n  a:\n    image: vllm/vllm-openai:v0.20.0\n    entrypoint: sleep\n    command: infinity\n"
    )

    with pytest.raises(ImportProblem, match=r"there is a \(sleep infinity\)"):
        imported(file, environ={})
