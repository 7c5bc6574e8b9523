"""Memory as computed, beside what vLLM logged of real boots."""

from __future__ import annotations

import pytest

from pytest_vllm.locate import data_dir
from tests.unit.profile.memory.pairs import Pair, pairs, table

PAIRS = pairs()
ROOFLINE = data_dir("fixtures").parent / "docs" / "roofline.md"


@pytest.mark.parametrize("pair", PAIRS, ids=lambda one: f"{one.model}-{one.version}")
def test_as_logged(pair: Pair) -> None:
    """Every figure of the log, within the row's own tolerance."""
    computed = pair.computed()

    assert computed, "the row measures nothing that is computed"
    for name, ours in computed.items():
        assert ours == pytest.approx(pair.measured[name], rel=pair.tolerance), name


def test_there_are_enough_and_of_every_kind() -> None:
    """Twenty at least, and each kind of cache that is computed is among them."""
    kinds = {one.kind for pair in PAIRS for one in pair.figures().cache_layers}

    assert len(PAIRS) >= 20
    assert {"full", "mla", "state", "window"} <= kinds


def test_a_wide_tolerance_says_why() -> None:
    """More than two in a hundred is explained."""
    assert all(pair.why for pair in PAIRS if pair.tolerance > 0.02)


def test_the_table_is_current() -> None:
    """docs/roofline.md shows these figures: python -m tests.unit.profile.memory.pairs."""
    assert "\n".join(table()) in ROOFLINE.read_text("utf-8")
