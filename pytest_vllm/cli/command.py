"""What a command is: its name, what it takes, how it is read, and the one line that a wrong word gets."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pytest_vllm.profile.words import unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PROGRAM = "pytest-vllm"


class UsageError(Exception):
    """What the person asked for cannot be; one line, exit status 4."""


@dataclass(frozen=True)
class Parameter:
    """An option or argument, as `argparse.ArgumentParser.add_argument` takes it."""

    names: tuple[str, ...]
    how: dict[str, Any]

    @property
    def positional(self) -> bool:
        """Whether its place says what it is."""
        return not self.names[0].startswith("-")


@dataclass(frozen=True)
class Command:
    """One command.

    Args:
        name: as it is typed.
        run: what it does with the values it was given; returns an exit status, None for 0.
        parameters: what it takes.
        passes_on: whether what follows its arguments is for another program, and left unread in `rest`.
    """

    name: str
    run: Callable[[argparse.Namespace], int | None]
    parameters: tuple[Parameter, ...]
    passes_on: bool = False

    @property
    def text(self) -> str:
        """What it does: the docstring of its function."""
        return re.sub(r"\n +", "\n", self.run.__doc__ or "").strip()

    @property
    def summary(self) -> str:
        """The first line of that."""
        return self.text.partition("\n")[0]

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """The values of a command line. Raises UsageError on a wrong one, SystemExit once help is printed."""
        parser = _Parser(self)
        if self.passes_on:
            own = sum(one.positional for one in self.parameters)
            given = parser.parse_args(list(words[:own]))
            given.rest = list(words[own:])
            return given
        given, left = parser.parse_known_args(list(words))
        if left:
            raise UsageError(f"{_unread(left, parser.options)} (see {parser.prog} --help)")
        return given


#: Every command whose file was imported, by name.
COMMANDS: dict[str, Command] = {}


def command(
    name: str, *parameters: Parameter, passes_on: bool = False
) -> Callable[[Callable[[argparse.Namespace], int | None]], Callable[[argparse.Namespace], int | None]]:
    """Make a function a command. Its docstring is its help; the first line stands in the list of commands."""

    def register(
        run: Callable[[argparse.Namespace], int | None],
    ) -> Callable[[argparse.Namespace], int | None]:
        COMMANDS[name] = Command(name, run, parameters, passes_on)
        return run

    return register


def argument(name: str, text: str, **how: Any) -> Parameter:
    """A value that is known by its place; `name` as help shows it."""
    return Parameter((name.lower(),), {"metavar": name, "help": text, **how})


def option(name: str, metavar: str, text: str, **how: Any) -> Parameter:
    """An option with a value."""
    return Parameter((name,), {"metavar": metavar, "help": text, **how})


def flag(name: str, text: str) -> Parameter:
    """An option without a value."""
    return Parameter((name,), {"action": "store_true", "help": text})


JSON = flag("--json", "print JSON")
ROOTDIR = option(
    "--rootdir",
    "DIR",
    "the project whose profiles count (default: found from the current folder upwards)",
    type=Path,
)


def project_root(given: Path | None) -> Path:
    """The project's root: the nearest folder upwards that holds profiles or a pyproject.toml."""
    if given is not None:
        if not given.is_dir():
            raise UsageError(f"no folder {given}")
        return given
    here = Path.cwd()
    marks = ("vllm-profiles", "pyproject.toml", "pytest.ini", ".git")
    return next(
        (folder for folder in (here, *here.parents) if any((folder / m).exists() for m in marks)), here
    )


class _Parser(argparse.ArgumentParser):
    """The standard library's, with its help in our words and its errors as UsageError."""

    def __init__(self, of: Command) -> None:
        super().__init__(
            prog=f"{PROGRAM} {of.name}",
            description=of.text,
            allow_abbrev=False,
            add_help=not of.passes_on or any(one.positional for one in of.parameters),
            formatter_class=_Help,
        )
        for one in of.parameters:
            self.add_argument(*one.names, **one.how)
        if of.passes_on:
            self.usage = " ".join([self.prog, *(one.how["metavar"] for one in of.parameters), "..."])

    @property
    def options(self) -> list[str]:
        """Every option's long name."""
        return sorted(name for name in self._option_string_actions if name.startswith("--"))

    def error(self, message: str) -> NoReturn:
        """Raise what argparse found as UsageError."""
        raise UsageError(f"{_reworded(message)} (see {self.prog} --help)")


class _Help(argparse.RawDescriptionHelpFormatter):
    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, "Usage: " if prefix is None else prefix)


def _unread(words: Sequence[str], options: Sequence[str]) -> str:
    first = words[0]
    if first.startswith("-") and first != "-":
        return unknown("option", first.partition("=")[0], options)
    return f"unexpected argument {first!r}"


def _reworded(message: str) -> str:
    """What argparse says, in the form of our other messages."""
    for pattern, ours in (
        (r"the following arguments are required: (.+)", r"missing argument \1"),
        (r"argument (\S+): expected one argument", r"\1 needs a value"),
        (r"argument (\S+): ignored explicit argument (.+)", r"\1 takes no value, and was given \2"),
    ):
        if found := re.fullmatch(pattern, message):
            return found.expand(ours)
    return message
