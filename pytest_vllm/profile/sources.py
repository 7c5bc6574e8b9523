"""Where profiles come from: a path, `vllm-profiles/`, pyproject.toml, the built-in ones; in that order."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_vllm.locate import data_dir
from pytest_vllm.profile.bounded import Unreadable, depth, read_bounded
from pytest_vllm.profile.errors import Fault, ProfileError
from pytest_vllm.profile.errors import Path as KeyPath
from pytest_vllm.profile.lines import lines
from pytest_vllm.profile.words import unknown

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FOLDER = "vllm-profiles"
TABLES = ("tool", "pytest-vllm", "profiles")
BUILT_IN = "built in"
#: Bytes of a file that holds profiles.
LARGEST = 2**20
#: Tables and lists inside each other.
DEEPEST = 40
_DEEP = f"tables or lists are nested more than {DEEPEST} deep; no profile needs that"

_AT_LINE = re.compile(r"\s*\(at line (\d+), column (\d+)\)$")


@dataclass(frozen=True)
class ProfileName:
    """A profile that can be named.

    Args:
        name: what `--vllm-profile` takes.
        source: the file it stands in.
        origin: `vllm-profiles`, `pyproject.toml` or `built in`.
    """

    name: str
    source: Path
    origin: str


@dataclass(frozen=True)
class Document:
    """A file that holds a profile, at the top or in a table of pyproject.toml."""

    name: str
    file: Path
    origin: str
    rootdir: Path
    prefix: tuple[str, ...] = ()

    @cached_property
    def text(self) -> str:
        """The file's text. Raises ProfileError when it cannot be read."""
        try:
            return read_bounded(self.file, LARGEST)
        except Unreadable as error:
            raise ProfileError(f"{self.shown}: {error}") from error

    @cached_property
    def raw(self) -> dict[str, Any]:
        """The profile's tables as TOML gives them. Raises ProfileError with line and column on bad TOML."""
        try:
            content: Any = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            raise ProfileError(self._syntax(str(error))) from error
        except RecursionError as error:
            raise ProfileError(f"{self.shown}: {_DEEP}") from error
        if depth(content, DEEPEST) > DEEPEST:
            raise ProfileError(f"{self.shown}: {_DEEP}")
        for key in self.prefix:
            content = content[key]
        if not isinstance(content, dict):
            raise self.error([Fault((), f"profile {self.name!r} is {content!r}: write a table")])
        return content

    @property
    def shown(self) -> str:
        """The file as messages name it."""
        return (
            str(self.file.relative_to(self.rootdir))
            if self.file.is_relative_to(self.rootdir)
            else str(self.file)
        )

    def error(self, faults: Iterable[Fault]) -> ProfileError:
        """The error for faults in this document, in the order of its lines."""
        placed = sorted((self.line(fault.path), fault.text) for fault in faults)
        return ProfileError(*dict.fromkeys(f"{self.shown}:{line}: {text}" for line, text in placed))

    def has(self, path: KeyPath) -> bool:
        """Whether the key is written in this document."""
        return _spelled((*self.prefix, *path)) in self._lines

    def line(self, path: KeyPath) -> int:
        """The line of a key, or of the nearest table around it."""
        spelled = _spelled((*self.prefix, *path))
        while spelled and spelled not in self._lines:
            spelled = spelled[:-1]
        return self._lines.get(spelled, 1)

    @cached_property
    def _lines(self) -> dict[KeyPath, int]:
        return {_spelled(path): line for path, line in lines(self.text).items()}

    def _syntax(self, said: str) -> str:
        found = _AT_LINE.search(said)
        what = _AT_LINE.sub("", said).removesuffix(" (at end of document)")
        line, column = (int(found[1]), int(found[2])) if found else (self.text.count("\n") + 1, 1)
        return f"{self.shown}:{line}:{column}: not TOML: {what[0].lower()}{what[1:]}"


def _spelled(path: KeyPath) -> KeyPath:
    return tuple(part.replace("_", "-") if isinstance(part, str) else part for part in path)


def names(rootdir: Path) -> list[ProfileName]:
    """Every profile that can be named from here, by name; one that hides another of its name is listed alone.

    Raises ProfileError when pyproject.toml cannot be read.
    """
    found: dict[str, ProfileName] = {}
    for document in _documents(rootdir):
        found.setdefault(document.name, ProfileName(document.name, document.file, document.origin))
    return [found[name] for name in sorted(found)]


def find(
    name_or_path: str, rootdir: Path, *, base: Path | None = None, beside: Document | None = None
) -> Document:
    """The document of a profile. Raises ProfileError with the nearest names when there is none.

    Args:
        name_or_path: a name, or a path (it ends in .toml or contains a slash).
        rootdir: pytest's root directory.
        base: what a relative path is relative to, beside the root directory.
        beside: a document that is not meant: a profile may extend the one whose name it hides.
    """
    if name_or_path.endswith(".toml") or "/" in name_or_path:
        return _at_path(name_or_path, rootdir, base)
    for document in _documents(rootdir):
        if document.name == name_or_path and document != beside:
            return document
    known = [known.name for known in names(rootdir)]
    own = rootdir / FOLDER
    where = "" if own.is_dir() else f"; your own would lie in {own}, which is not there"
    raise ProfileError(f"{unknown('profile', name_or_path, known)}{where}")


def _at_path(given: str, rootdir: Path, base: Path | None) -> Document:
    places = [folder / given for folder in (base, rootdir) if folder is not None]
    for place in places:
        if place.is_file():
            return Document(place.stem, place.resolve(), "file", rootdir.resolve())
    if places[0].is_dir():
        raise ProfileError(f"no profile file {given}: {places[0]} is a folder; name a .toml file in it")
    raise ProfileError(f"no profile file {given}: {places[0]} does not exist")


def _documents(rootdir: Path) -> Iterable[Document]:
    rootdir = rootdir.resolve()
    for file in sorted((rootdir / FOLDER).glob("*.toml")):
        yield Document(file.stem, file, FOLDER, rootdir)
    yield from _in_pyproject(rootdir)
    for file in sorted((data_dir("fixtures") / "profiles").glob("*.toml")):
        yield Document(file.stem, file, BUILT_IN, rootdir)


def _in_pyproject(rootdir: Path) -> Iterable[Document]:
    file = rootdir / "pyproject.toml"
    if not file.is_file():
        return
    tables: Any = Document("pyproject", file, "pyproject.toml", rootdir).raw
    for key in TABLES:
        tables = tables.get(key, {}) if isinstance(tables, dict) else {}
    for name in tables:
        yield Document(name, file, "pyproject.toml", rootdir, (*TABLES, name))
