"""Scripts that stand in YAML: tasks of SkyPilot and dstack, steps of a GitHub workflow, models of llama-swap.

Sources: docs.skypilot.co (YAML spec), dstack.ai/docs/reference, docs.github.com (workflow syntax), the
configuration page of llama-swap.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.embedded import Part, read_part, script_of, serving
from pytest_vllm.profile.importers.gpunames import hardware_named
from pytest_vllm.profile.importers.looks import OTHERS
from pytest_vllm.profile.importers.marks import unrun
from pytest_vllm.profile.importers.pick import runs_none
from pytest_vllm.profile.importers.yamlnodes import Node, documents
from pytest_vllm.profile.secrets import secret_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.origin import Origin

_FILLED_IN = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_PORT = 5800
#: What SkyPilot calls a GPU whose memory its name leaves out.
_SKY = {"a100": "a100-40", "v100": "v100-16"}


@dataclass
class Task:
    """A script with what it sees.

    Args:
        name: what it is called.
        commands: its nodes.
        env: variables in the order in which they count.
        said: line and text of what has to be said when it is read.
        files: files of variables that are read before it.
    """

    name: str
    commands: Sequence[Node]
    env: list[tuple[str, Node]] = field(default_factory=list)
    said: list[tuple[int, str]] = field(default_factory=list)
    files: tuple[str, ...] = ()


def read_skypilot(origin: Origin, service: str | None) -> Draft:
    """A task of SkyPilot: its `run`. Raises ImportProblem as `read_shell` does."""
    document = documents(origin)[-1]
    env = [*document.get("envs").pairs, *document.get("secrets").pairs]
    resources = document.get("resources")
    names, counts = _accelerators(resources.get("accelerators"))
    if len(counts) == 1:
        count = Node(next(iter(counts)), None, resources.line)
        env.insert(0, ("SKYPILOT_NUM_GPUS_PER_NODE", count))
    draft = one_task(origin, [Task("run", [document.get("run")], env)], service, "task", "skypilot")
    _hardware(draft, [_SKY.get(one.lower(), hardware_named(one)) for one in names], resources)
    for key, node in document.pairs:
        if key == "setup":
            draft.note(node.line, "setup, which is run before, is not carried over")
        elif key not in ("run", "envs", "secrets", "resources", "name"):
            draft.lost(node.line, key)
    return draft


def read_dstack(origin: Origin, service: str | None) -> Draft:
    """A configuration of dstack: its `commands`. Raises ImportProblem as `read_shell` does."""
    document = documents(origin)[0]
    given = document.get("env")
    env = given.pairs or [
        (name, Node(value, value, one.line))
        for one in given.items
        for name, _, value in [one.text.partition("=")]
    ]
    gpu = document.get("resources", "gpu")
    env = [*_of_dstack(gpu, document.get("nodes")), *env]
    tasks = [Task("commands", document.get("commands").items, list(env))]
    draft = one_task(origin, tasks, service, "task", "dstack")
    words = [one for part in (gpu.text, gpu.get("name").text) for one in part.split(":") if one]
    memory = " ".join(one for one in (*words, gpu.get("memory").text) if re.fullmatch(r"\d+GB", one))
    _hardware(
        draft, [hardware_named(f"{one} {memory}") for one in words if re.search("[A-Za-z]{1}\\d", one)], gpu
    )
    if image := document.get("image"):
        draft.note(
            image.line, f"it is run in {image.text}; here it is a process: set [server] image for a container"
        )
    for key, node in document.pairs:
        if key not in ("type", "commands", "env", "resources", "name", "image", "port"):
            draft.lost(node.line, key)
    return draft


def _of_dstack(gpu: Node, nodes: Node) -> list[tuple[str, Node]]:
    """What dstack tells a run of its GPUs, where the configuration names one number of them."""
    written = gpu.get("count").text or next((one for one in gpu.text.split(":") if one.isdigit()), "1")
    counts = [written, nodes.text or "1"]
    if not gpu or not all(one.isdigit() for one in counts):
        return []
    each, machines = map(int, counts)
    told = {"GPUS_PER_NODE": each, "NODES_NUM": machines, "GPUS_NUM": each * machines}
    return [(f"DSTACK_{name}", Node(str(one), one, gpu.line)) for name, one in told.items()]


def read_workflow(origin: Origin, service: str | None) -> Draft:
    """The step of a GitHub workflow, or the job of GitLab, that starts vLLM.

    Raises ImportProblem for none, and for a choice nobody made.
    """
    document = documents(origin)[0]
    tasks = []
    for job, node in document.get("jobs").pairs:
        for at, step in enumerate(node.get("steps").items, 1):
            if step.get("run").text and not re.search(r"pwsh|powershell|cmd|python", step.get("shell").text):
                env = [*document.get("env").pairs, *node.get("env").pairs, *step.get("env").pairs]
                said = (
                    [(node.line, f"the job {job} is run in a container of its own")]
                    if node.get("container")
                    else []
                )
                tasks.append(Task(f"{job}.{at}", [step.get("run")], env, said))
    tasks += [*_of_gitlab(document), *_of_action(document)]
    draft = one_task(origin, tasks, service, "step", "workflow")
    draft.note(0, "of the workflow this step alone is read: what others set or start before it is not")
    return draft


def _of_action(document: Node) -> list[Task]:
    """Steps of an action that others use; its inputs are what they are unless a workflow says otherwise."""
    given = {name: one.get("default") for name, one in document.get("inputs").pairs}
    found = []
    for at, step in enumerate(document.get("runs", "steps").items, 1):
        run = step.get("run")
        used = [name for name, one in given.items() if one and _input(name).search(run.text)]
        text = run.text
        for name in used:
            text = _input(name).sub(given[name].text.replace("\\", r"\\"), text)
        said = [(given[name].line, f"the input {name} is its default: {given[name].text}") for name in used]
        if run.text and step.get("shell").text not in ("pwsh", "powershell", "cmd", "python"):
            name = f"steps.{at}"
            found.append(Task(name, [replace(run, value=text)], list(step.get("env").pairs), said))
    return found


def _input(name: str) -> re.Pattern[str]:
    return re.compile(r"\$\{\{\s*inputs\." + re.escape(name) + r"\s*\}\}")


def _of_gitlab(document: Node) -> list[Task]:
    """Jobs of GitLab's pipelines: each a script of its own, behind what all of them run before."""
    found = []
    for job, node in document.pairs:
        if script := node.get("script"):
            before = node.get("before_script") or document.get("before_script")
            env = [*document.get("variables").pairs, *node.get("variables").pairs]
            keys = [key for key, _ in node.pairs if key not in ("script", "before_script", "variables")]
            said = [(node.line, f"of the job {job}, {', '.join(keys)} is not carried over")] if keys else []
            found.append(Task(job, [*before.items, *script.items], env, said))
    return found


