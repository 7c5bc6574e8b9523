"""Procfiles: a name and a command on each line, as foreman, honcho and Heroku start them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.tasks import Task, one_task
from pytest_vllm.profile.importers.yamlnodes import Node

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.origin import Origin

_PROCESS = re.compile(r"([A-Za-z0-9_-]+):\s*(\S.*)")
_VARIABLES = ".env"


def read_procfile(origin: Origin, service: str | None) -> Draft:
    """The process that starts vLLM. Raises ImportProblem for none, and for a choice nobody made."""
    beside = (origin.folder / _VARIABLES).is_file()
    tasks = []
    for at, line in enumerate(origin.text.split("\n"), 1):
        if found := _PROCESS.fullmatch(line.strip()):
            command = Node(found[2], found[2], at)
            said = [(at, f"{_VARIABLES}, which foreman reads, is read before it")] if beside else []
            tasks.append(Task(found[1], [command], said=said, files=(_VARIABLES,) if beside else ()))
    return one_task(origin, tasks, service, "process", "procfile")
