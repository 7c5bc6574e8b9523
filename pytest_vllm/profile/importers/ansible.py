"""Ansible: tasks that start a container, read as the compose service that they amount to.

Source: docs.ansible.com, community.docker.docker_container and containers.podman.podman_container.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import container
from pytest_vllm.profile.importers.compose import read_service
from pytest_vllm.profile.importers.marks import unrun
from pytest_vllm.profile.importers.origin import origin_of
from pytest_vllm.profile.importers.pick import Candidate, parted, pick
from pytest_vllm.profile.importers.program import other_program
from pytest_vllm.profile.importers.yamlnodes import NOTHING, Node, documents
from pytest_vllm.profile.secrets import secret_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.origin import Origin

_MODULES = re.compile(
    r"(?:community\.(?:docker|general)\.)?docker_container|(?:containers\.podman\.)?podman_container"
)
#: Key of a module -> key of a service; keys of the same name need no entry.
_KEYS = {
    "env": "environment",
    "env_file": "env_file",
    "published_ports": "ports",
    "ipc_mode": "ipc",
    "ipc": "ipc",
    "capabilities": "cap_add",
    "security_opts": "security_opt",
    "groups": "group_add",
    "group_add": "group_add",
    "restart_policy": "restart",
    "network": "network_mode",
    "device": "devices",
    "publish": "ports",
    "volume": "volumes",
    "workdir": "working_dir",
    "healthcheck": "healthcheck",
}
_NAMES = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}")
_DEFAULT = re.compile(
    r"""(\w+)(?:\s*\|\s*default\(\s*(?:'([^']*)'|"([^"]*)"|([\w.-]+))\s*(?:,\s*true\s*)?\))?(?:\s*\|\s*(?:string|int))?"""
)
#: Keys of a task whose value the profile can do without.
_LEFT_OUT = frozenset({"volumes", "volume", "name", "networks", "labels", "hostname"})
_COPY = "copy the command that starts vLLM out of it"


def read_ansible(origin: Origin, service: str | None) -> Draft:
    """The task that runs vLLM in a container. Raises ImportProblem for none, and for an unknown variable."""
    role = _role(origin)
    tasks = [found for one in documents(origin) for found in _tasks(one, role)]
    running = [one for one in tasks if _runs_vllm(one[0])]
    if not running:
        raise origin.problem(
            0, "it looks like an Ansible playbook, and no docker_container of it runs vLLM", _COPY
        )
    names = [node.get("name").text or str(at) for at, (node, _, _) in enumerate(running, 1)]
    candidates = [Candidate(name, node.line) for name, (node, _, _) in zip(names, running, strict=True)]
    others = [one for one in tasks if one not in running]
    starts = {node.get("name").text: other_program(_start(node)) for node, _, _ in others}
    wanted, inner = parted(names, service, starts)
    node, variables, module = running[pick(origin, candidates, wanted, "task", starts)]
    told = _Told(origin, variables)
    whole = told.filled(node)
    engine = "podman" if "podman" in module else "docker"
    draft = read_service(origin, _service(whole), whole.get("name").text, inner, engine)
    whose = "this file and of its role" if role else "this file alone"
    draft.note(node.line, f"the task's variables are those of {whose}: an inventory may say others")
    for other, _, _ in tasks:
        if other is not node:
            draft.lost(other.line, f"the container {other.get('name').text}".rstrip())
    return draft


def _role(origin: Origin) -> dict[str, Node]:
    """The variables of the role whose tasks these are: its defaults, and its vars over them."""
    found: dict[str, Node] = {}
    if origin.folder.name != "tasks":
        return found
    for folder in ("defaults", "vars"):
        for name in ("main.yml", "main.yaml"):
            path = origin.folder.parent / folder / name
            if path.is_file():
                for one in documents(origin_of(path, origin.environ)):
                    found.update(one.pairs)
    return found


def _runs_vllm(task: Node) -> bool:
    """Whether a task starts vLLM, rather than end it or start something else."""
    gone = task.get("state").text in ("absent", "stopped")
    return not gone and container.runs_vllm(task.get("image").text, _start(task))


def _start(node: Node) -> list[str]:
    words: list[str] = []
    for key in ("entrypoint", "command"):
        one = node.get(key)
        words += container.split(one.text) if one.text else [word.text for word in one.items]
    return words


def _tasks(node: Node, variables: Mapping[str, Node]) -> Iterator[tuple[Node, Mapping[str, Node], str]]:
    """Every container that a task starts, the variables that it sees, and its module."""
    known = {**variables, **dict(node.get("vars").pairs)}
    for key, one in node.pairs:
        if _MODULES.fullmatch(key) and one.pairs:
            yield one, known, key
        elif key != "vars":
            yield from _tasks(one, known)
    for one in node.items if isinstance(node.value, list) else ():
        yield from _tasks(one, known)


class _Told:
    """Fills in what Jinja would, from the variables that stand in the file."""

    def __init__(self, origin: Origin, variables: Mapping[str, Node]) -> None:
        self.origin, self.variables = origin, variables

    def filled(self, node: Node, key: str = "") -> Node:
        """A value with its names filled in, as compose reads it: a dollar is two."""
        if isinstance(node.value, dict):
            table = {name: self.filled(one, name) for name, one in node.value.items()}
            return Node(table, {name: one.plain for name, one in table.items()}, node.line)
        if isinstance(node.value, list):
            entries = [self.filled(one, key) for one in node.value]
            return Node(entries, [one.plain for one in entries], node.line)
        if not isinstance(node.value, str):
            return node
        text = self._text(node.value.replace("$", "$$"), node.line, key)
        return replace(node, value=text, plain=text if "{{" in node.value else node.plain)

    def _text(self, text: str, line: int, key: str, depth: int = 0) -> str:
        def one(found: re.Match[str]) -> str:
            known = _DEFAULT.fullmatch(found[1])
            value = self.variables.get(known[1], NOTHING) if known else NOTHING
            if known and value.text and depth < 5:
                return self._text(value.text.replace("$", "$$"), line, key, depth + 1)
            defaults = [given for given in known.groups()[1:] if given is not None] if known else []
            if defaults:
                return str(defaults[0])
            if secret_name(key):
                return f"${{{key}}}"
            if key in _LEFT_OUT:
                return unrun(found[0].replace(" ", ""))
            what = f"{found[0]} is not among the vars of this file or of its role"
            raise self.origin.problem(line, what, "write its value in its place, or into vars")

        return _NAMES.sub(one, text)


def _service(task: Node) -> Node:
    """A task as a service of compose."""
    found: dict[str, Node] = {}
    for key, one in task.pairs:
        if key == "state" and one.text in ("started", "present", "healthy"):
            continue
        if key == "device_requests":
            requests = [_request(entry) for entry in one.items]
            devices = Node(requests, None, one.line)
            for name in ("devices", "reservations", "resources"):
                devices = Node({name: devices}, None, one.line)
            found["deploy"] = devices
        elif key != "name":
            known = _KEYS.get(key, key)
            found[key if known in found or (known != key and task.get(known)) else known] = one
    return Node(found, {name: one.plain for name, one in found.items()}, task.line)


def _request(node: Node) -> Node:
    """A request for devices: its capabilities are a list of lists there, and -1 of them is all."""
    table = dict(node.pairs)
    if (inner := table.get("capabilities")) is not None:
        flat = [word for entry in inner.items for word in (entry.items or [entry])]
        table["capabilities"] = Node(flat, None, inner.line)
    if (count := table.get("count")) is not None and count.text == "-1":
        table["count"] = replace(count, value="all", plain="all")
    return Node(table, None, node.line)
