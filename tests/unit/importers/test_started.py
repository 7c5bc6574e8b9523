"""What an image, a script and an operator start besides what stands there: said, or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from pytest_vllm.profile.importers import ImportProblem, imported

if TYPE_CHECKING:
    from pathlib import Path

STOCK = "vllm/vllm-openai:v0.32.0"


def compose(**service: object) -> str:
    """A compose file of one service."""
    return yaml.safe_dump({"services": {"llm": service}})


@pytest.mark.parametrize(
    "text",
    [
        f"docker run {STOCK} vllm serve org/a\n",
        f"docker run docker.io/{STOCK} serve org/a\n",
        f"docker run {STOCK} bash -c 'vllm serve org/a'\n",
        f"podman run {STOCK} python3 -m vllm.entrypoints.openai.api_server --model org/a\n",
        compose(image=STOCK, command="vllm serve org/a"),
        f"[Container]\nImage={STOCK}\nExec=vllm serve org/a\n",
    ],
)
def test_an_image_that_starts_vllm_takes_more_of_it_for_arguments(text: str) -> None:
    """`vllm serve vllm serve org/a` ends with an error there, and would not here: the gate sets the entry."""
    with pytest.raises(ImportProblem, match=r"starts vLLM itself.*leave out"):
        imported(text)


@pytest.mark.parametrize(
    "text",
    [
        f"docker run --entrypoint '' {STOCK} vllm serve org/a\n",
        f"docker run --entrypoint vllm {STOCK} serve org/a\n",
        "docker run rocm/vllm:latest vllm serve org/a\n",
        "docker run example.org/vllm/vllm-openai:1 vllm serve org/a\n",
        compose(image=STOCK, entrypoint=[], command="vllm serve org/a"),
        compose(image=STOCK, entrypoint="", command="vllm serve org/a"),
        compose(image=STOCK, entrypoint=["vllm"], command=["serve", "org/a"]),
    ],
)
def test_an_entry_point_that_is_taken_away_is_not_in_the_way(text: str) -> None:
    """Nor is one that nobody knows."""
    assert imported(text).profile.server.model == "org/a"


def test_an_unset_variable_of_the_container_is_empty() -> None:
    """As docker passes it; a secret stays a reference."""
    text = f"docker run -e A=$NOBODY --env=B=x$NOBODY -eC=$NOBODY -e HF_TOKEN=$T {STOCK} --model org/a\n"
    env = imported(text, environ={}).profile.server.env
    assert {key: env[key] for key in "ABC"} == {"A": "", "B": "x", "C": ""}
    assert not isinstance(env["HF_TOKEN"], str)


def test_another_option_of_an_unset_name_is_refused_by_its_own_name() -> None:
    """Not by the one before it, which a shell leaves out."""
    with pytest.raises(ImportProblem, match=r": \$P is not set") as caught:
        imported(f"docker run -p $P:8000 $EXTRA {STOCK} --model org/a\n", environ={})
    assert "EXTRA" not in str(caught.value)


@pytest.mark.parametrize("how", ['"$@"', "$*", '"${MORE[@]}"'])
def test_the_arguments_of_a_script_are_asked_for(how: str) -> None:
    """They are in no file; without a model nothing is left to read."""
    text = f'MORE=("$@")\nvllm serve MODEL {how}\n'
    notes = imported(text.replace("MODEL", "org/a"), environ={}).notes
    assert any("the script is called with" in note for note in notes)
    with pytest.raises(ImportProblem, match="the script is called with"):
        imported(text.replace("MODEL", ""), environ={})


def test_a_name_that_was_set_to_an_unset_one_has_no_default() -> None:
    """It is set, to whatever the other one is."""
    with pytest.raises(ImportProblem, match=r"\$A is not set"):
        imported("A=$A\nvllm serve org/a --seed ${A-3}\n", environ={})
    assert imported("vllm serve org/a --seed ${A-3}\n", environ={}).profile.server.args == {"seed": 3}


def test_a_function_has_its_own_arguments() -> None:
    """Those are in the file."""
    text = 'run() { vllm serve "$@"; }\nrun org/a --seed 3\n'
    assert not imported(text, environ={}).notes


def operated(**spec: object) -> str:
    """An object whose operator puts a container together."""
    return yaml.safe_dump({"apiVersion": "x/v1", "kind": "Runtime", "metadata": {"name": "r"}, "spec": spec})


def test_arguments_beside_a_container_are_another_server() -> None:
    """They are refused with the object's kind."""
    rest = {"presets": [{"name": "p", "args": ["--model", "org/a"]}]}
    with pytest.raises(ImportProblem, match=r"holds arguments of vLLM \(--model\).*operator of Runtime"):
        imported(operated(image=STOCK, command=["vllm", "serve"], **rest))


