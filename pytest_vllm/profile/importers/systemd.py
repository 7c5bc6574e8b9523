"""systemd units: a server of its own, or one that calls docker or podman."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import containerline
from pytest_vllm.profile.importers.container import without_prefix
from pytest_vllm.profile.importers.envfile import dotenv
from pytest_vllm.profile.importers.shell import read_command
from pytest_vllm.profile.importers.shellprefix import is_run
from pytest_vllm.profile.importers.shellwords import Word
from pytest_vllm.profile.importers.variables import DOLLAR, Variables
from pytest_vllm.profile.importers.vllmline import program_length
from pytest_vllm.profile.secrets import secret_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.origin import Origin

SECTION = re.compile(r"^\[(Unit|Service|Install|Container|Pod|Timer|Socket)\]\s*$", re.MULTILINE)
#: What systemd takes before the program's path.
_PREFIXES = "@-:+!|"


@dataclass(frozen=True)
class Entry:
    """One `Key=value` of a unit, continued lines joined."""

    section: str
    key: str
    value: str
    line: int


def read_unit(origin: Origin) -> Draft:
    """The server of a unit. Raises ImportProblem for none, for two, and for what is no unit's line."""
    entries = list(_entries(origin))
    if any(entry.section in ("Container", "Pod") for entry in entries):
        raise origin.problem(0, "a Quadlet file, which is not read", "give the podman run line it stands for")
    start = _start(origin, entries)
    words = without_prefix(_words(origin, start))
    texts = [word.text for word in words]
    if not is_run(texts) and not program_length(texts):
        raise origin.problem(
            start.line, f"ExecStart runs {texts[0]}, not vLLM", "name the file that starts vLLM"
        )
    values: dict[str, str] = {}
    notes: list[tuple[int, str]] = []
    environment = list(_environment(origin, entries, notes))
    values = {name: text for name, text, _, _ in environment if text is not None}
    draft = read_command(origin, words, lambda draft: Variables(origin, draft.note, values, lenient=True))
    for line, text in notes:
        draft.note(line, text)
    _settings(draft, entries)
    for name, value, line, where in environment:
        if draft.server["launcher"] != "process" and value is not None:
            draft.note(line, f"{name} is the environment of the container engine, not of the server")
        elif value is None and draft.server["launcher"] == "process":
            containerline.pass_on(draft, name, line)
        elif value is not None:
            draft.set_env(name, value, line, where)
    return draft


def _entries(origin: Origin) -> Iterator[Entry]:
    section, pending, begun = "", "", 0
    for at, raw in enumerate([*origin.text.splitlines(), ""], 1):
        line = raw.strip()
        if line.startswith(("#", ";")) or (not line and not pending):
            continue
        if line.endswith("\\"):
            pending, begun = f"{pending}{line[:-1]} ", begun or at
            continue
        line, number, pending, begun = pending + line, begun or at, "", 0
        if line.startswith("["):
            section = line.strip("[]")
            continue
        key, equals, value = line.partition("=")
        if not equals:
            raise origin.problem(
                number, f"{line[:60]!r} is no line of a unit", "a line that goes on ends in a backslash"
            )
        yield Entry(section, key.strip(), value.strip(), number)


def _start(origin: Origin, entries: list[Entry]) -> Entry:
    starts: list[Entry] = []
    for entry in entries:
        if (entry.section, entry.key) == ("Service", "ExecStart"):
            starts = [*starts, entry] if entry.value else []
    if not starts:
        raise origin.problem(0, "the unit has no ExecStart", "name the .service file that starts vLLM")
    if len(starts) > 1:
        lines = " and ".join(str(entry.line) for entry in starts)
        fix = "keep one; an empty ExecStart= takes back what stands before it"
        raise origin.problem(starts[1].line, f"the unit has {len(starts)} ExecStart (lines {lines})", fix)
    return starts[0]


def _words(origin: Origin, start: Entry) -> list[Word]:
    text = _specifiers(origin, start.value.lstrip(_PREFIXES)).replace("$$", DOLLAR)
    try:
        return [Word(word, start.line) for word in shlex.split(text)]
    except ValueError as error:
        what = f"ExecStart cannot be split: {str(error).lower()}"
        raise origin.problem(start.line, what, "close the quote") from error


def _specifiers(origin: Origin, text: str) -> str:
    known = {"%%": "%", "%h": origin.home, "%n": f"{origin.stem}.service", "%N": origin.stem}
    return re.sub(r"%[a-zA-Z%]", lambda found: known.get(found[0], found[0]), text)


def _environment(
    origin: Origin, entries: list[Entry], notes: list[tuple[int, str]]
) -> Iterator[tuple[str, str | None, int, str]]:
    """Name, value (None: passed on), line and place of every variable."""
    for entry in entries:
        if entry.section != "Service":
            continue
        if entry.key == "Environment":
            for pair in shlex.split(_specifiers(origin, entry.value)):
                name, _, value = pair.partition("=")
                yield name, value, entry.line, ""
        elif entry.key == "PassEnvironment":
            for name in entry.value.split():
                yield name, None, entry.line, ""
        elif entry.key == "EnvironmentFile":
            yield from _from_file(origin, entry, notes)


def _from_file(
    origin: Origin, entry: Entry, notes: list[tuple[int, str]]
) -> Iterator[tuple[str, str | None, int, str]]:
    written = entry.value.removeprefix("-")
    path = origin.path(_specifiers(origin, written))
    if path.is_file():
        for name, value, number in dotenv(path.read_text("utf-8-sig", "replace")):
            yield name, value, entry.line, f"in {written}:{number}"
    elif entry.value.startswith("-"):
        notes.append((entry.line, f"the environment file {path} is not there; it is optional"))
    else:
        what = f"the environment file {path} is not there"
        raise origin.problem(entry.line, what, "import the unit where it runs")


def _settings(draft: Draft, entries: list[Entry]) -> None:
    """What is left of the unit goes into `[deployment.service]` as it stands."""
    kept: dict[str, str | list[str]] = {}
    for entry in entries:
        if entry.key in ("ExecStart", "Environment", "EnvironmentFile", "PassEnvironment"):
            continue
        if secret_text(entry.value):
            draft.lost(entry.line, f"{entry.key}, which holds a secret,")
        elif entry.key == "Restart":
            draft.deployment["restart"] = entry.value
        else:
            known = kept.get(entry.key, [])
            before = [known] if isinstance(known, str) else known
            kept[entry.key] = [*before, entry.value] if before else entry.value
    draft.deployment["kind"] = "systemd-user" if kept.get("WantedBy") == "default.target" else "systemd"
    draft.deployment.setdefault("name", draft.origin.stem.removesuffix("@"))
    draft.deployment["service"] = kept
