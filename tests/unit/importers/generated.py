"""Generated deployment files of every kind: each of their parts is used, noted, or the file is refused.

`python -m tests.unit.importers.generated 10000` makes and imports that many, and prints the counts by kind.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pytest_vllm.facts import flags, versions
from pytest_vllm.profile.importers import ImportProblem, imported
from pytest_vllm.profile.importers.runoptions import SWITCHES, VALUED
from pytest_vllm.profile.write import to_toml
from tests.unit.importers.parts import (
    BATCH,
    CMDLETS,
    INSTRUCTIONS,
    KEYS,
    POD_KEYS,
    PROGRAM_KEYS,
    STATEMENTS,
    TASK_KEYS,
    UNIT_KEYS,
    VALUES,
)

ENVIRON = {"HOME": "/home/me"}
IMAGE = "vllm/vllm-openai:v0.32.0"
#: Flags whose value may be any text.
TEXTS = [one.name for one in flags(versions()[-1]).values() if one.type == "str" and not one.choices]
NAMES = st.from_regex(r"[A-Z][A-Z0-9]{1,6}", fullmatch=True)


class Made(NamedTuple):
    """A file that was made.

    Args:
        name: its name.
        text: what is in it.
        marks: parts of it that have to be seen, each with its line.
        beside: an env file that it names.
    """

    name: str
    text: str
    marks: list[tuple[str, int]]
    beside: str = ""


def made(name: str, lines: list[str], beside: str = "") -> Made:
    """A file whose marks are the words `mark1z`, `mark2z` in it, by line."""
    text = "\n".join(lines) + "\n"
    split = text.split("\n")
    marks = [(mark, at) for at, line in enumerate(split, 1) for mark in re.findall(r"mark\d+z", line)]
    return Made(name, text, marks, beside)


def numbered(texts: list[str]) -> list[str]:
    """`{}` in texts as a mark of its own."""
    return [text.format(*[f"mark{place}z"] * text.count("{}")) for place, text in enumerate(texts, 1)]


@st.composite
def scripts(draw: st.DrawFn) -> Made:
    """Statements around a server."""
    before = draw(st.lists(st.sampled_from(STATEMENTS), max_size=7))
    after = draw(st.lists(st.sampled_from(STATEMENTS), max_size=3))
    return made("a.sh", ["#!/bin/bash", *numbered([*before, "vllm serve org/{}", *after])])


@st.composite
def run_lines(draw: st.DrawFn) -> Made:
    """Options of an engine, and of vLLM, one to a line."""
    options = draw(st.lists(st.sampled_from(sorted(VALUED | SWITCHES)), max_size=6))
    ours = draw(st.lists(st.sampled_from(TEXTS), max_size=4, unique=True))
    lines = ["docker run \\"]
    lines += [f"  --{one} \\" if one in SWITCHES else f"  --{one} {{}} \\" for one in options]
    lines += [f"  {IMAGE} \\", "  --model org/{} \\", *(f"  --{one} {{}} \\" for one in ours), "  --seed 1"]
    return made("a.sh", numbered(lines))


@st.composite
def compose_files(draw: st.DrawFn) -> Made:
    """A service of any keys."""
    keys = draw(st.lists(st.sampled_from(KEYS), unique=True, max_size=8))
    lines = ["services:", "  llm:", "    command: --model org/a"]
    lines += [] if "image" in keys else [f"    image: {IMAGE}"]
    shown = [
        f"    {key}: {draw(st.sampled_from(VALUES)).replace('{}', '@').replace('{{', '{').replace('}}', '}')}"
        for key in keys
    ]
    return made("compose.yaml", [*lines, *(one.replace("@", f"mark{at}z") for at, one in enumerate(shown))])


@st.composite
def env_files(draw: st.DrawFn) -> Made:
    """An env file beside a compose file."""
    forms = [
        "{n}={m}",
        "{n}='{m}'",
        '{n}="{m} x"',
        "export {n}={m}",
        "{n}={m} # why",
        "{m}",
        "{n}: {m}",
        "= {m}",
        "{n}=${{X:-{m}}}",
        "{n}",
    ]
    names = draw(st.lists(NAMES, unique=True, max_size=6))
    entries = [
        draw(st.sampled_from(forms)).format(n=f"{name}{at}", m=f"mark{at}z") for at, name in enumerate(names)
    ]
    whole = [f"services: {{llm: {{image: '{IMAGE}', command: --model org/a, env_file: vars.env}}}}"]
    found = made("vars.env", entries)
    return Made("compose.yaml", whole[0] + "\n", found.marks, found.text)


@st.composite
def units(draw: st.DrawFn) -> Made:
    """A service of any keys."""
    return _unit(
        "Service",
        draw(st.lists(st.sampled_from(UNIT_KEYS), max_size=7)),
        ["ExecStart=/usr/bin/vllm serve org/a"],
    )


@st.composite
def quadlets(draw: st.DrawFn) -> Made:
    """A container of any keys."""
    return _unit(
        "Container",
        draw(st.lists(st.sampled_from(POD_KEYS), max_size=7)),
        [f"Image={IMAGE}", "Exec=--model org/a"],
    )


def _unit(section: str, keys: list[str], own: list[str]) -> Made:
    values = {"Environment": "A{}=1", "EnvironmentFile": "-/none/{}", "Volume": "/{}:/x"}
    lines = numbered([f"{key}={values.get(key, '{}')}" for key in keys])
    return made("a.service" if section == "Service" else "a.container", [f"[{section}]", *own, *lines])


@st.composite
def configs(draw: st.DrawFn) -> Made:
    """VLLM's own YAML: flags, tables, and at times a key that it does not know."""
    ours = draw(st.lists(st.sampled_from(TEXTS), max_size=6, unique=True))
    tables = draw(
        st.lists(st.sampled_from(["compilation-config", "speculative-config", "hf-overrides"]), unique=True)
    )
    odd = draw(st.lists(st.sampled_from(["nobody-knows", "max_model_length"]), max_size=1))
    lines = ["model: org/{}", *(f"{one}: {{}}" for one in ours), *(f"{one}: {{}}" for one in odd)]
    return made(
        "a.yaml", [*numbered(lines), *(f"{one}: {{a: mark{50 + at}z}}" for at, one in enumerate(tables))]
    )


