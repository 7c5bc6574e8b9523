"""From a deployment that is written down elsewhere, or that runs, to a profile."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pytest_vllm.profile.importers.origin import ImportProblem, Origin, origin_of, piped
from pytest_vllm.profile.words import unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.model import Profile

__all__ = ["KINDS", "ImportProblem", "ImportResult", "imported"]

#: What can be read: kind -> what people call it.
KINDS = {
    "compose": "a docker-compose file",
    "kubernetes": "a Kubernetes manifest",
    "systemd": "a systemd unit",
    "shell": "a vllm serve, docker run or podman run line",
    "dockerfile": "a Dockerfile",
    "supervisord": "a supervisord configuration",
    "ansible": "an Ansible playbook",
    "makefile": "a Makefile",
    "cloud-init": "cloud-init's user data",
    "config": "vLLM's --config YAML",
    "recipe": "a recipe of the vLLM project",
    "spark-recipe": "a recipe of spark-vllm-docker or sparkrun",
    "markdown": "a guide in Markdown",
    "powershell": "a PowerShell or batch script",
    "skypilot": "a SkyPilot task",
    "dstack": "a dstack configuration",
    "workflow": "a GitHub workflow",
    "llama-swap": "a llama-swap configuration",
    "python": "a Python program that starts vllm serve",
    "just": "a justfile",
    "taskfile": "a Taskfile",
    "procfile": "a Procfile",
}
#: Kind -> the module and the function that read it.
_READERS = {
    "compose": ("compose", "read_compose"),
    "kubernetes": ("kubernetes", "read_kubernetes"),
    "systemd": ("systemd", "read_unit"),
    "shell": ("shell", "read_shell"),
    "dockerfile": ("dockerfile", "read_dockerfile"),
    "supervisord": ("supervisord", "read_supervisord"),
    "ansible": ("ansible", "read_ansible"),
    "makefile": ("makefile", "read_makefile"),
    "cloud-init": ("cloudinit", "read_cloud_init"),
    "recipe": ("recipe", "read_recipe"),
    "spark-recipe": ("sparkrecipe", "read_spark_recipe"),
    "markdown": ("guide", "read_guide"),
    "powershell": ("windows", "read_windows"),
    "skypilot": ("tasks", "read_skypilot"),
    "dstack": ("tasks", "read_dstack"),
    "workflow": ("tasks", "read_workflow"),
    "llama-swap": ("tasks", "read_llama_swap"),
    "python": ("python", "read_python"),
    "just": ("justfile", "read_justfile"),
    "taskfile": ("taskfile", "read_taskfile"),
    "procfile": ("procfile", "read_procfile"),
}
_CONTAINER = "container:"
_FORMS = f"{', '.join(KINDS.values())}, or {_CONTAINER}NAME"


@dataclass(frozen=True)
class ImportResult:
    """A profile, and what could not be carried over.

    Args:
        profile: complete and validated; its secrets are references.
        notes: one line each, with file and line.
    """

    profile: Profile
    notes: tuple[str, ...]


def imported(
    path_or_text: str | Path,
    *,
    kind: str | None = None,
    service: str | None = None,
    environ: Mapping[str, str] | None = None,
    running: Callable[[str, Mapping[str, str]], Draft] | None = None,
) -> ImportResult:
    """The profile of a deployment.

    Args:
        path_or_text: a file, `-` for standard input, the text itself, or `container:NAME` of a container
            that is there.
        kind: one of KINDS; found from the content unless told otherwise.
        service: which vLLM server, where a file describes several.
        environ: where variables come from, `os.environ` unless told otherwise.
        running: drafts a container that is there, by its name: `launch.running.read_running`.

    Raises:
        ImportProblem: it cannot be read, or starts no vLLM; `str()` says where, what, and the next step.
    """
    environ = os.environ if environ is None else environ
    given = str(path_or_text)
    if given.startswith(_CONTAINER):
        if running is None:
            raise ImportProblem(f"{given}: a container is not read here; name {_FORMS}")
        draft = running(given.removeprefix(_CONTAINER), environ)
        return ImportResult(draft.profile(draft.origin.shown), draft.notes)
    origin = origin_of(piped() if given == "-" else path_or_text, environ)
    draft = read_as(origin, kind or detected(origin), service)
    name = "imported" if origin.shown == "the text" else origin.stem
    profile = draft.profile(name)
    return ImportResult(profile, draft.notes)


def detected(origin: Origin) -> str:
    """The kind of a text, by its content. Raises ImportProblem with the kind that it looks like."""
    from pytest_vllm.profile.importers.recognised import kind_of  # noqa: PLC0415

    return kind_of(origin, _FORMS)


def read_as(origin: Origin, kind: str, service: str | None) -> Draft:
    """The draft of a text of a kind; each reader is imported when it is needed. Raises ImportProblem."""
    if kind not in KINDS:
        raise ImportProblem(unknown("kind", kind, sorted(KINDS)))
    if kind == "config":
        from pytest_vllm.profile.importers.configfile import read_config  # noqa: PLC0415

        return read_config(origin)
    module, name = _READERS[kind]
    read = getattr(importlib.import_module(f"{__name__}.{module}"), name)
    return cast("Draft", read(origin, service))
