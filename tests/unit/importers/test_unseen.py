"""Kinds of faults that public files showed: read wrongly in silence, or refused for a wrong reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.profile.importers import ImportProblem, imported

if TYPE_CHECKING:
    from pathlib import Path

UNIT = '[Service]\nEnvironment="ARGS=--max-model-len 4096 --seed 3" A=1\nExecStart=/usr/bin/vllm serve {}\n'


def refusal(text: str) -> str:
    """Why a text is refused."""
    with pytest.raises(ImportProblem) as caught:
        imported(text, environ={"HOME": "/home/me"})
    return caught.value.what


def test_blanks_before_a_name_between_quotes() -> None:
    """A line that goes on between quotes does not glue two names together."""
    text = 'P=8001\nMORE="--seed 3"\nC="vllm serve org/a --port $P \\\n    $MORE"\neval "$C"\n'

    args = imported(text, environ={}).profile.server.args
    assert (args["port"], args["seed"]) == (8001, 3)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("TP=$(nvidia-smi -L | wc -l)\nvllm serve org/a -tp $TP", "$(nvidia-smi -L | wc -l)"),
        ("M=$(cat model.txt)\nvllm serve ${M##*/}", "${M##*/}"),
        ("vllm serve $(cat model.txt)", "$(cat model.txt)"),
        ("docker run vllm/vllm-openai:$(cat tag) --model org/a", "image is $(cat tag)"),
        (
            'vllm serve org/a --limit-mm-per-prompt {"image":2,"video":0}',
            "of which bash makes several words; put quotes around it",
        ),
        ("IFS=, read -ra G < gpus\nvllm serve org/a -tp ${#G[@]}", "$G is read when the script runs"),
        ("TP=1; (( TP *= 2 ))\nvllm serve org/a -tp $TP", "$TP is worked out by (( … ))"),
        ("TP=1; let TP=2\nvllm serve org/a -tp $TP", "$TP is worked out by let"),
        ("declare -A P=([a]=8001)\nvllm serve org/a --port ${P[a]}", "$P is an array by names"),
        ("N=0; for ((i=0; i<3; i++)); do N=$((N+1)); done\nvllm serve org/a --seed $N", "changes in a loop"),
        ("vllm serve {{model}} --port 8000", "{{model}} belongs to a template"),
        ("vllm serve org/a --max-model-len {{ .Values.len }}", "it looks like a template"),
    ],
)
def test_what_only_another_program_knows(text: str, why: str) -> None:
    """It does not become a model, or a number, by the letter."""
    assert why in refusal(text)


def test_what_is_left_out_is_named() -> None:
    """Names, users and folders of this machine are no reason to refuse a server."""
    options = "--name v-$(date +%s) --user $(id -u) -e IP=$(hostname -i) -v $(mktemp -d):/t"
    given = f"docker run {options} vllm/vllm-openai:v0.20.0 org/a"
    found = imported(given, environ={})

    assert (found.profile.server.user, found.profile.server.env, found.profile.server.volumes) == (
        None,
        {},
        [],
    )
    notes = "\n".join(found.notes)
    for name in ("name v-$(date +%s)", "user $(id -u)", "IP $(hostname -i)", "volumes $(mktemp -d):/t"):
        assert f"{name} is left out: only what runs it knows its value" in notes


def test_a_bare_name_of_a_unit_is_split() -> None:
    """`$ARGS` becomes several words, as systemd makes them."""
    args = imported(UNIT.format("org/a $ARGS"), environ={}).profile.server.args

    assert (args["max-model-len"], args["seed"]) == (4096, 3)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("org/a --port 800%i", "%i is filled in by systemd"),
        ("${MODEL}", "${MODEL} is not set"),
        ("org/a --port=$A", "systemd does not fill $A in within --port=$A; write ${A}"),
    ],
)
def test_what_systemd_alone_knows(words: str, why: str) -> None:
    """No specifier and no empty name gets into a profile."""
    assert why in refusal(UNIT.format(words))


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.json", '{"containerDefinitions": [{"image": "vllm/vllm-openai"}]}', "Amazon ECS"),
        ("a.json", '{"imageName": "vllm/vllm-openai", "dockerArgs": "--model a"}', "RunPod"),
        ("bentofile.yaml", 'service: "a:B"\ninclude: ["*.py"]\n', "BentoML"),
        ("a.nix", '{ cmd = [ "vllm" "serve" ]; }\n', "Nix"),
        (
            "Singularity.vllm",
            "# ours\nBootstrap: docker\nFrom: a\n%post\nimport vllm\n",
            "an Apptainer or Sing",
        ),
        ("compose.yml", 'version: "2"\ninstances: {a: {run: {args: vllm serve}}}\n', "singularity-compose"),
        ("Procfile", "web: gunicorn app:app\n", "Procfile, of which no process starts vLLM"),
        ("a.yml", "- name: a\n  docker_container: {image: redis}\n", "Ansible"),
        (
            "a.sbatch",
            "#!/bin/bash\nsrun singularity run --nv vllm.sif --model org/a\n",
            "what an image holds",
        ),
    ],
)
def test_its_kind_is_said(name: str, text: str, kind: str, tmp_path: Path) -> None:
    """A file that is not read says what it looks like."""
    file = tmp_path / name
    file.write_text(text)

    with pytest.raises(ImportProblem, match=kind):
        imported(file, environ={})


def test_a_loop_that_counts_for_itself() -> None:
    """It is followed as often as it runs."""
    text = "i=0\nwhile [ $i -lt 3 ]; do i=$((i+1)); done\nvllm serve org/a --seed $i"

    assert imported(text, environ={}).profile.server.args["seed"] == 3
