"""Docker Compose files: services, env files, `.env`, interpolation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import askers, composehost, container, deadlines
from pytest_vllm.profile.importers.composebuild import built, mounted, named, not_there, started
from pytest_vllm.profile.importers.composefiles import Files
from pytest_vllm.profile.importers.containerline import pass_on, read_env_file
from pytest_vllm.profile.importers.dockermade import followed
from pytest_vllm.profile.importers.draft import Draft
from pytest_vllm.profile.importers.envfile import dotenv
from pytest_vllm.profile.importers.ledger import Ledger
from pytest_vllm.profile.importers.pick import Candidate, parted, pick
from pytest_vllm.profile.importers.program import other_program
from pytest_vllm.profile.importers.shellwords import Word, resolved
from pytest_vllm.profile.importers.variables import Variables
from pytest_vllm.profile.importers.yamlaccount import Part
from pytest_vllm.profile.importers.yamlnodes import NOTHING, Node, documents
from pytest_vllm.profile.importers.yamlwords import checked
from pytest_vllm.profile.secrets import secret_name

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.profile.importers.dockerfile import Built
    from pytest_vllm.profile.importers.origin import Origin

#: Keys of a service that say how it is started or watched, not what it is.
_TERMINAL = ("stdin_open", "tty", "attach")
_IDLE = (
    "pull_policy",
    "platform",
    "depends_on",
    "profiles",
    "logging",
    "labels",
    "hostname",
    "expose",
    "stop_grace_period",
    "stop_signal",
    "init",
    "annotations",
)


def read_compose(origin: Origin, service: str | None) -> Draft:
    """The vLLM service of a compose file. Raises ImportProblem for none, and for a choice nobody made."""
    whole = documents(origin) or [NOTHING]
    document = whole[0]
    notes: list[tuple[int, str]] = []
    names = _variables(origin, notes)
    if "services" not in dict(document.pairs) and not document.get("include"):
        raise origin.problem(document.line, "services is missing", "name the file that starts vLLM")
    services = Files(origin, names).services(document, origin.folder)
    if not services:
        line = document.get("services").line
        raise origin.problem(line, "services is empty", "name the file that starts vLLM")
    for name, node in services.items():
        if not isinstance(node.value, dict):
            raise origin.problem(node.line, f"the service {name} is not a table", "indent its keys below it")
    name, inner = _chosen(origin, services, names, service)
    draft = Draft(origin, "docker", "compose")
    draft.within, draft.wanted = name, inner
    names.note = draft.note
    for line, text in notes:
        draft.note(line, text)
    part = Part(services[name])
    _Service(draft, name, part, names, document).read()
    askers.of_services(draft, name, services)
    deadlines.of_healthcheck(draft, name, services)
    draft.deployment["network-shared"] = _joined(name, services)
    for other in services:
        if other != name:
            draft.lost(services[other].line - 1, f"the service {other}")
    _account(draft, part, document, whole[1:])
    return draft


def _joined(name: str, services: dict[str, Node]) -> bool:
    """Whether a neighbour has the same network as a service, or it has a neighbour's."""
    modes = {f"service:{name}", f"container:{services[name].get('container_name').text or name}"}
    return any(node.get("network_mode").text in modes for node in services.values())


def read_service(origin: Origin, node: Node, name: str, inner: str, engine: str) -> Draft:
    """One service that stands by itself, its values filled in but for `$NAME`.

    Args:
        origin: what messages name.
        node: the service.
        name: what its container is called.
        inner: which server of a shell in it, where it starts several.
        engine: `docker` or `podman`.
    """
    draft = Draft(origin, engine, "compose")
    draft.within, draft.wanted = name, inner
    part = Part(node)
    names = Variables(origin, draft.note, {}, origin.environ, kind="compose")
    _Service(draft, name, part, names, NOTHING).read()
    _account(draft, part, NOTHING, [])
    return draft


