"""Dockerfiles that make an image of their own: its name, its version of vLLM, scripts that it starts."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pytest_vllm.profile.bounded import Unreadable, read_bounded
from pytest_vllm.profile.flags import image_version
from pytest_vllm.profile.importers.shellwords import Word
from pytest_vllm.profile.importers.vllmline import PINNED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_vllm.profile.importers.origin import Origin

_INSTALLED = re.compile(r"\b(?:pip3?|uv)\b[^\n]*\binstall\b")
_NAMED = re.compile(r"(?<![\w/.-])vllm(?![\w/-])|vllm-project/vllm|vllm[\w.+-]*\.whl")
_SHELL = re.compile(r"(?:/usr)?(?:/bin/)?(?:ba|da|z)?sh")


@dataclass(frozen=True)
class Instruction:
    """One instruction, its lines joined."""

    name: str
    text: str
    line: int


def image_name(origin: Origin) -> str:
    """What an image is called that is made of a file: its folder's name."""
    found = re.sub(r"[^a-z0-9]+", "-", origin.folder.name.lower()).strip("-")
    return f"{found or 'image'}:built"


def how(origin: Origin, name: str, made: Sequence[Instruction]) -> str:
    """The command that makes it."""
    file = origin.folder / PurePosixPath(origin.shown).name
    return f"docker build -t {name} -f {shlex.quote(str(file))} {shlex.quote(str(_context(origin, made)))}"


def _context(origin: Origin, made: Sequence[Instruction]) -> Path:
    """The folder that it is built in: the nearest that holds what it copies."""
    copies = [_given(one) for one in made if one.name in ("COPY", "ADD") and "--from" not in one.text]
    sources = [
        words[0].lstrip("/") for words in copies if len(words) > 1 and not re.search(r"[*?$:]", words[0])
    ]
    folders = [origin.folder, *list(origin.folder.parents)[:4]]
    return next((one for one in folders if all((one / source).exists() for source in sources)), folders[0])


def version_in(image: str, made: Sequence[Instruction]) -> str:
    """The version of vLLM in an image: what is installed in it, or its base's; empty where nobody knows."""
    installs = [one.text for one in made if one.name == "RUN" and _INSTALLED.search(one.text)]
    pinned = [found for text in installs for found in PINNED.findall(text)]
    if pinned:
        return str(pinned[-1])
    touched = any(_NAMED.search(one.text) for one in made if one.name == "RUN")
    return "" if touched else image_version(image)


def followed(words: list[Word], at: Callable[[str], str]) -> tuple[list[Word], str]:
    """Entry point and command with the text of a script in its place, where that is known.

    Args:
        words: entry point and command.
        at: the text that lies at a place in the container, empty where that is not known.

    Returns:
        The words as `/bin/bash -c TEXT NAME …` where a script is read, and its place; else as they were.
    """
    place = 1 if len(words) > 1 and _SHELL.fullmatch(words[0].text) else 0
    place += place and words[1].text == "-c" and len(words) == 3
    text = at(words[place].text) if words and not words[place].text.startswith("-") else ""
    if not text or not (place or re.match(r"#!.*\b(?:ba|da|z)?sh\b", text)):
        return words, ""
    line = words[place].line
    return [*(Word(one, line) for one in ("/bin/bash", "-c", text)), *words[place:]], words[place].text


def text_of(path: Path | None) -> str:
    """The text of a script; empty for none, and for what cannot be read."""
    try:
        return read_bounded(path) if path is not None else ""
    except Unreadable:
        return ""


def copier(origin: Origin, made: Sequence[Instruction]) -> Callable[[str], str]:
    """The texts of files that a lone Dockerfile copies."""
    folder = _context(origin, made)
    return lambda inside: copied(inside, made, folder)


def copied(inside: str, made: Sequence[Instruction], folder: Path) -> str:
    """The text of the file of the build's context that lies at a place in the image."""
    return text_of(_copied(inside, made, folder))


def _copied(inside: str, made: Sequence[Instruction], folder: Path) -> Path | None:
    workdir, found = PurePosixPath("/"), None
    for one in made:
        if one.name == "WORKDIR":
            workdir /= one.text
        if one.name not in ("COPY", "ADD") or "--from" in one.text:
            continue
        given = _given(one)
        if len(given) < 2:
            continue
        *sources, target = given
        for source in sources:
            to = workdir / target
            held = target.endswith(("/", ".")) or len(sources) > 1 or (folder / source).is_dir()
            whole = (folder / source).is_dir()
            to = to / ("" if whole else PurePosixPath(source).name) if held else to
            place = workdir / inside
            if whole and place.is_relative_to(to):
                found = _within(folder, Path(source) / place.relative_to(to)) or found
            elif place == to:
                found = _within(folder, Path(source)) or found
    return found


def _within(folder: Path, relative: Path) -> Path | None:
    path = folder / str(relative).lstrip("/")
    return path if path.is_file() and path.resolve().is_relative_to(folder.resolve()) else None


def _given(one: Instruction) -> list[str]:
    """Sources and target of a COPY."""
    text = re.sub(r"[\[\],]", " ", one.text) if re.search(r"(?:^|\s)\[", one.text) else one.text
    try:
        return [word for word in shlex.split(text) if not word.startswith("--")]
    except ValueError:
        return []
