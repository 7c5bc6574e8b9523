"""More kinds that came out wrong on public files nobody had seen; each in a small input of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.preflight import check
from pytest_vllm.profile.importers import ImportProblem, imported

if TYPE_CHECKING:
    from pathlib import Path

RUN = "docker run vllm/vllm-openai:v0.30.0 --model org/a\n"


def test_a_container_that_only_knows_where_vllm_is() -> None:
    """An address in a variable starts nothing."""
    text = f"{RUN}docker run -e LLM_URL=http://vllm:8000 --env=B=http://host/vllm our-gateway\n"
    assert imported(text).profile.server.model == "org/a"


@pytest.mark.parametrize("name", ["values.yaml", "settings.yaml"])
def test_a_template_in_a_comment_makes_no_template(name: str, tmp_path: Path) -> None:
    """The file is what its keys say."""
    file = tmp_path / name
    file.write_text("image: {repository: vllm/vllm-openai, tag: v1}\nresources: {}\n# {% for a in b %}\n")
    with pytest.raises(ImportProblem, match="the values of a Helm chart"):
        imported(file)


def test_markup_around_a_command_is_no_part_of_it() -> None:
    """As fences are not."""
    assert imported(f"<!-- how to start -->\n{RUN}").profile.server.model == "org/a"


def test_a_script_that_ends_as_it_is_called() -> None:
    """None of the others is taken for it; a single one is."""
    text = 'case "${{1:-}}" in\n  a) M=org/a ;;\n{}  *) echo usage; exit 1 ;;\nesac\nvllm serve $M\n'
    with pytest.raises(ImportProblem, match=r"M hangs on what the script is given.*the script ends"):
        imported(text.format("  b) M=org/b ;;\n"))
    assert imported(text.format("")).profile.server.model == "org/a"


def test_a_variable_exported_deep_in_branches_is_not_idle() -> None:
    """It is said of what it hangs on."""
    text = 'case "$(uname)" in L*) case "$(id)" in *0*) export DEEP=1 ;; esac ;; esac\nvllm serve org/a\n'
    found = imported(text)
    assert "DEEP" not in found.profile.server.env
    assert any("DEEP is not set, or '1'" in note for note in found.notes)


def test_an_empty_number_is_refused() -> None:
    """The server ends on it."""
    text = (
        "services:\n  a:\n    image: vllm/vllm-openai:v0.30.0\n    command: [--model, a, --node-rank, '']\n"
    )
    with pytest.raises(ImportProblem, match="--node-rank is empty, and vLLM wants a number"):
        imported(text)


def test_a_dockerfile_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Where no service is known to run vLLM."""
    file = tmp_path / "compose.yaml"
    file.write_text("services:\n  it:\n    build: {context: .., dockerfile: d/Dockerfile.a}\n")
    with pytest.raises(ImportProblem, match=r"it \(built from \.\./d/Dockerfile\.a, which is not there\)"):
        imported(file)


def test_a_run_line_that_is_not_reached_is_named() -> None:
    """Rather than that there is none."""
    with pytest.raises(ImportProblem, match=r"`docker run -d vllm/.*is not reached"):
        imported("if false; then\n  docker run -d vllm/vllm-openai:v0.30.0 --model org/a\nfi\n")


def test_the_gpus_of_several_machines_are_no_fault(tmp_path: Path) -> None:
    """Each of them shows its own."""
    text = (
        'recipe_version: "2"\nmodel: org/a\ncontainer: x\nmin_nodes: 2\nenv: {CUDA_VISIBLE_DEVICES: "0"}\n'
        "command: vllm serve {model} -tp 2\n"
    )
    assert "parallel.visible-few" not in [one.rule for one in check(imported(text).profile, tmp_path)]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--enforce-eager true", "--enforce-eager takes no value, and vLLM ends on 'true' behind it"),
        ("--trust-remote-code=false", "write --no-trust-remote-code, or leave it out"),
    ],
)
def test_a_switch_with_a_value_is_refused(words: str, why: str) -> None:
    """The argument parser ends on it, but for the one switch that took a value once."""
    with pytest.raises(ImportProblem) as caught:
        imported(f"vllm serve org/a {words}\n")
    assert why in caught.value.what


