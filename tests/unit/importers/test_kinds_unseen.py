"""Kinds that came out wrong on public files nobody had seen; each in a small input of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from pytest_vllm.preflight import check
from pytest_vllm.profile.importers import ImportProblem, imported

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = "#!/bin/bash\n{}\nvllm serve org/a\n"


@pytest.mark.parametrize(
    ("directive", "hardware"),
    [
        ("#SBATCH --gres=gpu:h200:4", "h200"),
        ("#SBATCH -G A100_80GB:1", "a100"),
        ("#SBATCH --constraint=l40s", "l40s"),
    ],
)
def test_a_batch_system_names_the_gpu(directive: str, hardware: str) -> None:
    """A directive is a comment to the shell alone."""
    found = imported(SCRIPT.format(directive))
    assert found.profile.hardware == hardware
    assert any(hardware in note for note in found.notes)


@pytest.mark.parametrize("directive", ["#SBATCH --gres=gpu:2", "#PBS -l ngpus=2", "#SBATCH --mem=9G"])
def test_another_directive_is_noted(directive: str) -> None:
    """What it asks for is in no profile, and that is said."""
    found = imported(SCRIPT.format(directive))
    assert not found.profile.hardware
    assert any(directive.split(" ", 1)[1] in note for note in found.notes)


def test_a_directive_taken_back_says_nothing() -> None:
    """Two signs make it a comment to the batch system too."""
    assert not any("h200" in note for note in imported(SCRIPT.format("##SBATCH --gres=gpu:h200:1")).notes)


def test_two_containers_of_one_name_can_be_chosen() -> None:
    """A name that two have names neither."""
    line = "docker run --name one vllm/vllm-openai:v0.11.0 --model org/{}\n"
    text = line.format("a") + line.format("b")
    with pytest.raises(ImportProblem, match=r"1 \(line 1\), 2 \(line 2\)"):
        imported(text)
    assert imported(text, service="2").profile.server.model == "org/b"


def test_an_empty_model_is_refused() -> None:
    """`vllm serve ""` serves no default."""
    with pytest.raises(ImportProblem, match="an empty word stands where the model belongs"):
        imported('MODEL="${1:-}"\nvllm serve "$MODEL" --port 9000\n')


def test_a_script_that_writes_a_manifest_is_a_script(tmp_path: Path) -> None:
    """What it writes for kubectl is not its own kind."""
    script = tmp_path / "install.sh"
    script.write_text("cat <<EOF > it.yaml\nkind: Pod\nvalue: a: b\nEOF\nkubectl apply -f it.yaml\n")
    with pytest.raises(ImportProblem, match=r"kubectl apply.*import that file"):
        imported(script)


def manifest(image: str, *args: str) -> str:
    """A pod of one container."""
    pod = {"containers": [{"name": "main", "image": image, "args": list(args)}]}
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "it"}, "spec": pod})


def test_an_image_of_any_name_is_known_by_its_flags() -> None:
    """A model and flags that vLLM alone has, all of them, start vLLM."""
    text = manifest("registry.example/our-models:7", "--model=org/a", "--tensor-parallel-size=2")
    assert imported(text).profile.server.model == "org/a"


@pytest.mark.parametrize(
    "args", [("--model=org/a",), ("--model-id=org/a", "--port=80"), ("--model=a", "--mmproj=b")]
)
def test_flags_of_another_server_are_not_vllms(args: tuple[str, ...]) -> None:
    """The image that runs instead is named."""
    with pytest.raises(ImportProblem, match=r"image registry.example/other:1"):
        imported(manifest("registry.example/other:1", *args))


def test_the_parameter_of_a_template_is_noted() -> None:
    """An image that a template fills in cannot be pulled."""
    notes = imported(manifest("$(vllm-image)", "--model=org/a")).notes
    assert any("$(vllm-image) is a template's parameter" in note for note in notes)


def test_dockers_firewall_is_not_named_on_the_hosts_network(tmp_path: Path) -> None:
    """Nothing is published there."""

    def why(options: str) -> str:
        line = f"docker run {options} vllm/vllm-openai:v0.14.0 --model org/a\n"
        found = check(imported(line).profile, tmp_path)
        return " ".join(str(one) for one in found if one.rule == "security.open")

    assert "Docker publishes" in why("-p 8000:8000")
    assert "Docker publishes" not in why("-p 8000:8000 --network=host")
    assert "reachable" in why("-p 8000:8000 --network=host")
