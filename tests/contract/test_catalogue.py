"""Every bundled check declares itself completely, and the committed catalogue is today's."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.declare.sources import SOURCES
from pytest_vllm.face.collection import declared
from pytest_vllm.face.options import MARK
from tests.contract.imports import ROOT, modules

if TYPE_CHECKING:
    from pytest_vllm.declare.checks import CheckSpec

LONGEST_FACT = 80

#: A fact says what is; these say what somebody hopes for or does.
WISHES = re.compile(r"\b(should|tests? that|checks? that|ensures?|verif(y|ies))\b", re.IGNORECASE)


def checks() -> list[CheckSpec]:
    """The declarations of all bundled checks, in file order."""
    found = []
    for path in modules("suites"):
        if not path.name.startswith("test_"):
            continue
        module = import_module(".".join(path.with_suffix("").parts))
        for name, function in vars(module).items():
            marks = [mark for mark in getattr(function, "pytestmark", []) if mark.name == MARK]
            if name.startswith("test_"):
                assert len(marks) == 1, f"{path}: {name} is no @check"
                found.append(marks[0].args[0])
    return found


CHECKS = checks()


def test_there_are_checks() -> None:
    """An empty catalogue would make every other test here pass."""
    assert len(CHECKS) >= 80


def test_ids_are_read_without_importing() -> None:
    """`--vllm-check` reads only the files that declare what it asks for: ids are written out in `@check`."""
    assert sorted(id_ for ids in declared().values() for id_ in ids) == sorted(one.id for one in CHECKS)


def test_ids_are_unique() -> None:
    """Waivers and baselines name a check by its id."""
    assert [name for name, count in Counter(spec.id for spec in CHECKS).items() if count > 1] == []


@pytest.mark.parametrize("spec", CHECKS, ids=lambda spec: spec.id)
def test_a_check_names_its_source(spec: CheckSpec) -> None:
    """`spec` is `source:anchor`, the source is known, the anchor is there."""
    source, _, anchor = spec.spec.partition(":")

    assert source in SOURCES, f"unknown source {source!r}; known: {', '.join(SOURCES)}"
    assert anchor


@pytest.mark.parametrize("spec", CHECKS, ids=lambda spec: spec.id)
def test_a_fact_is_worded_as_one(spec: CheckSpec) -> None:
    """A requirement is stated in one short sentence, as what is, not as what is hoped for."""
    assert len(spec.fact) <= LONGEST_FACT
    assert spec.fact.endswith(".")
    assert not WISHES.search(spec.fact)
    assert spec.fact[0].isupper() or not spec.fact[0].isalpha() or spec.fact[0] == "`"


def test_the_committed_catalogue_is_current() -> None:
    """`suites/CATALOGUE.md` is what `pytest-vllm checks --markdown` prints."""
    command = [sys.executable, "-m", "pytest_vllm.cli", "checks", "--markdown"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout

    committed = (ROOT / "suites" / "CATALOGUE.md").read_text("utf-8")
    assert committed == printed, "make it again: pytest-vllm checks --markdown > suites/CATALOGUE.md"