TREES = st.recursive(
    st.just("@"),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=2),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=2),
    ),
    max_leaves=4,
)
KINDS_OF_OBJECTS = [
    "Service",
    "ConfigMap",
    "HorizontalPodAutoscaler",
    "PersistentVolumeClaim",
    "Job",
    "HTTPRoute",
    "InferenceService",
    "Nobody",
]


@st.composite
def manifests(draw: st.DrawFn) -> Made:
    """A pod with keys that nobody foresaw, within other objects of the cluster."""
    extra = st.dictionaries(
        st.sampled_from(
            [
                "livenessProbe",
                "lifecycle",
                "x",
                "workingDir",
                "securityContext",
                "hostPID",
                "runtimeClassName",
                "tolerations",
            ]
        ),
        TREES,
        max_size=4,
    )
    container = {"name": "v", "image": IMAGE, "args": ["--model", "org/@"], **draw(extra)}
    pod = {"containers": [container], **draw(extra)}
    owner = draw(st.sampled_from(["Deployment", "StatefulSet", "LeaderWorkerSet", "Nobody"]))
    whole = [
        {
            "apiVersion": "x/v1",
            "kind": owner,
            "metadata": {"name": "it"},
            "spec": {"template": {"spec": pod}, **draw(extra)},
        }
    ]
    for at, kind in enumerate(draw(st.lists(st.sampled_from(KINDS_OF_OBJECTS), max_size=3))):
        whole.insert(
            draw(st.integers(0, len(whole))),
            {"apiVersion": "y/v1", "kind": kind, "metadata": {"name": f"o{at}-@"}, "spec": draw(TREES)},
        )
    text = yaml.safe_dump_all(whole, sort_keys=False)
    found = iter(range(1000))
    return made("a.yaml", re.sub("@", lambda _: f"mark{next(found)}z", text).rstrip("\n").split("\n"))


@st.composite
def dockerfiles(draw: st.DrawFn) -> Made:
    """Instructions around a command, in one stage or two."""
    own = draw(st.lists(st.sampled_from(INSTRUCTIONS), max_size=7))
    first = draw(st.lists(st.sampled_from(INSTRUCTIONS), max_size=3)) if draw(st.booleans()) else []
    stages = [f"FROM {IMAGE} AS one", *first] if first else []
    base = draw(st.sampled_from([IMAGE, "one"])) if first else IMAGE
    return made(
        "Dockerfile", numbered([*stages, f"FROM {base}", *own, 'CMD ["--model", "org/{}"]', *own[:1]])
    )


@st.composite
def supervised(draw: st.DrawFn) -> Made:
    """Programs of any keys."""
    keys = draw(st.lists(st.sampled_from(PROGRAM_KEYS), unique=True, max_size=6))
    other = draw(st.lists(st.sampled_from(PROGRAM_KEYS), unique=True, max_size=2))
    lines = [
        "[supervisord]",
        *[f"{one}={{}}" for one in draw(st.sampled_from([[], ["nodaemon"], ["logfile"]]))],
    ]
    lines += ["[program:llm]", "command=vllm serve org/{}", *[f"{one}={{}}" for one in keys]]
    lines += ["[program:b]", "command=nginx {}", *[f"{one}={{}}" for one in other]]
    return made("a.conf", numbered(lines))


@st.composite
def playbooks(draw: st.DrawFn) -> Made:
    """A task of any keys."""
    keys = draw(st.lists(st.sampled_from(TASK_KEYS), unique=True, max_size=7))
    lines = ["- hosts: all", "  tasks:", "  - docker_container:", "      name: llm", f"      image: {IMAGE}"]
    lines += ["      command: --model org/{}"]
    shown = [f"      {key}: {draw(st.sampled_from(VALUES))}" for key in keys]
    return made(
        "a.yml", [*numbered(lines), *(one.format(*[f"mark{at}9z"] * 5) for at, one in enumerate(shown))]
    )


