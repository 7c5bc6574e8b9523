"""Justfiles, Taskfiles and Procfiles: what their own rules make of a command, before a shell gets it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.profile.importers import ImportProblem, imported

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.profile.importers import ImportResult

ENV = {"HOME": "/home/me", "OUT": "org/out"}


def read(folder: Path, name: str, text: str, service: str | None = None) -> ImportResult:
    """A file of that name."""
    (folder / name).write_text(text)
    return imported(folder / name, environ=ENV, service=service)


@pytest.mark.parametrize(
    ("expression", "model"),
    [
        ("'org/a'", "org/a"),
        ('"org/" + "a"', "org/a"),
        ('"org" / "a"', "org/a"),
        ('env_var_or_default("NONE", "org/a")', "org/a"),
        ('env("OUT")', "org/out"),
        ('env_var("OUT")', "org/out"),
        ('if "a" == "a" { "org/a" } else { "org/b" }', "org/a"),
        ('if "a" != "a" { "org/b" } else if "b" == "b" { "org/a" } else { "org/c" }', "org/a"),
        ('("org/" + other)', "org/a"),
        ('quote("org/a")', "org/a"),
        ('"""\norg/a"""', "org/a"),
    ],
)
def test_an_expression_of_just(expression: str, model: str, tmp_path: Path) -> None:
    """As just works it out."""
    text = f'other := "a"\nmodel := {expression}\nup:\n    @vllm serve {{{{model}}}} --seed 3\n'
    found = read(tmp_path, "justfile", text).profile.server
    assert (found.model, found.args["seed"]) == (model, 3)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("up:\n    vllm serve {{model}}\n", "{{model}}"),
        ('m := uppercase("a")\nup:\n    vllm serve {{m}}\n', "{{uppercase_a_}}"),
        ("m := `cat model`\nup:\n    vllm serve {{m}}\n", "$(cat model)"),
        ("up +m:\n    vllm serve {{m}}\n", "m has to be set"),
        ('set shell := ["fish", "-c"]\nup:\n    vllm serve org/a\n', "another shell"),
        ("up a=b=c := d\n    vllm serve org/a\n", "below a line that is not understood"),
        ("up:\n    #!/usr/bin/env python3\n    import vllm\n", "no command runs vLLM"),
        (
            "a:\n    vllm serve org/a\nb:\n    vllm serve org/b\n",
            "2 commands run vLLM: a (line 2), b (line 4)",
        ),
    ],
)
def test_what_only_just_knows(text: str, why: str, tmp_path: Path) -> None:
    """It is said."""
    with pytest.raises(ImportProblem) as caught:
        read(tmp_path, "justfile", text)
    assert why in str(caught.value)


def test_parameters_and_variables_of_a_recipe(tmp_path: Path) -> None:
    """Defaults, rests, exported ones, those of a file, and all of them where a setting says so."""
    (tmp_path / ".env").write_text("A=1\n")
    text = (
        "set dotenv-load\nset export\n# of all\nB := '2'\n[group('x')]\n"
        "up $C='3' port=env('NONE', '8001') *REST: one two\n"
        "    @echo {{{{ }}\n    -vllm serve org/a \\\n      --port {{port}} {{REST}}\n"
    )
    found = read(tmp_path, "a.just", text)
    assert found.profile.server.env == {"A": "1", "B": "2", "C": "3"}
    assert found.profile.server.args == {"port": 8001}
    assert any("a.just:8: it is started only where just up is run" in note for note in found.notes)


def test_one_recipe_is_named(tmp_path: Path) -> None:
    """By the name that just knows."""
    text = "a:\n    vllm serve org/a\nb-c:\n    vllm serve org/b\n"
    assert read(tmp_path, "justfile", text, "b-c").profile.server.model == "org/b"


@pytest.mark.parametrize(
    ("tasks", "shows"),
    [
        ("up: vllm serve org/a --seed 3", {"seed": 3}),
        ("up: ['echo x', 'vllm serve org/a --seed 3']", {"seed": 3}),
        ("up: {cmd: 'vllm serve org/a --seed 3'}", {"seed": 3}),
        ("up: {vars: {S: 3}, cmds: [{cmd: 'vllm serve org/a --seed {{.S}}'}]}", {"seed": 3}),
        ("up: {vars: {S: 3}, cmds: ['vllm serve org/a --seed {{default 4 .S}} {{.CLI_ARGS}}']}", {"seed": 3}),
        ("up: {cmds: ['vllm serve org/a --seed {{.S | default .G}}']}", {"seed": 7}),
        ("up: {env: {SEED: '{{.G}}'}, cmds: ['vllm serve org/a --seed $SEED']}", {"seed": 7}),
        ("up: {cmds: ['vllm serve {{.OUT}}']}", {}),
    ],
)
def test_a_task_of_a_taskfile(tasks: str, shows: dict[str, Any], tmp_path: Path) -> None:
    """In each of its forms."""
    text = f"version: '3'\nvars: {{G: 7}}\ntasks:\n  {tasks}\n"
    found = read(tmp_path, "Taskfile.yml", text).profile.server
    assert found.args == shows
    assert found.model in ("org/a", "org/out")


@pytest.mark.parametrize(
    ("tasks", "why"),
    [
        ("up: {cmds: ['vllm serve {{.M}}']}", "M has to be set: a variable of the Taskfile"),
        ("up: {cmds: ['vllm serve {{.M | upper}}']}", "{{.M_upper}}"),
        ("up: {vars: {M: {map: {a: b}}}, cmds: ['vllm serve {{.M}}']}", "{{a_table}}"),
        ("up: {cmds: ['vllm serve org/{{.A}}'], vars: {A: '{{.A}}'}}", "A has to be set"),
        (
            "up: {cmds: ['echo vllm']}",
            "a Taskfile, of which no task starts vLLM; give what it runs: task --dry",
        ),
    ],
)
def test_what_only_a_task_knows(tasks: str, why: str, tmp_path: Path) -> None:
    """It is said."""
    with pytest.raises(ImportProblem) as caught:
        read(tmp_path, "Taskfile.yml", f"version: '3'\ntasks:\n  {tasks}\n")
    assert why in str(caught.value)


def test_the_variables_beside_a_procfile(tmp_path: Path) -> None:
    """Foreman reads them first."""
    text = "web: rails\nllm: vllm serve org/a --port $PORT\n"
    with pytest.raises(ImportProblem, match=r"\$PORT is not set"):
        read(tmp_path, "Procfile", text)
    (tmp_path / ".env").write_text("PORT=9001\n")
    found = read(tmp_path, "Procfile", text)
    assert found.profile.server.args["port"] == 9001
    assert any(".env, which foreman reads, is read before it" in note for note in found.notes)
