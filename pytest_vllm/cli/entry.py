"""Runs one command: finds it, reads its words, and says on one line what cannot be."""

from __future__ import annotations

import os
import pkgutil
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from pytest_vllm.cli import commands
from pytest_vllm.cli.command import COMMANDS, PROGRAM, UsageError
from pytest_vllm.profile.words import unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm.cli.command import Command

USAGE = 4
HELP = ("-h", "--help")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Exit status 0, 1 when it failed, 4 when it was asked for something that cannot be."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        status = _run(words)
        if sys.stdout is not None:  # None where the shell closed it
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        text = _usage_text(error)
        if text is None:
            raise
        sys.stderr.write(f"{PROGRAM}: {text}\n")
        return USAGE
    return status


def every_command() -> Mapping[str, Command]:
    """All commands by name, in order: those of every file in `commands/`."""
    for module in pkgutil.iter_modules(commands.__path__):
        import_module(f"{commands.__name__}.{module.name}")
    return dict(sorted(COMMANDS.items()))


def overview() -> str:
    """The help of the program: every command on a line."""
    known = every_command()
    width = max(map(len, known))
    return "\n".join(
        [
            f"Usage: {PROGRAM} [OPTIONS] COMMAND [ARGS]...",
            "",
            "Inspect profiles, checks and simulator defects; clean up after interrupted runs.",
            f"The gate itself is pytest: pytest --vllm-profile=NAME. More: {PROGRAM} COMMAND --help",
            "",
            "Options:",
            "  -h, --help  Print this and exit.",
            "",
            "Commands:",
            *(f"  {name:{width}}  {one.summary}" for name, one in known.items()),
        ]
    )


def _run(words: Sequence[str]) -> int:
    if not words or words[0] in HELP:
        print(overview())
        return 0
    known = every_command()
    name, *rest = words
    if name not in known:
        what, names = ("option", ["--help"]) if name.startswith("-") else ("command", list(known))
        raise UsageError(unknown(what, name, names))
    try:
        given = known[name].read(rest)
    except SystemExit:  # argparse has printed help
        return 0
    return known[name].run(given) or 0


def _usage_text(error: Exception) -> str | None:
    """One line for what the person got wrong; None for what we did."""
    if isinstance(error, UsageError):
        return str(error)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    from pytest_vllm.profile.errors import ProfileError  # noqa: PLC0415 - help shall not pay for pydantic

    return str(error) if isinstance(error, ProfileError) else None