def _account(draft: Draft, part: Part, document: Node, others: list[Node]) -> None:
    """What of the service, and of the rest of the file, no reader has read."""
    ledger = Ledger()
    _beside(draft, document, ledger)
    for node in others:
        draft.lost(node.line, "a second document of the file")
    for line, path in part.left():
        if path[0] in _TERMINAL:
            continue
        if path[0] in _IDLE or path[0].startswith("x-"):
            ledger.idle(line, path[0])
        else:
            draft.lost(line, ".".join(path))
    ledger.close(draft)


def _beside(draft: Draft, document: Node, ledger: Ledger) -> None:
    """What stands beside the services of the file."""
    for key, node in document.pairs:
        if key in ("version", "name") or key.startswith("x-"):
            ledger.idle(node.line, key)
        elif key not in ("services", "include", "secrets", "configs", "volumes"):
            ledger.idle(node.line, f"{key} of the file")
        elif key == "volumes":
            for name, volume in node.pairs:
                if volume:
                    draft.lost(volume.line, f"volumes.{name}: how it is made")


def _chosen(
    origin: Origin, services: dict[str, Node], names: Variables, wanted: str | None
) -> tuple[str, str]:
    """Which service is meant, and which server of its shell; of those that compose starts, unless named."""
    made = {name: built(origin, node) for name, node in services.items()}
    running = {name: node for name, node in services.items() if _runs_vllm(origin, node, made[name])}
    told = {
        name: node for name, node in running.items() if _start(node) or not node.get("build") or made[name]
    }
    running = told or running  # an image of one's own, without a command, may be anything
    active = names.values.get("COMPOSE_PROFILES", origin.environ.get("COMPOSE_PROFILES", "")).split(",")

    def active_in(node: Node) -> bool:
        profiles = [one.text for one in node.get("profiles").items]
        return not profiles or "*" in active or any(one in active for one in profiles)

    _laid_over(origin, services, running)
    meant = {name: node for name, node in running.items() if active_in(node)}
    running = meant if meant and wanted is None else running
    candidates = [Candidate(name, node.line - 1) for name, node in running.items()]
    others = [name for name in services if name not in running]
    starts = {
        name: other_program(_start(services[name]))
        or ("" if made[name] else not_there(origin, services[name]))
        for name in others
    }
    outer, inner = parted(list(running), wanted, others)
    return list(running)[pick(origin, candidates, outer, "service", starts)], inner


def _laid_over(origin: Origin, services: dict[str, Node], running: dict[str, Node]) -> None:
    """Refuse a file that runs nothing by itself, since it changes the services of another one."""
    for name, node in services.items():
        if not _made(origin, node) and (not running or name in running):
            what = f"the service {name} names no image: the file is laid over another one"
            fix = "merge them: docker compose -f A -f B config | pytest --vllm-from=-"
            raise origin.problem(node.line, what, fix)


def _made(origin: Origin, node: Node) -> bool:
    """Whether a service says what its container is made of: an image, another service, a folder to build."""
    build = node.get("build")
    if node.get("image") or node.get("extends"):
        return True
    placed = not build.pairs or build.get("context") or build.get("dockerfile_inline")
    return bool(build) and bool(placed or (origin.folder / "Dockerfile").is_file())


def _variables(origin: Origin, notes: list[tuple[int, str]]) -> Variables:
    """`.env` beside the file; the environment wins over it."""
    beside = origin.folder / ".env"
    known: dict[str, str] = {}
    names = Variables(
        origin, lambda line, text: notes.append((line, text)), known, origin.environ, kind="compose"
    )
    for key, value, number in dotenv(origin.held(beside) or ""):
        if not key:
            notes.append((0, f".env:{number}: {value!r} is not an entry of an env file; it is left out"))
        elif value is not None:
            known[key] = origin.environ.get(key) or names.text(value, 0, lenient=True)
    return names


def _runs_vllm(origin: Origin, node: Node, found: tuple[Built, Path] | None) -> bool:
    own = (_words(node.get("entrypoint")), _words(node.get("command")))
    if found is None:
        words = followed([*own[0], *own[1]], mounted(origin, node))[0]
        image = node.get("image").text or ("built" if node.get("build") else "")
        return container.runs_vllm(image, [one.text for one in words])
    return container.runs_vllm(
        found[0].image, [one.text for one in started(found, own, node.line, mounted(origin, node))]
    )


