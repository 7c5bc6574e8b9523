"""systemd units: a server of its own, or one that calls docker or podman."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers import containerline
from pytest_vllm.profile.importers.container import without_prefix
from pytest_vllm.profile.importers.deadlines import of_unit
from pytest_vllm.profile.importers.dockermade import followed, text_of
from pytest_vllm.profile.importers.envfile import dotenv
from pytest_vllm.profile.importers.marks import DOLLAR
from pytest_vllm.profile.importers.shell import read_command, read_script
from pytest_vllm.profile.importers.shellprefix import is_run, nested
from pytest_vllm.profile.importers.shellstate import State
from pytest_vllm.profile.importers.shelltree import parsed
from pytest_vllm.profile.importers.shellvalue import Value
from pytest_vllm.profile.importers.shellwords import Word
from pytest_vllm.profile.importers.variables import Variables
from pytest_vllm.profile.importers.vllmline import program_length
from pytest_vllm.profile.secrets import redacted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.origin import Origin

SECTION = re.compile(
    r"^\[(Unit|Service|Install|Container|Pod|Kube|Volume|Network|Image|Build|Timer|Socket)\]\s*$",
    re.MULTILINE,
)
#: A word of its own that systemd splits at blanks; `${NAME}` stays in one piece.
_SPLIT = re.compile(r"\$[A-Za-z_]\w*")
#: What systemd takes before the program's path.
_PREFIXES = "@-:+!|"


@dataclass(frozen=True)
class Entry:
    """One `Key=value` of a unit, continued lines joined."""

    section: str
    key: str
    value: str
    line: int


def read_unit(origin: Origin, service: str | None = None) -> Draft:
    """The server of a unit. Raises ImportProblem for none, for two, and for what is not a unit's line."""
    entries = list(entries_of(origin))
    sections = {entry.section for entry in entries}
    if "Kube" in sections:
        from pytest_vllm.profile.importers.quadlet import read_kube  # noqa: PLC0415 - it reads units too

        return read_kube(origin, entries, service)
    if "Container" in sections:
        from pytest_vllm.profile.importers.quadlet import read_quadlet  # noqa: PLC0415 - it reads units too

        return read_quadlet(origin, entries, service)
    if other := sections & {"Pod", "Volume", "Network", "Image", "Build"}:
        fix = "name the .container file that starts vLLM in it"
        raise origin.problem(0, f"a Quadlet {min(other).lower()}: it starts no server by itself", fix)
    notes: list[tuple[int, str]] = []
    entries += _drop_ins(origin, notes)
    start = _start(origin, entries)
    words = without_prefix(_words(origin, start))
    environment = list(_environment(origin, entries, notes))
    values = {name: text for name, text, _, _ in environment if text is not None}
    draft = command_of(origin, start, words, values, service)
    for line, text in notes:
        draft.note(line, text)
    settings(draft, entries, ("ExecStart", "Environment", "EnvironmentFile", "PassEnvironment"))
    of_unit(draft, entries)
    for name, value, line, where in environment:
        if draft.server["launcher"] != "process" and value is not None:
            draft.note(line, f"{name} is the environment of the container engine, not of the server")
        elif value is None and draft.server["launcher"] == "process":
            containerline.pass_on(draft, name, line)
        elif value is not None and name not in draft.env:  # what a script makes of it counts
            draft.set_env(name, value, line, where)
    return draft


def command_of(
    origin: Origin,
    start: Entry,
    words: list[Word],
    values: dict[str, str],
    service: str | None,
    *,
    kind: str = "unit",
) -> Draft:
    """What an entry starts: a server, a container, or a shell that starts either.

    Args:
        origin: what messages name.
        start: the entry.
        words: what it starts, in words.
        values: the variables of whatever starts it.
        service: which server, where a shell starts several.
        kind: whose names are filled in: `unit` (systemd) or `plain` (nothing is).

    Raises:
        ImportProblem: it starts no vLLM.
    """
    texts = [word.text for word in words]
    if is_run(texts) or program_length(texts):
        return read_command(
            origin, words, lambda draft: Variables(origin, draft.note, dict(values), kind=kind), service
        )
    notes: list[tuple[int, str]] = []
    names = Variables(origin, lambda *note: notes.append(note), dict(values), lenient=True, kind=kind)
    filled = [Value(names.text(text, start.line).replace(DOLLAR, "$")) for text in texts]
    words, script = followed([Word(one.text, start.line) for one in filled], partial(_script, origin))
    if script:
        filled = [Value(one.text) for one in words]
        given = Path(script).is_file() or os.path.normpath(script) in origin.written
        there = "" if given else f", from {Path(script).name} beside it"
        notes.append((start.line, f"{script} is read{there}: its lines are this one's"))
    inner = nested(filled) if filled else None
    if inner is None:
        long = len(texts) > 1 and texts[0].endswith("sh")
        what = f"{start.key} runs {' '.join(texts[: 1 + long])}, not vLLM"
        raise origin.problem(start.line, what, "name the file that starts vLLM")
    state = State(origin.folder, {}, origin.home, script, arguments=inner[1])
    for name, text in values.items():
        state.assign(name, Value(text), export=True)
    draft = read_script(origin, replace(parsed(inner[0].text, origin), at=start.line), state, service)
    for line, text in notes:
        draft.note(line, text)
    return draft


