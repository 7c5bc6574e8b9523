"""Where an imported deployment is written down, and the one error that says what is wrong with it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.profile.bounded import MOST, Unreadable, decoded, read_bounded, read_descriptor
from pytest_vllm.profile.errors import ProfileError
from pytest_vllm.profile.importers.marks import unmarked
from pytest_vllm.profile.secrets import redacted

if TYPE_CHECKING:
    from collections.abc import Mapping


class ImportProblem(ProfileError):  # noqa: N818 - what a person has, not what broke
    """A deployment cannot be read as a profile. `str()` says where, what is wrong, and the next step."""

    @property
    def what(self) -> str:
        """What is wrong, without the place."""
        return str(self).partition(": ")[2] or str(self)


@dataclass(frozen=True)
class Origin:
    """A text that describes a deployment.

    Args:
        text: as it was read.
        shown: the file as messages name it.
        folder: what relative paths in it are relative to.
        environ: where its variables come from.
        written: texts of files that a script writes before they are read, by their whole paths.
    """

    text: str
    shown: str
    folder: Path
    environ: Mapping[str, str] = field(repr=False)
    written: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def itself(self) -> str:
        """The file itself, wherever a script goes: `$0`. As messages name it, where it is no file."""
        file = self.folder / Path(self.shown).name
        return str(file) if file.is_file() else self.shown

    @property
    def stem(self) -> str:
        """The file's name without its ending; a `.service` unit's name, too."""
        return Path(self.shown).name.split(".")[0] or "imported"

    @property
    def home(self) -> str:
        """The home folder of whoever deploys."""
        return self.environ.get("HOME", str(Path.home()))

    def place(self, line: int) -> str:
        """`compose.yaml:4`; the file alone where no line says it."""
        return f"{self.shown}:{line}" if line else self.shown

    def problem(self, line: int, what: str, fix: str = "") -> ImportProblem:
        """The error for a fault at a line (0: the whole)."""
        text = redacted(unmarked(what + (f"; {fix}" if fix else "")))
        return ImportProblem(f"{self.place(line)}: {text}")

    def path(self, written: str) -> Path:
        """A path of the text as this machine has it."""
        if written.startswith("~/"):
            return Path(self.home) / written[2:]
        return self.folder / written

    def held(self, path: Path) -> str | None:
        """The text of a file, as the script writes it or as it lies there; None where there is none."""
        known = self.written.get(os.path.normpath(path))
        if known is None and path.is_file():
            known = path.read_text("utf-8-sig", "replace")
        return known

    def host(self, written: str) -> str:
        """The host's side of a volume: a relative one is made absolute, `~` and names stay."""
        return os.path.normpath(self.folder / written) if written.startswith(".") else written


def origin_of(path_or_text: str | Path, environ: Mapping[str, str]) -> Origin:
    """The text behind a path, or the text itself where it has spaces or lines. Raises ImportProblem."""
    given = str(path_or_text)
    if isinstance(path_or_text, str) and _is_text(given):
        if "\0" in given or len(given) > MOST:
            what = "it holds a NUL" if "\0" in given else f"it has more than {MOST / 2**20:g} MiB"
            raise ImportProblem(f"the text: {what}; name the file that starts vLLM")
        return Origin(given, "the text", Path.cwd(), environ)
    path = Path(given)
    try:
        text = read_bounded(path)
    except Unreadable as error:
        what = (
            "name a file, or container:NAME" if "cannot" in str(error) else "name the file that starts vLLM"
        )
        hint = "" if ";" in str(error) else f"; {what}"
        raise ImportProblem(f"{given}: {error}{hint}") from error
    return Origin(text, given, path.absolute().parent, environ)


def piped() -> str:
    """The text of standard input, for a file named `-`. Raises ImportProblem when nothing is piped in."""
    fix = "pipe the text in: helm template NAME CHART | …"
    if sys.stdin is None or sys.stdin.isatty():
        raise ImportProblem(f"-: standard input is a terminal; {fix}")
    try:
        text = decoded(_standard_input())
    except (Unreadable, OSError) as error:
        raise ImportProblem(f"-: standard input {error}; {fix}") from error
    if not text.strip():
        raise ImportProblem(f"-: standard input is empty; {fix}")
    return text.rstrip() + "\n"


def _standard_input() -> bytes:
    try:
        descriptor = sys.stdin.fileno()
    except (OSError, ValueError):  # no file behind it
        return sys.stdin.read(MOST).encode()
    return read_descriptor(descriptor)


def _is_text(given: str) -> bool:
    """Whether this is a text rather than the name of a file."""
    if "\0" in given:
        return True
    if not given.strip() or "\n" in given:
        return True
    try:
        return " " in given and not Path(given).is_file()
    except OSError:  # too long for a name
        return True
