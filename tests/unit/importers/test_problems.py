"""What cannot be imported: one message each, with place, reason and next step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.profile.errors import ProfileError
from pytest_vllm.profile.importers import ImportProblem, imported

if TYPE_CHECKING:
    from pathlib import Path

FORMS = (
    "a docker-compose file, a Kubernetes manifest, a systemd unit, "
    "a vllm serve, docker run or podman run line, a Dockerfile, a supervisord configuration, "
    "an Ansible playbook, a Makefile, cloud-init's user data, vLLM's --config YAML, "
    "a recipe of the vLLM project, a recipe of spark-vllm-docker or sparkrun, a guide in Markdown, "
    "a PowerShell or batch script, a SkyPilot task, "
    "a dstack configuration, a GitHub workflow, a llama-swap configuration, "
    "a Python program that starts vllm serve, a justfile, a Taskfile, a Procfile, or container:NAME"
)
VLLM = "image: vllm/vllm-openai:v0.32.0"

PROBLEMS = {
    "an empty file": ("a.yaml", "\n \n", f": the file is empty; name {FORMS}"),
    "a text of something else": ("a.txt", "hello\n", f": nothing here starts vLLM; name {FORMS}"),
    "an array that becomes another kind of array": (
        "a.sh",
        "L=(x y)\nfor B in a b; do\n  declare -A L=([a]=1)\ndone\nvllm serve $B\n",
        ":3: L is a list already: bash breaks off at `declare -A`; give the vllm serve line",
    ),
    "a YAML of something else": (
        "a.yaml",
        "scrape_configs: []\n",
        ": it looks like a Prometheus configuration; it starts no vLLM: name the file that does",
    ),
    "a YAML of nobody": (
        "a.yaml",
        "colour: blue\n",
        (
            ": it looks like YAML of another program: none of its keys is a flag of vLLM; "
            "name the file that starts vLLM"
        ),
    ),
    "a YAML of another program that shares a key": (
        "a.yaml",
        "name: a\nmodel: {path: org/a}\nnodes: 2\nrun: |\n  vllm serve org/a\n",
        (
            ": it looks like YAML of another program: of its 4 keys only model may be vLLM's; "
            "copy the command that starts vLLM out of it (line 5) into a script"
        ),
    ),
    "tabs": (
        "a.yaml",
        f"services:\n  vllm:\n\t{VLLM}\n",
        ":3: not YAML: a tab stands where spaces belong; replace tabs by spaces",
    ),
    "a broken compose file": (
        "a.yaml",
        f"services:\n  vllm:\n    {VLLM}\n   ports: []\n",
        (
            ":4: not YAML: expected <block end>, but found '<block mapping start>'; "
            "check the indentation of this line and the one above it"
        ),
    ),
    "a key given twice": (
        "a.yaml",
        f"services:\n  vllm:\n    {VLLM}\n    ipc: host\n    ipc: host\n",
        ":5: ipc is given twice (first in line 4); keep one",
    ),
    "no services": ("a.yaml", "services:\n", ":1: services is empty; name the file that starts vLLM"),
    "a service that is no table": (
        "a.yaml",
        "services:\n  vllm:\n",
        ":2: the service vllm is not a table; indent its keys below it",
    ),
    "no vLLM in it": (
        "a.yaml",
        "services:\n  web:\n    image: nginx\n  db:\n    image: postgres\n",
        ": no service runs vLLM here; there are web, db; name the file that starts vLLM",
    ),
    "two vLLM in it": (
        "a.yaml",
        f"services:\n  one:\n    {VLLM}\n  two:\n    {VLLM}\n",
        ":2: 2 services run vLLM: one (line 2), two (line 4); say which: --vllm-service=NAME",
    ),
    "a variable that is not set": (
        "a.yaml",
        "services:\n  vllm:\n    image: vllm/vllm-openai:${TAG}\n",
        ":3: ${TAG} is not set; export TAG=… where pytest runs",
    ),
    "a variable that has to be set": (
        "a.yaml",
        "services:\n  vllm:\n    image: vllm/vllm-openai:${TAG:?which version}\n",
        ":3: TAG has to be set: which version; export TAG=… where pytest runs",
    ),
    "an env file that is not there": (
        "a.yaml",
        f"services:\n  vllm:\n    {VLLM}\n    env_file: vllm.env\n",
        ":4: the env file vllm.env is not there; put it at {folder}/vllm.env",
    ),
    "an unknown flag": (
        "a.sh",
        "vllm serve a/b \\\n  --max-modle-len 4096\n",
        ":2: unknown vllm flag '--max-modle-len'; did you mean --max-model-len?",
    ),
    "a flag without its value": (
        "a.sh",
        "vllm serve a/b --max-model-len --enforce-eager\n",
        ":1: --max-model-len lacks its value; write --max-model-len VALUE",
    ),
    "two models": (
        "a.sh",
        "vllm serve a/b c/d\n",
        ":1: 'c/d' stands alone, and the model is 'a/b' already; put it behind the flag that it belongs to",
    ),
    "a value of the wrong kind": (
        "a.yaml",
        "model: a/b\nenforce-eager: [1]\n",
        ":2: [server.args] enforce-eager is [1]: it is a switch, write true or false",
    ),
    "an open quote": (
        "a.sh",
        "vllm serve a/b \\\n  --chat-template 'x\n",
        ":2: a ' is not closed; close the quote",
    ),
    "an unknown option": (
        "a.sh",
        "docker run --gpu all vllm/vllm-openai --model a/b\n",
        ":1: unknown option '--gpu' in the run line; did you mean '--gpus'?",
    ),
    "a run line without an image": (
        "a.sh",
        "docker run --name vllm-openai\n",
        ":1: `docker run` names no image; complete the line",
    ),
    "two commands": (
        "a.sh",
        "vllm serve a/b --port 1\nvllm serve c/d --port 2\n",
        ":1: 2 commands run vLLM: 1 (line 1), 2 (line 2); say which: --vllm-service=NAME",
    ),
    "one line that starts several servers": (
        "a.sh",
        "start() {\n  vllm serve org/a --max-num-seqs $1 --api-key $2 &\n}\nstart 8 abc\nstart 16 def\n",
        (
            ":2: 2 commands run vLLM: 1 (line 2, --max-num-seqs 8), 2 (line 2, --max-num-seqs 16); "
            "say which: --vllm-service=NAME"
        ),
    ),
    "two ExecStart": (
        "a.service",
        "[Service]\nExecStart=/usr/bin/vllm serve a/b\nExecStart=/usr/bin/vllm serve c/d\n",
        (
            ":3: the unit has 2 ExecStart (lines 2 and 3); keep one; "
            "an empty ExecStart= takes back what stands before it"
        ),
    ),
    "no ExecStart": (
        "a.service",
        "[Unit]\nDescription=x\n",
        ": the unit has no ExecStart; name the .service file that starts vLLM",
    ),
    "a unit of something else": (
        "a.service",
        "[Service]\nExecStart=/usr/bin/nginx -g x\n",
        ":2: ExecStart runs /usr/bin/nginx, not vLLM; name the file that starts vLLM",
    ),
    "a unit's line that goes nowhere": (
        "a.service",
        "[Service]\nExecStart=/usr/bin/vllm serve a/b\n  --port 1\n",
        ":3: '--port 1' is not a line of a unit; a line that goes on ends in a backslash",
    ),
    "an environment file that is not there": (
        "a.service",
        "[Service]\nEnvironmentFile=/none/vllm\nExecStart=/usr/bin/vllm serve a/b\n",
        ":2: the environment file /none/vllm is not there; import the unit where it runs",
    ),
    "a Quadlet without an image": (
        "a.container",
        "[Container]\nExec=serve a/b\n",
        ":2: the Quadlet names no Image; complete the file",
    ),
    "a Quadlet of something else": (
        "a.container",
        "[Container]\nImage=docker.io/library/redis\n",
        ":2: the Quadlet runs docker.io/library/redis, not vLLM; name the file that starts vLLM",
    ),
    "a Quadlet pod": (
        "a.pod",
        "[Pod]\nPodName=x\n",
        ": a Quadlet pod: it starts no server by itself; name the .container file that starts vLLM in it",
    ),
    "an image that is no text": (
        "a.yaml",
        f"services:\n  vllm:\n    {VLLM}\n    shm_size: big\n",
        ":4: 'big' is not a size of /dev/shm; write one such as \"16g\"",
    ),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_a_problem_is_one_message(case: str, tmp_path: Path) -> None:
    """The whole of it."""
    name, text, said = PROBLEMS[case]
    file = tmp_path / name
    file.write_text(text, "utf-8")

    with pytest.raises(ImportProblem) as caught:
        imported(file, environ={})

    assert str(caught.value) == f"{file}{said}".replace("{folder}", str(tmp_path))
    assert isinstance(caught.value, ProfileError)


@pytest.mark.parametrize(
    ("service", "said"),
    [
        ("twoo", ": unknown service 'twoo'; did you mean 'two'? (one of one, two)"),
        ("web", ": the service 'web' does not run vLLM; one that does: one, two"),
    ],
)
def test_a_service_that_is_not_there(service: str, said: str, tmp_path: Path) -> None:
    """The near one is offered, or those that run vLLM."""
    file = tmp_path / "compose.yaml"
    file.write_text(f"services:\n  one:\n    {VLLM}\n  web:\n    image: nginx\n  two:\n    {VLLM}\n", "utf-8")

    with pytest.raises(ImportProblem) as caught:
        imported(file, service=service, environ={})

    assert str(caught.value) == f"{file}{said}"


def test_a_file_that_is_not_there() -> None:
    """A name without spaces is a file's."""
    with pytest.raises(ImportProblem) as caught:
        imported("none.yaml", environ={})

    assert str(caught.value) == (
        "none.yaml: cannot be read: No such file or directory; name a file, or container:NAME"
    )


