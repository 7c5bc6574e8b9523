"""Every command of every page is one that the programs take: names, options, values, number of arguments."""

from __future__ import annotations

import argparse
import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.cli.command import UsageError
from pytest_vllm.cli.entry import every_command
from pytest_vllm.face.options import add_options
from tests.contract.imports import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md")])
FENCE = re.compile(
    r"^```(?:sh|shell|console|yaml|ini|groovy)\n(.*?)^```$|((?:^ {4}[^\n]*\n)+)", re.DOTALL | re.MULTILINE
)
#: Where a command begins: at the begin of a line, after what joins commands, or in the quotes of a recipe.
START = re.compile(r"(?:^|&&|\||;|run:|'|- |=)\s*(?:\$ )?(?:[\w/.]*bin/)?(pytest|pytest-vllm)(?= |$)")


class Parser(argparse.ArgumentParser):
    """Takes the options that the plugin registers with pytest, and raises what argparse would print."""

    def __init__(self) -> None:
        super().__init__(allow_abbrev=False, add_help=False)
        add_options(self)  # type: ignore[arg-type]

    def getgroup(self, *_: object) -> Parser:
        """The group is this too."""
        return self

    def addoption(self, *names: str, **how: Any) -> None:
        """As argparse takes it."""
        self.add_argument(*names, **how)

    def addini(self, *_: object, **__: object) -> None:
        """Not part of a command line."""

    def error(self, message: str) -> Any:
        raise UsageError(message)


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a page that is one of our two programs, and its words."""
    for block in FENCE.finditer(text):
        for line in (block[1] or block[2]).replace("\\\n", " ").splitlines():
            for found in START.finditer(line.split(" #", maxsplit=1)[0]):
                yield found[1], words(line[found.end() :])


def words(rest: str) -> list[str]:
    """The words of a command up to its end: a pipe, a redirection, another command, a closing quote."""
    rest = rest.split(" #", maxsplit=1)[0]
    open_quote = rest.count("'") % 2 == 1
    lexer = shlex.shlex(
        rest.rpartition("'")[0] if open_quote else rest, posix=True, punctuation_chars="|&;<>"
    )
    lexer.whitespace_split = True
    found = []
    for word in lexer:
        if re.fullmatch(r"[|&;<>]+", word):
            break
        found.append(word)
    return found[:-1] if found and found[-1] in ("2", "1") else found


def refusal(program: str, given: list[str]) -> str:
    """Why the program would not take these words; empty when it does."""
    try:
        if program == "pytest":
            Parser().parse_known_args([word for word in given if word.startswith("--vllm")])
            unknown = Parser().parse_known_args(given)[1]
            return " ".join(word for word in unknown if word.startswith("--vllm"))
        name, *rest = given
        if name in ("--help", "-h"):
            return ""
        every_command()[name].read(rest)
    except UsageError as error:
        return str(error)
    except KeyError:
        return f"no command {given[0]}"
    except SystemExit:  # --help
        return ""
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_a_page_are_taken(page: Any) -> None:
    """`[RUN]` and `…` stand for what a reader fills in."""
    found = [
        (program, [word for word in given if word not in ("…", "...")])
        for program, given in commands(page.read_text("utf-8"))
        if not any(word.startswith("[") for word in given)
    ]
    refused = [
        f"{program} {shlex.join(given)}: {why}"
        for program, given in found
        if (why := refusal(program, given))
    ]

    assert refused == []


def test_commands_are_found() -> None:
    """A pattern that finds none would pass every page."""
    counts = {page.name: len(list(commands(page.read_text("utf-8")))) for page in PAGES}

    assert {
        name for name in ("README.md", "ci.md", "tutorial.md", "preflight.md") if counts[name] < 5
    } == set()
    assert sum(counts.values()) > 60


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("pytest --vllm-profile=chat --vllm-tier=soak", False),
        ("pytest --vllm-profile=chat --vllm-tier=soaked", True),
        ("pytest --vllm-profil=chat", True),
        ("pytest-vllm preflight a b", False),
        ("pytest-vllm preflite a", True),
        ("pytest-vllm preflight a --jsn", True),
        ("cat x | pytest-vllm import - --out y", False),
        ("    sh 'v/bin/pytest --vllm-tier=often'", True),
        ("      - run: .venv/bin/pytest --vllm-check", True),
        ("pytest --vllm-profile=chat | tail -n 3   # --vllm-no", False),
    ],
)
def test_what_a_page_may_not_say(line: str, refused: bool) -> None:
    """Slips of every kind are refused."""
    ((program, given),) = commands(f"```sh\n{line}\n```\n")

    assert bool(refusal(program, given)) is refused
