"""Generated files: every part of one is in the profile, in a note, or in the refusal."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_vllm.profile.importers import ImportProblem, imported
from pytest_vllm.profile.importers.envfile import dotenv
from pytest_vllm.profile.importers.ledger import Ledger, Piece
from pytest_vllm.profile.write import to_toml
from tests.unit.importers.parts import KEYS, POD_KEYS, STATEMENTS, UNIT_KEYS, VALUES

if TYPE_CHECKING:
    from pathlib import Path

#: `ACCOUNTS=10000` asks for as many files of each kind as a night allows.
FILES = settings(
    max_examples=int(os.environ.get("ACCOUNTS", "60")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
ENVIRON = {"HOME": "/home/me"}


def visible(file: Path, kind: str) -> tuple[str, set[int]]:
    """All that a person is shown of an import, and the lines that it names."""
    try:
        found = imported(file, kind=kind, environ=ENVIRON)
        text = "\n".join([to_toml(found.profile), *found.notes])
    except ImportProblem as problem:
        return str(problem), set(range(10_000))
    named = {int(line) for line in re.findall(rf"{re.escape(str(file))}:(\d+):", text)}
    for first, rest in re.findall(r"\(lines? (\d+)((?:, \d+)*| to \d+)\)", text):
        numbers = [int(first), *map(int, re.findall(r"\d+", rest))]
        named |= set(range(numbers[0], numbers[-1] + 1)) if "to" in rest else set(numbers)
    return text, named


SERVER = "vllm serve org/{} --max-model-len 4096"


@FILES
@given(
    before=st.lists(st.sampled_from(STATEMENTS), max_size=8),
    after=st.lists(st.sampled_from(STATEMENTS), max_size=3),
)
def test_a_script(before: list[str], after: list[str], tmp_path: Path) -> None:
    """Every statement before and behind the server's own."""
    lines, marks = ["#!/bin/bash"], []
    for place, statement in enumerate([*before, SERVER, *after]):
        mark = f"mark{place}z"
        marks.append((mark, len(lines) + 1))
        lines += statement.format(mark).split("\n")
    file = tmp_path / "a.sh"
    file.write_text("\n".join(lines) + "\n")
    text, named = visible(file, "shell")

    assert [lines[line - 1] for mark, line in marks if mark not in text and line not in named] == []


@FILES
@given(
    pairs=st.lists(
        st.tuples(st.sampled_from(KEYS), st.sampled_from(VALUES)), unique_by=lambda pair: pair[0], max_size=8
    )
)
def test_a_compose_service(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    """Every key, whatever stands behind it."""
    lines = ["services:", "  llm:", "    command: --model org/a"]
    lines += [] if any(key == "image" for key, _ in pairs) else ["    image: vllm/vllm-openai:v0.32.0"]
    first = len(lines) + 1
    lines += [f"    {key}: {value.format(f'mark{place}z')}" for place, (key, value) in enumerate(pairs)]
    file = tmp_path / "compose.yaml"
    file.write_text("\n".join(lines) + "\n")
    text, named = visible(file, "compose")

    lost = [
        place for place in range(len(pairs)) if f"mark{place}z" not in text and first + place not in named
    ]
    assert [lines[first + place - 1] for place in lost] == []


@FILES
@given(keys=st.lists(st.sampled_from(UNIT_KEYS), max_size=6))
def test_a_unit(keys: list[str], tmp_path: Path) -> None:
    """Every key of a service."""
    check_unit("Service", keys, ["ExecStart=/usr/bin/vllm serve org/a"], tmp_path)


@FILES
@given(keys=st.lists(st.sampled_from(POD_KEYS), max_size=6))
def test_a_quadlet(keys: list[str], tmp_path: Path) -> None:
    """Every key of a container."""
    check_unit("Container", keys, ["Image=vllm/vllm-openai:v0.32.0", "Exec=--model org/a"], tmp_path)


def check_unit(section: str, keys: list[str], own: list[str], folder: Path) -> None:
    """Every key with a value of its own."""
    values = {"Environment": "{}=1", "EnvironmentFile": "-/none/{}", "Volume": "/{}:/x"}
    marked = [f"{key}={values.get(key, '{}').format(f'mark{place}z')}" for place, key in enumerate(keys)]
    lines = [f"[{section}]", *own, *marked]
    file = folder / "a.service"
    file.write_text("\n".join(lines) + "\n")
    text, named = visible(file, "systemd")

    lost = [place for place in range(len(keys)) if f"mark{place}z" not in text]
    assert [marked[place] for place in lost if 2 + len(own) + place not in named] == []


@FILES
@given(
    st.lists(
        st.tuples(st.from_regex(r"[A-Z][A-Z0-9_]{0,9}", fullmatch=True), st.text(max_size=20)), max_size=6
    )
)
def test_an_env_file_of_quoted_values(pairs: list[tuple[str, str]]) -> None:
    """What docker compose would have quoted comes back to the letter."""
    kept = [
        (name, value)
        for name, value in pairs
        if not re.search(r"['\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", value)
    ]
    text = "".join(f"{name}='{value}'\n" for name, value in kept)

    assert [(name, (value or "").replace("\ue000", "$")) for name, value, _ in dotenv(text)] == kept


def test_blanks_at_the_end_of_a_line_between_quotes() -> None:
    """They are part of the value; behind one that is not quoted they are not."""
    assert [value for _, value, _ in dotenv("A='x \ny' \nB=z \n")] == ["x \ny", "z"]


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        ("A=", ("A", "")),
        ("A", ("A", None)),
        ("export A=1", ("A", "1")),
        ('A="x # y" # z', ("A", "x # y")),
        ("A=x # y", ("A", "x")),
        ("A=x#y", ("A", "x#y")),
        ("A='x", ("A", "'x")),
        ('A="a\\nb"', ("A", "a\nb")),
        ("A: 1", ("A", "1")),
        ("= 1", ("", "= 1")),
    ],
)
def test_an_entry_of_an_env_file(line: str, entry: tuple[str, str | None]) -> None:
    """As docker compose reads it; what is not an entry says so."""
    assert [(name, value) for name, value, _ in dotenv(f"# c\n\n{line}\n")] == [entry]


def test_what_nobody_takes_is_left() -> None:
    """The account itself: a reader that forgets a piece does not hide it."""
    ledger = Ledger([Piece("a", 1, "a"), Piece("b", 2, "b")])
    ledger.take("a")

    assert [piece.shown for piece in ledger.left()] == ["b"]
