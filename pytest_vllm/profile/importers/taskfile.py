"""Taskfiles of go-task: the commands of a task, its variables filled in. Source: taskfile.dev."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.marks import unrun
from pytest_vllm.profile.importers.tasks import Task, one_task
from pytest_vllm.profile.importers.yamlnodes import Node, documents

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.origin import Origin

_FILLED_IN = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_NAME = re.compile(r"\.([A-Za-z_]\w*)")
_ELSE = re.compile(
    r"\.([A-Za-z_]\w*)\s*\|\s*default\s+(\S.*)|default\s+(\"[^\"]*\"|`[^`]*`|\S+)\s+\.([A-Za-z_]\w*)"
)
#: What a task of go-task knows of the place that it is run in.
_PLACES = ("ROOT_DIR", "TASKFILE_DIR", "USER_WORKING_DIR")
_DEEPEST = 8
#: Keys of a task that say nothing of what it starts.
_SILENT = (
    "cmds",
    "cmd",
    "vars",
    "env",
    "desc",
    "summary",
    "silent",
    "aliases",
    "dotenv",
    "requires",
    "internal",
)


def read_taskfile(origin: Origin, service: str | None) -> Draft:
    """The task that starts vLLM. Raises ImportProblem for none, and for a choice nobody made."""
    document = documents(origin)[0]
    file = _Taskfile(origin, document)
    tasks = [file.task(name, node) for name, node in document.get("tasks").pairs]
    draft = one_task(origin, tasks, service, "task", "taskfile")
    for key, node in document.pairs:
        if key not in ("version", "tasks", "vars", "env", "dotenv", "silent"):
            draft.lost(node.line, key)
    return draft


@dataclass(frozen=True)
class _Taskfile:
    origin: Origin
    document: Node

    def task(self, name: str, node: Node) -> Task:
        """A task with what it sees."""
        given = {key: one for part in (self.document, node) for key, one in part.get("vars").pairs}
        env = [
            (key, replace(one, value=self._value(one, given, name, 0)))
            for part in (self.document, node)
            for key, one in part.get("env").pairs
        ]
        keys = [key for key, _ in node.pairs if key not in _SILENT]
        said = [(node.line, f"of the task {name}, {', '.join(keys)} is not carried over")] if keys else []
        files = [one.text for part in (self.document, node) for one in part.get("dotenv").items]
        commands, called = self._commands(name, node, given, 0)
        there = tuple(one for one in files if (self.origin.folder / one).is_file())
        return Task(name, commands, env, said + called, there)

    def _commands(
        self, name: str, node: Node, given: dict[str, Node], deep: int
    ) -> tuple[list[Node], list[tuple[int, str]]]:
        """The commands of a task, those of tasks that it calls among them, and what has to be said."""
        found: list[Node] = []
        said: list[tuple[int, str]] = []
        written = node if not node.pairs else node.get("cmds") or node.get("cmd")
        for one in written.items:
            other = self.document.get("tasks", one.get("task").text) if one.get("task") else None
            if other and deep < _DEEPEST:
                names = {**given, **dict(other.get("vars").pairs), **dict(one.get("vars").pairs)}
                inner, more = self._commands(one.get("task").text, other, names, deep + 1)
                found += inner
                said += [(one.line, f"it calls the task {one.get('task').text}"), *more]
            elif command := one if one.text else one.get("cmd"):
                found.append(replace(command, value=self._filled(command.text, given, name, 0)))
            elif one:
                keys = ", ".join(key for key, _ in one.pairs)
                said.append((one.line, f"{keys} of the task {name} is not carried over"))
        return found, said

    def _value(self, node: Node, given: dict[str, Node], name: str, deep: int) -> str:
        """The text of a variable; what a shell works out stays for the shell."""
        if node.pairs:
            command = node.get("sh").text
            return f"$({self._filled(command, given, name, deep)})" if command else unrun("{{a_table}}")
        return self._filled(node.text, given, name, deep)

    def _filled(self, text: str, given: dict[str, Node], name: str, deep: int) -> str:
        return _FILLED_IN.sub(lambda one: self._one(one[1], given, name, deep), text)

    def _one(self, written: str, given: dict[str, Node], name: str, deep: int) -> str:
        """What stands for a reference: a variable, a default, or a mark of what is not worked out."""
        if plain := _NAME.fullmatch(written):
            known = self._known(plain[1], given, name, deep)
            why = "a variable of the Taskfile, which nothing sets"
            return f"${{{plain[1]}:?{why}}}" if known is None else known
        if found := _ELSE.fullmatch(written):
            known = self._known(found[1] or found[4], given, name, deep)
            other = (found[2] or found[3]).strip()
            if other.startswith("."):
                return known or self._one(other, given, name, deep)
            return known or other.strip("\"`'")
        return unrun("{{" + re.sub(r"[^\w.-]+", "_", written) + "}}")

    def _known(self, written: str, given: dict[str, Node], name: str, deep: int) -> str | None:
        if written in given and deep < _DEEPEST:
            outer = {key: one for key, one in given.items() if key != written}
            return self._value(given[written], outer, name, deep + 1)
        places = dict.fromkeys(_PLACES, str(self.origin.folder)) | {"TASK": name, "CLI_ARGS": ""}
        return places.get(written, self.origin.environ.get(written))