@st.composite
def windows(draw: st.DrawFn) -> Made:
    """Statements of PowerShell or cmd around a server."""
    name, statements, goes_on = draw(
        st.sampled_from([("a.ps1", CMDLETS, "`"), ("a.bat", ["@echo off", *BATCH], "^")])
    )
    before = draw(st.lists(st.sampled_from(statements), max_size=7))
    after = draw(st.lists(st.sampled_from(statements), max_size=3))
    server = [f"vllm serve org/{{}} {goes_on}\n  --served-model-name {{}}"]
    return made(name, numbered([*before, *server, *after]))


@st.composite
def tasks(draw: st.DrawFn) -> Made:
    """A task with statements around a server, and keys of its own."""
    before = draw(st.lists(st.sampled_from(STATEMENTS), max_size=5))
    keys = draw(st.lists(st.sampled_from(["setup", "workdir", "file_mounts", "num_nodes"]), unique=True))
    script = "\n".join(numbered([*before, "vllm serve org/{}"]))
    inner = [f"  {line}" for line in script.split("\n")]
    env = ["envs:", "  mark90z: x", "resources:", "  accelerators: H100:1", "  cloud: mark91z"]
    return made("a.yaml", [*env, *(f"{key}: mark8{at}z" for at, key in enumerate(keys)), "run: |", *inner])


KINDS = {
    "Windows": (windows(), "powershell"),
    "SkyPilot": (tasks(), "skypilot"),
    "Dockerfile": (dockerfiles(), "dockerfile"),
    "supervisord": (supervised(), "supervisord"),
    "Ansible": (playbooks(), "ansible"),
    "script": (scripts(), "shell"),
    "run line": (run_lines(), "shell"),
    "compose file": (compose_files(), "compose"),
    "env file": (env_files(), "compose"),
    "unit": (units(), "systemd"),
    "Quadlet": (quadlets(), "systemd"),
    "vLLM's YAML": (configs(), "config"),
    "Kubernetes": (manifests(), "kubernetes"),
}


def fate(one: Made, kind: str, folder: Path) -> tuple[str, list[str]]:
    """What became of a file (read or refused), and its lines of which nothing is said."""
    file = folder / one.name
    file.write_text(one.text, "utf-8")
    if one.beside:
        (folder / "vars.env").write_text(one.beside, "utf-8")
    lines = (one.beside or one.text).split("\n")
    try:
        found = imported(file, kind=kind, environ=ENVIRON)
    except ImportProblem as problem:
        plain = "\n" in str(problem) or not problem.what
        return "refused", ["a refusal of several lines"] if plain else []
    text = "\n".join([to_toml(found.profile), *found.notes])
    places = "vars.env" if one.beside else re.escape(str(file))
    named = {int(line) for line in re.findall(rf"{places}:(\d+)", text)}
    for first, rest in re.findall(r"\(lines? (\d+)((?:, \d+)*| to \d+)\)", text):
        numbers = [int(first), *map(int, re.findall(r"\d+", rest))]
        named |= set(range(numbers[0], numbers[-1] + 1)) if "to" in rest else set(numbers)
    if kind == "kubernetes":
        wholes = [int(line) for line in re.findall(rf"{places}:(\d+): [^\n]* is not carried over", text)]
        named |= {line for first in wholes for line in _block(lines, first)}
    return "read", [lines[line - 1] for mark, line in one.marks if mark not in text and line not in named]


def _block(lines: list[str], first: int) -> list[int]:
    """The lines of the value that begins on a line of YAML: those that stand as deep, or deeper."""
    found, deep = [], _indent(lines[first - 1])
    for at, line in enumerate(lines[first - 1 :], first):
        if _indent(line) < deep or line == "---":
            break
        found.append(at)
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _soak(name: str, count: int, folder: Path) -> tuple[Counter[str], list[str]]:
    made_of, kind = KINDS[name]
    counted: Counter[str] = Counter()
    lost: list[str] = []

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(made_of)
    def go(one: Made) -> None:
        what, silent = fate(one, kind, folder)
        counted[what] += 1
        counted["parts"] += len(one.marks)
        lost.extend(silent)

    go()
    return counted, lost


def main(count: int) -> int:
    """Make that many files; print how many of each kind were read, refused, and what was lost in silence."""
    total = silent = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in KINDS:
            counted, lost = _soak(name, -(-count // len(KINDS)), Path(folder))
            files = counted["read"] + counted["refused"]
            total, silent = total + files, silent + len(lost)
            shown = f"{name:14} {files:6} files, {counted['read']:6} read, {counted['refused']:6} refused, "
            sys.stdout.write(f"{shown}{counted['parts']:6} parts, {len(lost)} lost in silence\n")
            for line in list(dict.fromkeys(lost))[:5]:
                sys.stdout.write(f"    {line.strip()}\n")
    sys.stdout.write(f"{total} files, {silent} parts lost in silence\n")
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 800))
