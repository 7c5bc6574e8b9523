"""What a file leaves to others, to another machine or to chance is said, and nothing is put in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.profile.importers import ImportProblem, ImportResult, imported

if TYPE_CHECKING:
    from pathlib import Path

ENVIRON = {"HOME": "/home/me"}
POD = """
apiVersion: v1
kind: Pod
spec:
  containers:
  - {name: a, image: vllm/vllm-openai, args: [--model, $(M)], envFrom: [{configMapRef: {name: llm}}]}
"""


def read(tmp_path: Path, name: str, text: str, service: str | None = None) -> ImportResult:
    """A file of that name."""
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return imported(file, service=service, environ=ENVIRON)


def test_blanks_before_quotes_within_an_expansion(tmp_path: Path) -> None:
    """They part words, as in bash."""
    text = 'T=hermes\nvllm serve org/a ${T:+--tool-call-parser "$T" --enable-auto-tool-choice}\n'

    args = read(tmp_path, "a.sh", text).profile.server.args

    assert args == {"tool-call-parser": "hermes", "enable-auto-tool-choice": True}


def test_a_variable_that_one_arm_exports(tmp_path: Path) -> None:
    """It is no assignment without effect."""
    text = 'if [ -n "$FAST" ]; then\n  export VLLM_USE_DEEP_GEMM=1\nfi\nvllm serve org/a\n'

    found = read(tmp_path, "a.sh", text)

    assert found.profile.server.env == {}
    assert any("VLLM_USE_DEEP_GEMM is not set, or '1'" in note for note in found.notes)
    assert not any("no effect" in note for note in found.notes)


def test_options_of_a_shell_behind_its_c(tmp_path: Path) -> None:
    """The script is the first word that is none."""
    text = "docker run --gpus all node:1 bash -c -i 'vllm serve org/a --seed 5'\n"

    assert read(tmp_path, "a.sh", text).profile.server.args == {"seed": 5}


def test_a_command_that_prints_its_help(tmp_path: Path) -> None:
    """It is no server."""
    text = "docker run vllm/vllm-openai:v0.32.0 --help\nvllm serve org/a\n"

    assert read(tmp_path, "a.sh", text).profile.server.model == "org/a"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.sh", "docker run -it rocm/vllm-dev:nightly\n", "is started as it is"),
        ("a.sh", "docker run --gpus all $(flags) vllm/vllm-openai:v0.32.0 --model org/a\n", "$(flags)"),
        ("a.sh", "vllm serve ...\n", "stands for a model's name"),
        (
            "a.sh",
            "kubectl create secret generic vllm\nkubectl apply -f a.yaml\n",
            "`kubectl apply -f a.yaml`",
        ),
        ("a.sh", "docker run --entrypoint /bin/bash $1 -c 'ray start'\n", "$1 is the script's argument 1"),
        (
            "a.yaml",
            POD,
            "$(M) is not in this file",
        ),
    ],
)
def test_it_is_refused(name: str, text: str, said: str, tmp_path: Path) -> None:
    """In one sentence that says why."""
    with pytest.raises(ImportProblem) as caught:
        read(tmp_path, name, text)

    assert said in str(caught.value)


def test_an_image_whose_first_word_is_serve(tmp_path: Path) -> None:
    """Its entry point can only be vLLM's command, which is said."""
    text = "docker run --gpus all me/vllm:1 serve org/a --seed 5\n"

    found = read(tmp_path, "a.sh", text)

    assert found.profile.server.command == ["vllm", "serve"]
    assert any("entry point of me/vllm:1 is taken" in note for note in found.notes)


def test_a_service_that_is_built_and_has_no_command(tmp_path: Path) -> None:
    """It may be anything, and is no choice beside one that says what it serves."""
    text = (
        "services:\n  llm: {image: 'vllm/vllm-openai:v0.32.0', command: --model org/a}\n"
        "  proxy: {image: my-vllm-proxy, build: .}\n"
    )

    assert read(tmp_path, "compose.yaml", text).profile.server.model == "org/a"


def test_a_role_of_ansible(tmp_path: Path) -> None:
    """Its defaults count, and a volume of an inventory is left out without a finding of its own."""
    defaults = tmp_path / "roles" / "llm" / "defaults" / "main.yml"
    defaults.parent.mkdir(parents=True)
    defaults.write_text("model: org/a\n")
    text = (
        "- docker_container:\n    name: llm\n    image: vllm/vllm-openai:v0.32.0\n"
        "    command: --model {{ model }}\n    volumes: ['{{ root }}/hf:/root/.cache/huggingface']\n"
    )

    found = read(tmp_path, "roles/llm/tasks/main.yml", text)

    assert found.profile.server.model == "org/a"
    assert found.profile.deployment.mounts == ["/root/.cache/huggingface"]


def test_a_block_of_a_guide_with_two_servers(tmp_path: Path) -> None:
    """The refusal says how one of them is named."""
    text = "# A\n\n```bash\nvllm serve org/a --port 1\nvllm serve org/b --port 2\n```\n"

    with pytest.raises(ImportProblem, match="--vllm-service=1/NAME"):
        read(tmp_path, "a.md", text)
    assert read(tmp_path, "a.md", text, "1/2").profile.server.model == "org/b"


def test_a_relative_path_of_a_process(tmp_path: Path) -> None:
    """It is the script's folder that it is relative to, not the gate's."""
    assert read(tmp_path, "x/a.sh", "vllm serve ../m\n").profile.server.model == str(tmp_path / "m")


def test_settings_that_an_operator_passes_on(tmp_path: Path) -> None:
    """A table of vLLM's settings beside the containers is no server without it."""
    file = tmp_path / "a.yaml"
    file.write_text("""apiVersion: a/v1
kind: VllmDeployment
metadata: {name: a}
spec:
  settings: {gpu-memory-utilization: "0.7", max-model-len: 2000}
  containers: [{name: a, image: "vllm/vllm-openai:v0.22.0"}]
""")
    with pytest.raises(ImportProblem, match="which the operator of VllmDeployment passes on"):
        imported(file, environ={})
