"""One version type: what counts of a version, and that everybody who compares agrees."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_vllm.decide.waivers import in_range
from pytest_vllm.facts import nearest, versions
from pytest_vllm.facts.version import Version, span, version_of
from pytest_vllm.preflight.deployment import Deployment
from pytest_vllm.profile.model import Profile, ServerPart, Waiver
from pytest_vllm.sim.versions import Version as Simulated
from pytest_vllm.wire.server import Server

NUMBERS = st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 4))
BUILDS = (
    "",
    "rc1",
    ".dev17+g1a2b3c",
    "rc2.dev5+g0ff1ce.d20261101",
    "+cu130",
    "+cpu",
    "+nv25.09",
    "+rocm700",
    "-foo",
    "+xyz.1",
    ".dev0+gabc.rocm631",
)


def text_of(numbers: tuple[int, ...]) -> str:
    """As a release is written."""
    return ".".join(map(str, numbers))


@given(NUMBERS, NUMBERS, st.sampled_from(BUILDS), st.sampled_from(BUILDS))
def test_builds_never_change_the_order_of_releases(
    one: tuple[int, ...], other: tuple[int, ...], build: str, other_build: str
) -> None:
    mine, theirs = Version(text_of(one) + build), Version(f"v{text_of(other)}{other_build}")

    assert (mine < theirs, mine == theirs, mine > theirs) == (one < other, one == other, one > other)
    assert Version(str(mine)) == mine


@given(NUMBERS, NUMBERS, st.sampled_from(BUILDS))
def test_everybody_agrees_on_what_begins_at_a_version(
    running: tuple[int, ...], first: tuple[int, ...], build: str
) -> None:
    told, floor = text_of(running) + build, text_of(first)
    begun = running >= first

    assert Server("http://x", "m", version=told).at_least(floor) is begun
    assert in_range(told, f">={floor}") is begun
    assert in_range(told, f"<{floor}") is not begun
    assert deployment(told).within(f">={floor}") is begun
    assert deployment(told).at_least(floor) is begun


@given(st.sampled_from(versions()), st.sampled_from(versions()), st.sampled_from(BUILDS))
def test_the_simulator_agrees_on_releases_that_exist(running: str, first: str, build: str) -> None:
    assert (Simulated(running + build) >= first) is (Version(running + build) >= Version(first))
    assert nearest(running + build) == running


def deployment(version: str) -> Deployment:
    """What preflight judges, of a version."""
    server = ServerPart(launcher="process", model="a/b", version=version)
    return Deployment(Profile(name="x", server=server))


@pytest.mark.parametrize("text", ["", "latest", "nightly", "dev", "1a2b3c4d", "main", "v", "gb10"])
def test_a_word_is_no_version(text: str) -> None:
    assert version_of(text) is None
    assert nearest(text) == versions()[-1]
    assert Server("http://x", "m", version=text).at_least("99.0"), "an unknown version counts as the newest"
    assert not in_range(text, ">=0.1"), "a waiver names versions, so an unknown one is in none"


@pytest.mark.parametrize(
    ("older", "newer"),
    [("0.8.5", "0.8.5.post1"), ("0.8.5.post1", "0.8.6"), ("0.9.2", "0.10.0"), ("0.33.0rc1", "0.33.1.dev3")],
)
def test_releases_sort_by_number(older: str, newer: str) -> None:
    assert Version(older) < Version(newer)


def test_a_waiver_and_a_check_begin_together_at_a_candidate() -> None:
    waiver = Waiver(
        check="chat.id", reason="known", issue="o/r#1", versions=">=0.33", until=dt.date(2027, 1, 1)
    )

    assert in_range("0.33.0rc1", waiver.versions)
    assert Server("http://x", "m", version="0.33.0rc1").at_least("0.33")


@pytest.mark.parametrize("text", ["0.27", ">=", "newer", ">=latest", "=>0.27"])
def test_a_text_that_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a range of versions"):
        span(text)
