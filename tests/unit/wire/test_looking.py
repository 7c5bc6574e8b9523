"""Time that counts as looking."""

from __future__ import annotations

from pytest_vllm.wire.looking import Looking


def test_a_stretch_without_a_look_counts_as_one_look() -> None:
    """Of ten seconds in which this process was held up a half is counted."""
    looking = Looking(0.5)

    assert [looking.at(moment) for moment in (5.0, 5.25, 15.25, 15.5)] == [0.0, 0.25, 0.75, 1.0]