def _start(node: Node) -> list[str]:
    return [one.text for key in ("entrypoint", "command") for one in _words(node.get(key))]


def _words(node: Node) -> list[Word]:
    """A command as a list or as a string."""
    if isinstance(node.value, str):
        return [Word(word, node.line) for word in container.split(node.value)]
    return [Word(one.text, one.line) for one in node.items]


class _Service:
    def __init__(self, draft: Draft, name: str, part: Part, names: Variables, document: Node) -> None:
        self.draft, self.name, self.part = draft, name, part
        self.names, self.document = names, document

    def read(self) -> None:
        """Every key of the service."""
        draft, part = self.draft, self.part
        image = part.get("image")
        found = built(draft.origin, part.node)
        if image:
            draft.set("image", self._text(image), image.line)
        elif found is None:
            draft.note(part.line, "the service names no image (it is built): set [server] image")
        draft.deployment["name"] = self._text(part.get("container_name")) or self.name
        self._environment()
        for name, value in found[0].env.items() if found else ():
            if isinstance(value, str) and name not in draft.env:
                draft.set_env(name, value, part.line)
        start = [self._command(part.get(key)) for key in ("entrypoint", "command")]
        cleared = bool(part.get("entrypoint")) and not start[0]
        if found is None:
            words, script = followed([*start[0], *start[1]], mounted(draft.origin, part.node))
            if script:
                draft.note(words[0].line, f"{script} is read, which is mounted: its lines count from here")
                start = [words, []]
            container.read_start(draft, start[0], start[1], self.names, cleared=cleared)
        else:
            self._built(found, (start[0], start[1]), cleared=cleared)
        composehost.read_host(draft, part, self._text)
        composehost.read_gpus(draft, part, self._text)
        composehost.read_mounted(draft, part, self.document, self._text)

    def _built(self, found: tuple[Built, Path], own: tuple[list[Word], list[Word]], *, cleared: bool) -> None:
        """What the built image starts, as far as the service says nothing else."""
        draft, (made, _) = self.draft, found
        line = self.part.get("build").line
        name = draft.server.get("image") or named(draft.origin, self.document, self.name)
        words = started(found, own, line, mounted(draft.origin, self.part.node))
        has = bool(own[0] or made.entrypoint) or words[1:2] == [Word("-c", words[0].line)] if words else False
        draft.server["image"] = made.image
        container.read_start(draft, words if has else [], [] if has else words, self.names, cleared=cleared)
        draft.server["image"] = name
        if made.version:
            draft.set("version", made.version, line)
        draft.note(
            line, f"{name} is built of a Dockerfile that begins with {made.image}: docker compose build"
        )

    def _text(self, part: Part) -> str:
        return self.names.text(part.text, part.line)

    def _command(self, part: Part) -> list[Word]:
        """A string is filled in before it is split, a list after."""
        if isinstance(part.node.value, str):
            return [Word(word, part.line) for word in container.split(self._text(part))]
        checked(self.draft, part.node, "docker compose")
        return resolved([Word(one.text, one.line) for one in part.items], self.names)

    def _environment(self) -> None:
        for file in self.part.get("env_file").items:
            path = file.get("path") if file.is_table else file
            required = file.get("required").text != "false"
            if file.get("format").text == "raw":
                read_env_file(self.draft, self._text(path), path.line, required=required)
            else:
                read_env_file(self.draft, self._text(path), path.line, required=required, names=self.names)
        given = self.part.get("environment")
        for name, value in given.pairs:
            text = value.text
            self._variable(name, text if value else None, value.line)
        for entry in given.items:
            if entry.is_table or entry.is_list or not entry.text:
                what = "an entry of environment is not text: docker compose refuses it"
                raise self.draft.origin.problem(
                    entry.line, what, "write NAME=VALUE, or a table without dashes"
                )
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
