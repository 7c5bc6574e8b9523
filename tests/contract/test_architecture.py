"""ARCHITECTURE.md shows what the layering test holds: one table, made from `layers.py`."""

from __future__ import annotations

from tests.contract.imports import ROOT
from tests.contract.layers import LAYERS

PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- layers: begin -->", "<!-- layers: end -->"


def table() -> str:
    """The folders of the package, what each is, and what it may import."""
    rows = ["| folder | what it is | may import |", "| --- | --- | --- |"]
    rows += [
        f"| `{name}` | {what} | {', '.join(f'`{other}`' for other in allowed) or 'nothing of ours'} |"
        for name, (what, allowed) in LAYERS.items()
    ]
    return "\n".join(rows)


def test_the_table_is_that_of_the_layers() -> None:
    """The page is edited by hand around the table; the table comes from `tests/contract/layers.py`."""
    text = PAGE.read_text("utf-8")
    shown = text.partition(BEGIN)[2].partition(END)[0].strip()

    assert shown == table(), f"paste this between the marks of {PAGE.name}:\n{table()}"


def test_every_path_of_the_page_exists() -> None:
    """A picture of a house that was rebuilt misleads."""
    words = {word.strip("`,.:;()") for word in PAGE.read_text("utf-8").split()}
    paths = {
        word
        for word in words
        if word.startswith(("pytest_vllm/", "suites/", "tests/", "tools/", "fixtures/"))
    }

    assert {path for path in paths if "*" not in path and not (ROOT / path).exists()} == set()