def read_llama_swap(origin: Origin, service: str | None) -> Draft:
    """A model of llama-swap: its `cmd`. Raises ImportProblem for none, and for a choice nobody made."""
    document = documents(origin)[0]
    port = document.get("startPort").text or str(_PORT)
    tasks = []
    for name, model in document.get("models").pairs:
        macros = {key: one.text for part in (document, model) for key, one in part.get("macros").pairs}
        cmd = model.get("cmd")
        text = _with_macros(cmd.text, {**macros, "PORT": port, "MODEL_ID": name})
        env = [
            (key, Node(value, value, one.line))
            for one in model.get("env").items
            for key, _, value in [one.text.partition("=")]
        ]
        said = (
            [(cmd.line, f"${{PORT}} is what llama-swap chooses: {port} here")]
            if "${PORT}" in cmd.text
            else []
        )
        tasks.append(Task(name, [replace(cmd, value=text)], env, said))
    return one_task(origin, tasks, service, "model", "llama-swap")


def _with_macros(text: str, macros: Mapping[str, str]) -> str:
    for _ in range(5):  # macros hold macros
        text = re.sub(r"\$\{([\w-]+)\}", lambda one: macros.get(one[1], one[0]), text)
    return re.sub(r"\$\{env\.(\w+)\}", r"${\1}", text)


def one_task(origin: Origin, tasks: Sequence[Task], service: str | None, what: str, kind: str) -> Draft:
    """The draft of the one that starts vLLM."""
    parts = [
        Part(one.name, one.commands[0].line if one.commands else 0, _scripted(origin, one), "shell")
        for one in tasks
    ]
    parts = [one for one in parts if re.search("vllm|api_server", one.origin.text)]
    found, faults = serving(parts)
    asked = next((problem for part, problem in faults if part.name == service), None)
    telling = [problem for _, problem in faults if not runs_none(problem)]
    if asked or (telling and not found):
        raise asked or telling[0]
    if not found:
        looks, fix = OTHERS[kind]
        raise origin.problem(0, f"it looks like {looks}, of which no {what} starts vLLM", fix)
    draft, part = read_part(origin, found, service, what)
    for line, text in next(one.said for one in tasks if one.name == part.name):
        draft.note(line, text)
    for other, _ in found:
        if other is not part:
            draft.lost(other.line, f"the {what} {other.name}")
    return draft


def _scripted(origin: Origin, task: Task) -> Origin:
    """The script of a task at its own lines, its variables exported before it."""
    lines = [_marked(one) for one in script_of(origin, [one for one in task.commands if one]).split("\n")]
    exports = [_exported(name, one.text) for name, one in dict(task.env).items()]
    read = [f"set -a; source {shlex.quote(one)}; set +a" for one in task.files]
    exports = [*read, *[one for one in exports if one]]
    first = next((at for at, one in enumerate(lines) if one.strip()), 0)
    before = max(0, first - 1)
    lines[before] = "; ".join([*exports, *([lines[before]] if lines[before].strip() else [])])
    return replace(origin, text="\n".join(lines))


def _exported(name: str, text: str) -> str:
    """A variable of the task; a secret that is given elsewhere is passed on by its name."""
    if secret_name(name) and (not text or "${{" in text):
        return f'export {name}="${name}"'
    return f"export {name}={shlex.quote(_marked(text))}" if text else ""


def _marked(text: str) -> str:
    """A text in which what a workflow fills in is known for that."""
    return _FILLED_IN.sub(lambda one: unrun("{{" + re.sub(r"[^\w.-]+", "_", one[1]) + "}}"), text)


def _accelerators(node: Node) -> tuple[list[str], set[str]]:
    """The kinds of GPU that a task may get, and how many of one."""
    found = [(one.text.partition(":")[0], one.text.partition(":")[2]) for one in node.items if one.text]
    found += [(name, one.text) for name, one in node.pairs]
    counts = {count or "1" for _, count in found}
    return [name for name, _ in found], counts if all(one.isdigit() for one in counts) else set()


def _hardware(draft: Draft, names: Sequence[str], node: Node) -> None:
    """The GPU, where it is one that a hardware file describes; the rest of the resources is said."""
    if len(set(names)) == 1 and names[0]:
        draft.hardware = names[0]
        draft.note(node.line, f"the kind of GPU became hardware = {names[0]}")
    elif names:
        draft.note(node.line, "which GPU it gets is not certain: no hardware is set")
    for key, one in node.pairs:
        if key not in ("accelerators", "name", "memory", "count"):
            draft.lost(one.line, f"resources.{key}")
