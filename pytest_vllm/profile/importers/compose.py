"""Docker Compose files: services, env files, `.env`, interpolation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import container
from pytest_vllm.profile.importers.containerline import pass_on, read_env_file
from pytest_vllm.profile.importers.draft import Draft
from pytest_vllm.profile.importers.envfile import dotenv
from pytest_vllm.profile.importers.pick import Candidate, pick
from pytest_vllm.profile.importers.shellwords import Word, resolved
from pytest_vllm.profile.importers.variables import Variables
from pytest_vllm.profile.importers.yamlnodes import NOTHING, Node, documents
from pytest_vllm.profile.secrets import secret_name

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.origin import Origin

#: Keys that say how it is started or watched, not what it is.
_SILENT = frozenset({"stdin_open", "tty", "pull_policy", "platform"})
_START = ("image", "entrypoint", "command", "environment", "env_file", "volumes", "ipc", "shm_size")
_GPUS = ("gpus", "devices", "runtime", "deploy")
_PRODUCTION = (
    "ports",
    "restart",
    "container_name",
    "network_mode",
    "security_opt",
    "healthcheck",
    "depends_on",
)
_READ = frozenset({*_START, *_GPUS, *_PRODUCTION})


def read_compose(origin: Origin, service: str | None) -> Draft:
    """The vLLM service of a compose file. Raises ImportProblem for none, and for a choice nobody made."""
    (document, *_) = documents(origin) or [NOTHING]
    services = document.get("services")
    if not services.pairs:
        raise origin.problem(services.line, "services is empty", "name the file that starts vLLM")
    for name, node in services.pairs:
        if not isinstance(node.value, dict):
            raise origin.problem(node.line, f"the service {name} is no table", "indent its keys below it")
    running = [(name, node) for name, node in services.pairs if _runs_vllm(node)]
    candidates = [Candidate(name, node.line - 1) for name, node in running]
    others = [name for name, node in services.pairs if not _runs_vllm(node)]
    name, node = running[pick(origin, candidates, service, "service", others)]
    draft = Draft(origin, "docker", "compose")
    _Service(draft, name, node).read()
    for other in others:
        draft.lost(services.get(other).line - 1, f"the service {other}")
    return draft


def _runs_vllm(node: Node) -> bool:
    words = [one.text for key in ("entrypoint", "command") for one in _words(node.get(key))]
    return container.runs_vllm(node.get("image").text, words)


def _words(node: Node) -> list[Word]:
    """A command as a list or as a string."""
    if isinstance(node.value, str):
        return [Word(word, node.line) for word in container.split(node.value)]
    return [Word(one.text, one.line) for one in node.items]


class _Service:
    def __init__(self, draft: Draft, name: str, node: Node) -> None:
        self.draft, self.name, self.node = draft, name, node
        origin = draft.origin
        beside = origin.folder / ".env"
        values = dotenv(beside.read_text("utf-8-sig", "replace")) if beside.is_file() else ()
        known = {key: value for key, value, _ in values if value is not None}
        known |= {key: origin.environ[key] for key in known if key in origin.environ}
        self.names = Variables(origin, draft.note, known, origin.environ, kind="compose")

    def read(self) -> None:
        """Every key of the service."""
        draft, node = self.draft, self.node
        image = node.get("image")
        if image:
            draft.set("image", self._text(image), image.line)
        else:
            draft.note(node.line, "the service names no image (it is built): set [server] image")
        draft.deployment["name"] = self._text(node.get("container_name")) or self.name
        self._environment()
        start = [self._command(node.get(key)) for key in ("entrypoint", "command")]
        container.read_start(draft, start[0], start[1], self.names)
        self._settings()
        self._deploy()
        for key, value in node.pairs:
            if key not in _READ | _SILENT:
                draft.lost(value.line, key)

    def _text(self, node: Node) -> str:
        return self.names.text(node.text, node.line)

    def _command(self, node: Node) -> list[Word]:
        """A string is filled in before it is split, a list after."""
        if isinstance(node.value, str):
            return [Word(word, node.line) for word in container.split(self._text(node))]
        return resolved(_words(node), self.names)

    def _environment(self) -> None:
        for file in self.node.get("env_file").items:
            path = file.get("path") if isinstance(file.value, dict) else file
            required = file.get("required").text != "false"
            read_env_file(self.draft, self._text(path), path.line, required=required)
        given = self.node.get("environment")
        for name, value in given.pairs:
            self._variable(name, value.text if value else None, value.line)
        for entry in given.items:
            name, equals, text = entry.text.partition("=")
            self._variable(name, text if equals else None, entry.line)

    def _variable(self, name: str, written: str | None, line: int) -> None:
        if written is None:
            if name in self.names.values and not secret_name(name):
                self.draft.set_env(name, self.names.values[name], line)
            else:
                pass_on(self.draft, name, line)
            return
        text = self.names.text(written, line, secret=secret_name(name), lenient=True)
        self.draft.set_env(name, text, line)

    def _settings(self) -> None:
        draft, node = self.draft, self.node
        for volume in node.get("volumes").items:
            if isinstance(volume.value, dict):
                parts = {key: self._text(one) for key, one in volume.pairs}
                read_only = ",readonly" if parts.get("read_only") == "true" else ""
                text = ",".join(f"{key}={parts.get(key, '')}" for key in ("type", "source", "target"))
                container.read_mount(draft, text + read_only, volume.line)
            else:
                container.read_volume(draft, self._text(volume), volume.line)
        for key, read in (("ipc", container.read_ipc), ("shm_size", container.read_shm)):
            if node.get(key):
                read(draft, self._text(node.get(key)), node.get(key).line)
        for device in node.get("devices").items:
            container.read_device(draft, self._text(device), device.line)
        if node.get("runtime").text == "nvidia":
            draft.server.setdefault("gpus", "all")
        ports = [_port(one, self._text(one)) for one in node.get("ports").items]
        draft.deployment |= {
            "ports": ports,
            "restart": self._text(node.get("restart")) or None,
            "network": self._text(node.get("network_mode")) or None,
            "security-opt": [self._text(one) for one in node.get("security_opt").items],
        }
        check = node.get("healthcheck")
        if check:
            period = check.get("start_period").text
            draft.note(
                check.line,
                "the healthcheck is not carried over: /health is asked anyway"
                + (f"; its start_period {period} is what [boot] timeout is for" if period else ""),
            )

    def _deploy(self) -> None:
        draft, deploy = self.draft, self.node.get("deploy")
        if deploy.get("replicas").text.isdigit():
            draft.deployment["replicas"] = int(deploy.get("replicas").text)
        for device in deploy.get("resources", "reservations", "devices").items:
            ids = [self._text(one) for one in device.get("device_ids").items]
            count = self._text(device.get("count")) or "all"
            if ids:
                draft.set("gpus", ids, device.line)
            else:
                container.read_gpus(draft, count, device.line)
        gpus = self.node.get("gpus")
        if gpus.text:
            container.read_gpus(draft, self._text(gpus), gpus.line)
        for entry in gpus.items if isinstance(gpus.value, list) else ():
            container.read_gpus(draft, self._text(entry.get("count")) or "all", entry.line)
        for key, value in deploy.pairs:
            if key not in ("replicas", "resources"):
                draft.lost(value.line, f"deploy.{key}")
        limits = deploy.get("resources", "limits")
        if limits:
            draft.lost(limits.line, "deploy.resources.limits")


def _port(node: Node, text: str) -> str:
    if isinstance(node.value, dict):
        host = node.get("host_ip").text
        parts = [host, node.get("published").text, node.get("target").text]
        return ":".join(part for part in parts if part)
    return text
