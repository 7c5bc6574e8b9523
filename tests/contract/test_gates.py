"""Which tests a bare `pytest` leaves for `pytest -m gates`, and that nothing is lost between."""

from __future__ import annotations

import subprocess
import sys

import pytest

from conftest import GATES, TESTS


def selected(*options: str) -> set[str]:
    """Node ids that a command would run, of two folders."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "-q", *options]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=True)
    return {line for line in done.stdout.splitlines() if "::" in line}


@pytest.mark.parametrize("place", GATES)
def test_each_place_is_there(place: str) -> None:
    assert (TESTS / place).exists()


def test_a_path_or_the_marker_runs_them() -> None:
    bare = selected("-o", "testpaths=tests/agree tests/golden")
    marked = selected("-o", "testpaths=tests/agree tests/golden", "-m", "gates")
    named = selected("tests/agree", "tests/golden")

    assert bare
    assert marked
    assert not bare & marked
    assert bare | marked == named