def _script(origin: Origin, inside: str) -> str:
    """The text of a script that is started, there or, where that is not this machine, beside the unit."""
    here = origin.path(inside)
    if os.path.normpath(here) in origin.written:
        return origin.held(here) or ""
    return text_of(next((one for one in (here, origin.folder / here.name) if one.is_file()), None))


def _drop_ins(origin: Origin, notes: list[tuple[int, str]]) -> list[Entry]:
    """What `NAME.service.d/*.conf` beside the unit adds."""
    found: list[Entry] = []
    folder = origin.folder / f"{Path(origin.shown).name}.d"
    for file in sorted(folder.glob("*.conf")) if folder.is_dir() else ():
        inner = replace(origin, text=file.read_text("utf-8-sig", "replace"), shown=str(file))
        found += [replace(entry, line=0) for entry in entries_of(inner)]
        notes.append((0, f"its drop-in {folder.name}/{file.name} is read as well"))
    return found


def entries_of(origin: Origin) -> Iterator[Entry]:
    """Every `Key=value` of a unit. Raises ImportProblem for a line that is none."""
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
                number, f"{line[:60]!r} is not a line of a unit", "a line that goes on ends in a backslash"
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
    text = filled(origin, start).lstrip(_PREFIXES).replace("$$", DOLLAR)
    try:
        words = shlex.split(text)
    except ValueError as error:
        what = f"ExecStart cannot be split: {str(error).lower()}"
        raise origin.problem(start.line, what, "close the quote") from error
    for one in words:
        if (found := _SPLIT.search(one)) and found[0] != one and " " not in one:
            what = f"systemd does not fill {found[0]} in within {one}"
            raise origin.problem(start.line, what, f"write ${{{found[0][1:]}}}")
    return [Word(one, start.line, bare=_SPLIT.fullmatch(one) is not None) for one in words]


def filled(origin: Origin, entry: Entry) -> str:
    """A value with its specifiers filled in. Raises ImportProblem for one that systemd alone knows."""
    text = specifiers(origin, entry.value)
    if left := re.search(r"(?<!%)%[a-zA-Z]", specifiers(origin, entry.value.replace("%%", ""))):
        what = f"{left[0]} is filled in by systemd when the unit is started"
        raise origin.problem(entry.line, what, "write its value in its place")
    return text


def specifiers(origin: Origin, text: str) -> str:
    """A text with `%h`, `%n` and the like filled in."""
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
            for pair in assignments(origin, entry):
                name, _, value = pair.partition("=")
                yield name, value, entry.line, ""
        elif entry.key == "PassEnvironment":
            for name in entry.value.split():
                yield name, None, entry.line, ""
        elif entry.key == "EnvironmentFile":
            yield from _from_file(origin, entry, notes)


def assignments(origin: Origin, entry: Entry) -> list[str]:
    """The `A=b "C=d e"` of a line. Raises ImportProblem for a quote that is not closed."""
    try:
        return shlex.split(filled(origin, entry))
    except ValueError as error:
        what = f"{entry.key} cannot be split: {str(error).lower()}"
        raise origin.problem(entry.line, what, "close the quote") from error


def _from_file(
    origin: Origin, entry: Entry, notes: list[tuple[int, str]]
) -> Iterator[tuple[str, str | None, int, str]]:
    written = entry.value.removeprefix("-")
    path = origin.path(specifiers(origin, written))
    if (text := origin.held(path)) is not None:
        for name, value, number in dotenv(text):
            if not name:
                notes.append(
                    (entry.line, f"{written}:{number} is not an entry of an env file; it is left out")
                )
                continue
            given = value.replace(DOLLAR, "$") if value is not None else None
            yield name, given, entry.line, f"in {written}:{number}"
    elif entry.value.startswith("-"):
        notes.append((entry.line, f"the environment file {path} is not there; it is optional"))
    else:
        what = f"the environment file {path} is not there"
        raise origin.problem(entry.line, what, "import the unit where it runs")


def settings(draft: Draft, entries: list[Entry], read: Collection[str]) -> None:
    """What is left of the unit goes into `[deployment.service]` as it stands."""
    kept: dict[str, str | list[str]] = {}
    for entry in entries:
        if entry.key in read:
            continue
        if redacted(f"{entry.key}={entry.value}") != f"{entry.key}={entry.value}":
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