def test_an_unknown_kind() -> None:
    """The near one is offered."""
    with pytest.raises(ImportProblem) as caught:
        imported("vllm serve a/b", kind="composer", environ={})

    assert str(caught.value) == (
        "unknown kind 'composer'; did you mean 'compose'? "
        "(one of ansible, cloud-init, compose, config, dockerfile, dstack, just, kubernetes, llama-swap, "
        "makefile, markdown, powershell, procfile, python, recipe, shell, skypilot, spark-recipe, "
        "supervisord, systemd, taskfile, workflow)"
    )


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    """A binary by mistake."""
    file = tmp_path / "vllm"
    file.write_bytes(b"\x7fELF\xff")

    with pytest.raises(ImportProblem) as caught:
        imported(file, environ={})

    assert (
        str(caught.value)
        == f"{file}: not UTF-8 text (it looks like a program (ELF)); name the file that starts vLLM"
    )


def test_files_from_editors_that_mark_them(tmp_path: Path) -> None:
    """A byte order mark is no content."""
    (tmp_path / ".env").write_text("MODEL=a/b\n", "utf-8-sig")
    (tmp_path / "c.yaml").write_text(
        f"services:\n  v:\n    {VLLM}\n    command: --model ${{MODEL}}\n", "utf-8-sig"
    )

    assert imported(tmp_path / "c.yaml", environ={}).profile.server.model == "a/b"