def test_flags_behind_a_script_that_is_not_there(tmp_path: Path) -> None:
    """They are the server's, and what the script adds is said to be unknown."""
    file = tmp_path / "Dockerfile"
    file.write_text(
        'FROM vllm/vllm-openai:v0.30.0\nRUN make it\nENTRYPOINT ["/start.sh"]\n'
        'CMD ["--model", "org/a", "--seed", "3"]\n'
    )
    found = imported(file)
    assert (found.profile.server.model, found.profile.server.args) == ("org/a", {"seed": 3})
    assert found.profile.server.entrypoint == ["/start.sh"]
    assert any("/start.sh is not read" in note for note in found.notes)


def test_the_variables_of_an_image_that_is_put_together() -> None:
    """Those of the image that the function runs in, step by step; not those of another one."""
    text = (
        "import subprocess\nimport modal\n"
        'image = modal.Image.debian_slim().pip_install("vllm==0.20.0").env({"A": "1"})\n'
        'image = image.env({"B": "2"})\nother = modal.Image.debian_slim().env({"C": "3"})\n'
        'app = modal.App("a")\n@app.function(image=image, gpu="L4:1")\ndef serve():\n'
        '    subprocess.Popen(["vllm", "serve", "org/a"])\n'
    )
    assert imported(text).profile.server.env == {"A": "1", "B": "2"}


def test_a_script_that_rents_a_machine_says_so() -> None:
    """What it prints of vLLM is not its command."""
    text = "#!/bin/bash\ncat <<'X'\n  --args A   for vllm serve.\nX\nvastai create instance 1 --image vllm\n"
    with pytest.raises(ImportProblem, match=r"vastai create instance.*starts it on other machines"):
        imported(text)


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("uvx vllm@0.9.1 serve --model org/a", "0.9.1"),
        ("uv tool run --python 3.12 vllm@v0.9.1 serve org/a", "0.9.1"),
        ("uv tool run 'vllm[audio]@latest' serve org/a", ""),
        ("pipx run vllm==0.20.0 serve org/a", "0.20.0"),
    ],
)
def test_a_tool_and_its_version(line: str, version: str) -> None:
    """What is fetched for one command starts vLLM too."""
    server = imported(f"{line}\n").profile.server
    assert (server.model, server.version or "") == ("org/a", version)
    assert list(server.command or ()) == [*line.replace("'", "").partition(" serve")[0].split(), "serve"]


@pytest.mark.parametrize(("target", "words"), [("vllm", "vllm serve org/a"), ("docker", RUN.strip())])
def test_a_target_called_as_a_program(target: str, words: str, tmp_path: Path) -> None:
    """A recipe runs the program, not the target."""
    file = tmp_path / "Makefile"
    file.write_text(f"stop:\n\tuv run ray stop\n\n{target}:\n\t{words}\n")
    assert imported(file).profile.server.model == "org/a"


def test_what_a_build_has_to_be_given(tmp_path: Path) -> None:
    """It is said, and not of what has a default or is known to every build."""
    file = tmp_path / "Dockerfile"
    file.write_text(
        "ARG HAS=1\nFROM vllm/vllm-openai:v0.20.0\nARG HAS\nARG LACKS\nARG TARGETARCH\nARG IDLE\n"
        'RUN echo $HAS ${LACKS} $TARGETARCH\nCMD ["org/a"]\n'
    )
    given = [note for note in imported(file).notes if "--build-arg" in note]
    assert ["given LACKS: --build-arg LACKS=" in note for note in given] == [True]


def test_roles_that_serve_together(tmp_path: Path) -> None:
    """Each pod has its own GPU: none of the others' is asked of this one."""
    text = (
        "apiVersion: workloads.x-k8s.io/v1alpha1\nkind: RoleBasedGroup\nspec:\n  roles:\n"
        "  - name: leader\n    replicas: 1\n    template:\n      spec:\n        containers:\n"
        "        - name: vllm\n"
        "          image: vllm/vllm-openai:v0.8.4\n          resources: {limits: {nvidia.com/gpu: 1}}\n"
        "          command: [sh, -c, 'init.sh leader --ray_cluster_size=$(RBG_GROUP_SIZE); vllm serve "
        "org/a --pipeline-parallel-size 2']\n"
        "  - name: worker\n    replicas: 1\n    template: {spec: {containers: [{name: w, image: b}]}}\n"
    )
    profile = imported(text).profile
    per_machine = ("parallel.visible-few", "parallel.gpus", "container.shared-memory")
    assert profile.deployment.machines == 2
    found = [one for one in check(profile, tmp_path) if one.rule in per_machine]
    assert [one.means for one in found] == [
        "the gate starts one machine's part, of 1 GPUs, and not the whole"
    ]
