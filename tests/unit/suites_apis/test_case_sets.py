"""The case sets of these suites are well made, and their checks have known sources."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.declare.sources import url_of
from pytest_vllm.face.options import MARK
from pytest_vllm.locate import case_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.declare.checks import CheckSpec

AREAS = ("responses", "messages", "embeddings", "lora")
FILES = (
    "responses-refusals",
    "responses-histories",
    "responses-call-histories",
    "messages-refusals",
    "messages-agents",
    "embeddings-refusals",
)
SUITES = Path(__file__).parents[3] / "suites"


def rows(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(case_file(name).read_text("utf-8"))
    return found


def checks(area: str) -> Iterator[CheckSpec]:
    for path in sorted((SUITES / area).glob("test_*.py")):
        module = import_module(f"suites.{area}.{path.stem}")
        for value in vars(module).values():
            for mark in getattr(value, "pytestmark", ()):
                if mark.name == MARK:
                    yield mark.args[0]


@pytest.mark.parametrize("name", FILES)
def test_ids_are_unique(name: str) -> None:
    ids = [row["id"] for row in rows(name)]

    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith("refusals")])
def test_refusals_are_the_clients_fault(name: str) -> None:
    assert {s for row in rows(name) for s in row["status"]} <= {400, 404, 422}


@pytest.mark.parametrize("area", AREAS)
def test_check_ids_begin_with_their_area(area: str) -> None:
    assert [spec.id for spec in checks(area) if not spec.id.startswith(f"{area}.")] == []


@pytest.mark.parametrize("area", AREAS)
def test_check_ids_are_unique(area: str) -> None:
    ids = [spec.id for spec in checks(area)]

    assert len(ids) == len(set(ids)) > 15


@pytest.mark.parametrize("area", AREAS)
def test_sources_are_known_and_facts_are_short(area: str) -> None:
    for spec in checks(area):
        assert url_of(spec.spec)
        assert len(spec.fact) <= 80, spec.fact
