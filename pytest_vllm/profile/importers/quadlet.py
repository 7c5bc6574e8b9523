"""Podman Quadlets: `.container` files, from which systemd makes a unit that runs podman."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import container, containerline
from pytest_vllm.profile.importers.deadlines import of_quadlet
from pytest_vllm.profile.importers.draft import Draft
from pytest_vllm.profile.importers.kubernetes import read_kubernetes
from pytest_vllm.profile.importers.ledger import Ledger
from pytest_vllm.profile.importers.marks import secret_mark
from pytest_vllm.profile.importers.origin import origin_of
from pytest_vllm.profile.importers.shellwords import Word
from pytest_vllm.profile.importers.systemd import assignments, settings, specifiers
from pytest_vllm.profile.importers.variables import Variables

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.origin import Origin
    from pytest_vllm.profile.importers.systemd import Entry

#: Key -> the option of `podman run` that it stands for.
_OPTIONS = {
    "AddDevice": "device",
    "ContainerName": "name",
    "Entrypoint": "entrypoint",
    "EnvironmentFile": "env-file",
    "GroupAdd": "group-add",
    "Mount": "mount",
    "Network": "network",
    "PublishPort": "publish",
    "ShmSize": "shm-size",
    "Ulimit": "ulimit",
    "User": "user",
    "Volume": "volume",
    "WorkingDir": "workdir",
}
#: The same for keys that hold several words.
_LISTS = {"AddCapability": "cap-add", "DropCapability": "cap-drop"}
#: Keys without effect on the server.
_IDLE = (
    "Annotation",
    "AutoUpdate",
    "ExposeHostPort",
    "HostName",
    "Label",
    "LogDriver",
    "LogOpt",
    "Notify",
    "Pull",
)
_SECURITY = {
    "SecurityLabelDisable": "label=disable",
    "SecurityLabelNested": "label=nested",
    "NoNewPrivileges": "no-new-privileges",
}


def read_quadlet(origin: Origin, entries: list[Entry], service: str | None = None) -> Draft:
    """The server of a Quadlet. Raises ImportProblem for one that runs no vLLM."""
    draft = Draft(origin, "podman", "podman-run")
    draft.wanted = service or ""
    names = Variables(origin, draft.note, kind="plain")
    line = containerline.RunLine(draft, [], 0, names)
    quadlet = _Quadlet(draft, line)
    own = [entry for entry in entries if entry.section == "Container"]
    for entry in own:
        quadlet.read(entry)
    images = [entry for entry in own if entry.key == "Image"]
    if not images:
        raise origin.problem(own[0].line, "the Quadlet names no Image", "complete the file")
    *before, image = images
    for entry in before:
        draft.lost(entry.line, f"Image={entry.value}, which is given again,")
    texts = [word.text for word in quadlet.command]
    if not container.runs_vllm(image.value, [*(word.text for word in line.entrypoint), *texts]):
        fix = "name the file that starts vLLM"
        raise origin.problem(image.line, f"the Quadlet runs {image.value}, not vLLM", fix)
    draft.set("image", image.value, image.line)
    if image.value.endswith((".image", ".build")):
        draft.note(image.line, f"the image is made by {image.value}: set [server] image")
    container.read_start(draft, line.entrypoint, quadlet.command, names, cleared=line.cleared)
    line.idle.close(draft)
    quadlet.idle.close(draft)
    settings(draft, [entry for entry in entries if entry.section != "Container"], ())
    draft.deployment["kind"] = "podman-run"
    of_quadlet(draft, entries)
    return draft


def read_kube(origin: Origin, entries: list[Entry], service: str | None = None) -> Draft:
    """The server of a `.kube` unit: of the manifest that its Yaml= names. Raises ImportProblem for none."""
    named = [entry for entry in entries if (entry.section, entry.key) == ("Kube", "Yaml")]
    if not named:
        raise origin.problem(0, "the Quadlet names no Yaml", "complete the file")
    path = origin.path(specifiers(origin, named[-1].value))
    if not path.is_file():
        what = f"the manifest {named[-1].value} is not there"
        raise origin.problem(named[-1].line, what, f"put it at {path}")
    draft = read_kubernetes(origin_of(path, origin.environ), service)
    draft.server["launcher"] = "podman"
    draft.note(0, f"it is read from {path.name}, which {Path(origin.shown).name} names")
    draft.deployment["ports"] = [entry.value for entry in entries if entry.key == "PublishPort"]
    for entry in entries:
        where = f"in {Path(origin.shown).name}:{entry.line}"
        if entry.section == "Kube" and entry is not named[-1] and entry.key != "PublishPort":
            draft.lost(0, f"{entry.key}={entry.value} {where}")
    settings(draft, [entry for entry in entries if entry.section != "Kube"], ())
    return draft


def _there(device: str) -> str:
    return "is" if Path(device).exists() else "is not, and is left out"


class _Quadlet:
    def __init__(self, draft: Draft, line: containerline.RunLine) -> None:
        self.draft, self.line = draft, line
        self.command: list[Word] = []
        self.idle = Ledger()

    def read(self, entry: Entry) -> None:
        """One key of `[Container]`."""
        key, at = entry.key, entry.line
        value = specifiers(self.draft.origin, entry.value)
        if key == "Image":
            return
        if key == "Environment":
            for pair in assignments(self.draft.origin, entry):
                self.line.option("env", pair, at)
        elif key == "Exec":
            if self.command:
                self.draft.lost(self.command[0].line, f"Exec={shlex.join(w.text for w in self.command)}")
            self.command = [Word(one, at) for one in self._split(entry, value)]
        elif key in ("PodmanArgs", "GlobalArgs"):
            self._arguments(entry, value)
        elif key == "Secret":
            self._secret(value, at)
        else:
            self._option(key, value, at)

    def _option(self, key: str, value: str, at: int) -> None:
        if key == "AddDevice" and value.startswith("-"):
            device = value.removeprefix("-").partition(":")[0]
            self.draft.note(at, f"{device} is passed on where it is there; here it {_there(device)}")
            if not Path(device).exists():
                return
        if key == "Mount":
            value = re.sub(r"\b(source|src)=([^,]+)\.volume\b", r"\1=systemd-\2", value)
        if key in _OPTIONS:
            self.line.option(_OPTIONS[key], self._plain(key, value), at)
        elif key in _LISTS:
            for one in value.split():
                self.line.option(_LISTS[key], one, at)
        elif key in _SECURITY and value.lower() in ("true", "yes", "1", "on"):
            self.line.option("security-opt", _SECURITY[key], at)
        elif key == "SeccompProfile":
            self.line.option("security-opt", f"seccomp={value}", at)
        elif key in _IDLE or key.startswith("Health"):
            self.idle.idle(at, key)
        else:
            self.draft.lost(at, f"{key}={value}")

    def _plain(self, key: str, value: str) -> str:
        """`-/dev/dri` is a device that may be missing; `x.volume` and `x.network` are units of that name."""
        value = value.removeprefix("-") if key == "AddDevice" else value
        name, colon, rest = value.partition(":")
        for ending in (".volume", ".network"):
            if name.endswith(ending):
                name = f"systemd-{name.removesuffix(ending)}"
        return f"{name}{colon}{rest}"

    def _arguments(self, entry: Entry, value: str) -> None:
        words = [Word(one, entry.line) for one in self._split(entry, value)]
        inner = containerline.RunLine(self.draft, words, 0, self.line.names)
        for name, given, at in inner.options():
            self.line.option(name, given, at)
        for word in words[inner.at :]:
            self.draft.lost(word.line, f"{entry.key} {word.text}")

    def _secret(self, value: str, at: int) -> None:
        """`Secret=hf,type=env,target=HF_TOKEN`: a variable, by reference; a file otherwise."""
        name, *rest = value.split(",")
        parts = dict(one.partition("=")[::2] for one in rest)
        if parts.get("type") == "env":
            target = parts.get("target") or name
            self.draft.set_env(target, secret_mark(target), at)
            self.draft.note(at, f"{target} comes from podman's secret {name}: set {target} where pytest runs")
        else:
            self.draft.lost(at, f"podman's secret {name}, a file in the container,")

    def _split(self, entry: Entry, value: str) -> list[str]:
        try:
            return shlex.split(value)
        except ValueError as error:
            what = f"{entry.key} cannot be split: {str(error).lower()}"
            raise self.draft.origin.problem(entry.line, what, "close the quote") from error
