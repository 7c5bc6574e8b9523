"""Dockerfiles: what a container of the image that they make starts by itself."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import container
from pytest_vllm.profile.importers.container import runs_vllm
from pytest_vllm.profile.importers.dockermade import (
    Instruction,
    copier,
    followed,
    how,
    image_name,
    version_in,
)
from pytest_vllm.profile.importers.draft import Draft
from pytest_vllm.profile.importers.ledger import Ledger
from pytest_vllm.profile.importers.origin import ImportProblem
from pytest_vllm.profile.importers.shellwords import Word
from pytest_vllm.profile.importers.variables import Variables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from pytest_vllm.profile.importers.origin import Origin

_LINE = re.compile(r"\s*([A-Za-z]+)\s+(.*)", re.DOTALL)
_HERE = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?")
#: Names in a value that have no default.
_NAMES = re.compile(r"\$\{?([A-Za-z_]\w*)(?![\w:])")
#: What every build knows by itself.
_OF_THE_BUILD = re.compile(
    r"(?:TARGET|BUILD)(?:PLATFORM|OS|ARCH|VARIANT)|(?:https?|ftp|no|all)_proxy", re.IGNORECASE
)
#: Instructions that make another image of the one they begin with.
_MAKING = ("RUN", "COPY", "ADD", "ONBUILD")
#: Instructions without effect on the server.
_IDLE = ("LABEL", "MAINTAINER", "EXPOSE", "HEALTHCHECK", "STOPSIGNAL")
_BUILD = "build it, and give the docker run line or compose file that starts its image"
_ELSEWHERE = "GPUs, ports, volumes and variables are given where it is started: set [server] gpus"


@dataclass
class _Stage:
    image: str
    line: int
    settings: list[Instruction] = field(default_factory=list)


def read_dockerfile(origin: Origin, service: str | None = None) -> Draft:
    """The server that an image of this file starts.

    Raises ImportProblem for a value that the build is given, and for a program that is not vLLM.
    """
    reader, line = _read(origin, {})
    draft = reader.draft
    draft.wanted = service or ""
    reader.start(draft.server["image"])
    reader.idle.close(draft)
    draft.note(line, _ELSEWHERE)
    return draft


@dataclass(frozen=True)
class Built:
    """What an image that is built of a file starts by itself.

    Args:
        image: that it begins with.
        version: of vLLM in it, empty where nobody knows.
        env: its variables.
        entrypoint: its entry point.
        command: its command, which one of the container's own replaces.
        made: the instructions that make it.
    """

    image: str
    version: str
    env: Mapping[str, Any]
    entrypoint: list[Word]
    command: list[Word]
    made: Sequence[Instruction]


def read_built(origin: Origin, arguments: Mapping[str, str]) -> Built:
    """What a service of a compose file gets of its Dockerfile. Raises ImportProblem as `read_dockerfile`."""
    reader, _ = _read(origin, arguments)
    command = [] if reader.in_shell else reader.command
    image = reader.draft.server["image"]
    version = version_in(image, reader.making)
    return Built(image, version, reader.draft.env, reader.entrypoint, command, reader.made)


def _read(origin: Origin, arguments: Mapping[str, str]) -> tuple[_Reader, int]:
    """The settings of the last stage, and its line; `arguments` are those that the build is given."""
    stage, others = _last_stage(origin)
    draft = Draft(origin, "docker", "dockerfile")
    for one in others:
        draft.lost(one.line, f"{one.name} of another stage")
    names = Variables(origin, draft.note, dict(arguments), kind="shell")
    reader = _Reader(draft, names)
    for one in (one for one in stage.settings if one.line < stage.line):
        reader.read(one)  # those before FROM
    draft.set("image", _filled(names, stage.image, stage.line), stage.line)
    for one in (one for one in stage.settings if one.line > stage.line):
        reader.read(one)
    return reader, stage.line


def _last_stage(origin: Origin) -> tuple[_Stage, list[Instruction]]:
    """The stage that becomes the image, with what it takes over from those that it is made from; the rest."""
    stages: dict[str, _Stage] = {}
    found: _Stage | None = None
    given: list[Instruction] = []
    for one in _instructions(origin):
        if one.name == "FROM":
            words = [word for word in one.text.split() if not word.startswith("--")]
            base = stages.get(words[0].lower())
            found = (
                _Stage(words[0], one.line, list(given))
                if base is None
                else _Stage(base.image, base.line, list(base.settings))
            )
            stages[words[2].lower() if len(words) > 2 else str(len(stages))] = found
        elif found is None:
            given.append(one)
        else:
            found.settings.append(one)
    if found is None:
        raise origin.problem(0, "it looks like a Dockerfile without FROM", _BUILD)
    taken = {one.line for one in found.settings}
    every = [one for stage in stages.values() for one in stage.settings]
    return found, [one for one in every if one.line not in taken]


def _instructions(origin: Origin) -> list[Instruction]:
    found: list[Instruction] = []
    lines = iter(enumerate(origin.text.splitlines(), 1))
    for at, raw in lines:
        text = raw.strip()
        if not text or text.startswith("#"):
            continue
        while text.endswith("\\"):
            _, more = next(lines, (at, ""))
            text = text[:-1] + ("" if more.strip().startswith("#") else more.strip())
            text += "\\" if more.strip().startswith("#") else ""
        parts = _LINE.fullmatch(text)
        if parts is None:
            raise origin.problem(at, f"{text[:60]!r} is not an instruction of a Dockerfile", _BUILD)
        found.append(Instruction(parts[1].upper(), parts[2].strip(), at))
        for end in _HERE.findall(text) if found[-1].name in _MAKING else ():
            while next(lines, (0, end))[1].strip() != end:
                pass
    return found


class _Reader:
    """The settings of a stage, one after the other."""

    def __init__(self, draft: Draft, names: Variables) -> None:
        self.draft, self.names = draft, names
        self.entrypoint: list[Word] = []
        self.command: list[Word] = []
        self.cleared = self.in_shell = False
        self.made: list[Instruction] = []
        self.asked: set[str] = set()
        self.idle = Ledger()

    def read(self, one: Instruction) -> None:
        """One instruction."""
        if one.name in (*_MAKING, "WORKDIR"):
            self.made.append(one)
        if one.name in _MAKING:
            self.draft.note(one.line, f"{one.name} makes the image another one: {one.text[:60]}")
        elif one.name in ("ARG", "ENV"):
            self._variable(one)
        elif one.name in _IDLE:
            self.idle.idle(one.line, one.name)
        elif one.name == "ENTRYPOINT":
            self._replaced("ENTRYPOINT", self.entrypoint)
            self._replaced("CMD", self.command)
            self.entrypoint, self.in_shell = _words(one)
            self.cleared, self.command = not self.entrypoint, []
        elif one.name == "CMD":
            self._replaced("CMD", self.command)
            self.command = _words(one)[0]
        elif one.name in ("WORKDIR", "USER"):
            key = {"WORKDIR": "workdir", "USER": "user"}[one.name]
            self.draft.set(key, _filled(self.names, one.text, one.line), one.line)
        else:
            self.draft.lost(one.line, f"{one.name} {one.text}")

    def _variable(self, one: Instruction) -> None:
        if one.name == "ARG":
            name, equals, value = one.text.partition("=")
            self.idle.idle(one.line, f"ARG {one.text}")
            self.asked.add(name.strip())
            if equals:
                self.names.values.setdefault(name.strip(), _filled(self.names, value, one.line))
            return
        for name, value in _pairs(one.text):
            own = [found for found in _NAMES.findall(value) if found not in self.names.values]
            if own and not set(own) & self.asked:
                said = f"{name} is left out: it holds {', '.join(own)}, which the image has from its base"
                self.draft.note(one.line, said)
                continue
            self.names.values[name] = _filled(self.names, value, one.line)
            self.draft.set_env(name, self.names.values[name], one.line)

    def _replaced(self, name: str, words: list[Word]) -> None:
        """Say that an instruction does not count, as a later one takes its place."""
        if words:
            self.draft.note(words[0].line, f"{name} does not count: a later instruction takes its place")

    @property
    def making(self) -> list[Instruction]:
        """The instructions that make the image another one than it begins with."""
        return [one for one in self.made if one.name in _MAKING]

    def start(self, image: str) -> None:
        """What a container starts: behind an entry point that a shell reads, no command counts."""
        command = [] if self.in_shell else self.command
        if self.in_shell:
            self._replaced("CMD behind an ENTRYPOINT that a shell reads", self.command)
        draft, origin = self.draft, self.draft.origin
        words, script = followed([*self.entrypoint, *command], copier(origin, self.made))
        if script:
            said = f"{script} is read, which is copied into the image: its lines count from here on"
            draft.note(words[0].line, said)
        entrypoint, command = (words, []) if script else (self.entrypoint, command)
        if not runs_vllm(image, [word.text for word in words]):
            started = f": it starts {shlex.join(one.text for one in words[:2])}" if words else ""
            what = f"it looks like a Dockerfile whose image starts no vLLM by itself{started}"
            raise origin.problem(0, what, _BUILD)
        plain = Variables(origin, draft.note, kind="plain")
        container.read_start(draft, entrypoint, command, plain, cleared=self.cleared)
        if not draft.server.get("model") and "config" not in draft.args:
            raise origin.problem(0, "it looks like a Dockerfile that names no model", _BUILD)
        if self.making:
            self._built(image, self.making)

    def _built(self, image: str, making: list[Instruction]) -> None:
        """The image that the file makes, in the place of the one that it begins with."""
        draft, name = self.draft, image_name(self.draft.origin)
        draft.server["image"] = name
        if version := version_in(image, making):
            draft.server["version"] = version
        made = f"the image is made of this file and begins with {image}: {how(draft.origin, name, making)}"
        draft.note(making[0].line, made)
        for one in sorted(self.asked - set(self.names.values)):
            used = re.compile(rf"\$(?:\{{{re.escape(one)}\}}|{re.escape(one)}\b)")
            line = next((each.line for each in making if used.search(each.text)), 0)
            if line and not _OF_THE_BUILD.fullmatch(one):
                draft.note(line, f"the build has to be given {one}: --build-arg {one}=…")


def _filled(names: Variables, text: str, line: int) -> str:
    """A value with what the file has set. Raises ImportProblem for what only the build is given."""
    try:
        return names.text(text.strip(), line)
    except ImportProblem as problem:
        what = f"{text.strip()} is filled in by the build"
        raise names.origin.problem(line, what, _BUILD) from problem


def _pairs(text: str) -> list[tuple[str, str]]:
    """`A=b C="d e"`, or the older `A b c`."""
    if "=" not in text.split(maxsplit=1)[0]:
        name, _, value = text.partition(" ")
        return [(name, value.strip())]
    return [(name, value) for name, _, value in (one.partition("=") for one in shlex.split(text))]


def _words(one: Instruction) -> tuple[list[Word], bool]:
    """The words of an entry point or a command, and whether a shell reads them."""
    if one.text.startswith("["):
        try:
            listed = json.loads(one.text)
        except json.JSONDecodeError:
            listed = None
        if isinstance(listed, list) and all(isinstance(text, str) for text in listed):
            return [Word(text, one.line) for text in listed], False
    return [Word(text, one.line) for text in ("/bin/sh", "-c", one.text)], True