def test_arguments_of_another_program_are_not() -> None:
    """A container that fetches the model, a probe."""
    pod = {
        "initContainers": [{"name": "get", "args": ["--revision", "main", "--model", "org/a"]}],
        "containers": [
            {
                "name": "v",
                "image": STOCK,
                "args": ["--model", "org/a"],
                "livenessProbe": {"exec": {"command": ["check", "--model", "org/a"]}},
            }
        ],
    }
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod})
    assert imported(text).profile.server.model == "org/a"


def test_a_kube_unit_is_its_manifest(tmp_path: Path) -> None:
    """With the ports of the unit."""
    pod = {"containers": [{"name": "v", "image": STOCK, "args": ["--model", "org/a"]}]}
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": pod})
    (tmp_path / "pod.yaml").write_text(text)
    unit = tmp_path / "llm.kube"
    unit.write_text("[Kube]\nYaml=pod.yaml\nPublishPort=9000:8000\nNetwork=x\n")
    found = imported(unit)
    assert (found.profile.server.launcher, found.profile.deployment.ports) == ("podman", ["9000:8000"])
    assert any("Network=x in llm.kube:4 is not carried over" in note for note in found.notes)


def test_a_recipe_of_another_server_is_refused() -> None:
    """vLLM-Omni's say so in a part of their own."""
    recipe = {
        "meta": {"title": "t"},
        "model": {"model_id": "org/a"},
        "variants": {"default": {}},
        "omni": {"port": 1},
    }
    with pytest.raises(ImportProblem, match="vLLM-Omni"):
        imported(yaml.safe_dump(recipe))


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("job.hcl", 'job "a" {\n  group "g" {\n  }\n}\n', "Nomad job"),
        ("main.hcl", 'resource "a" "b" {\n  name = "c"\n}\n', "HCL"),
        ("a", 'job "a" {\n  group "g" {\n  }\n}\n', "Nomad"),
        ("ecosystem.config.js", "module.exports = {}\n", "PM2"),
        ("a.yml", f"llm:\n  image: {STOCK}\n  ports: ['8000:8000']\n", "a service of a compose file"),
        ("a.volume", "[Volume]\nDriver=image\n", "a Quadlet volume"),
    ],
)
def test_a_kind_is_named(name: str, text: str, kind: str, tmp_path: Path) -> None:
    """What it looks like, and a next step."""
    (tmp_path / name).write_text(text)
    with pytest.raises(ImportProblem) as caught:
        imported(tmp_path / name)
    assert kind in str(caught.value)
    assert ";" in str(caught.value)


def test_a_task_that_ends_a_container_starts_none() -> None:
    """Nor does one of another image."""
    text = (
        "- hosts: all\n  tasks:\n"
        f"  - docker_container: {{name: a, image: '{STOCK}', command: --model org/a, state: absent}}\n"
    )
    with pytest.raises(ImportProblem, match="no docker_container of it runs vLLM"):
        imported(text)


def test_what_supervisord_itself_sets_is_in_its_programs() -> None:
    """Under the program's own; a second process of it is said."""
    text = (
        '[supervisord]\nenvironment=A="1",B="2"\nlogfile=/x\n[program:llm]\n'
        "command=vllm serve\n    org/a\n    --seed 3 ; why\nenvironment=B=3\nnumprocs=2\n"
    )
    found = imported(text)
    assert found.profile.server.env == {"A": "1", "B": "3"}
    assert found.profile.server.args == {"seed": 3}
    assert any("numprocs=2 is not carried over" in note for note in found.notes)
    assert not any("environment" in note for note in found.notes)
    with pytest.raises(ImportProblem, match=r"there is llm \(/opt/start.sh\)"):
        imported("[program:llm]\ncommand=/opt/start.sh\n")


def test_a_dockerfile_of_several_stages(tmp_path: Path) -> None:
    """The last one counts, with what it takes over."""
    file = tmp_path / "Dockerfile"
    file.write_text(
        "ARG TAG=v0.32.0\nFROM vllm/vllm-openai:${TAG} AS base\nENV A=1 \\\n  # why\n  B='x y'\n"
        'ENTRYPOINT ["vllm", "serve"]\nFROM alpine AS other\nRUN true\n'
        'FROM base\nCMD ["org/a", "--seed", "3"]\n'
    )
    found = imported(file)
    server = found.profile.server
    assert (server.image, server.model, server.env) == (STOCK, "org/a", {"A": "1", "B": "x y"})
    assert any("RUN of another stage is not carried over" in note for note in found.notes)
