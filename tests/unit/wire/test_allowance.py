"""How much of what a server sends is read and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.wire.allowance import CUTS, LEAST, Allowance
from pytest_vllm.wire.framing import TRAILER_LIMIT, ByChunks, FramingError
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.store import LARGE, RecordingStore

if TYPE_CHECKING:
    from pathlib import Path


def test_one_answer_has_its_own_limit() -> None:
    """It is cut off as soon as it is longer."""
    allowance = Allowance(each=1000, whole=10_000, least=10)

    assert allowance.take(1000, 1000) == ""
    assert "longer than" in allowance.take(1001, 1)


def test_all_answers_share_one_and_short_ones_pass() -> None:
    """What is given back is free again."""
    allowance = Allowance(each=1000, whole=1000, least=10)

    assert allowance.take(900, 900) == ""
    assert "in all" not in allowance.take(10, 10)
    assert "this one was cut" in allowance.take(200, 200)
    allowance.give_back(900)
    assert allowance.take(200, 0) == ""


def test_after_some_no_more_is_wanted() -> None:
    """A server whose answers are all too long is not asked a thousand times."""
    allowance = Allowance(each=10, whole=10_000, least=1)

    for _ in range(CUTS):
        assert not allowance.spent
        allowance.take(11, 11)

    assert "too long" in allowance.spent


def test_trailers_end() -> None:
    """Fields after the last chunk are few."""
    framing = ByChunks()
    framing.feed(b"2\r\n{}\r\n0\r\n")

    line = b"x-t: " + b"y" * 50 + b"\r\n"

    with pytest.raises(FramingError, match="after the last chunk"):
        framing.feed(line * (TRAILER_LIMIT // 50 + 1))


def test_a_store_keeps_large_recordings_on_disk_alone(tmp_path: Path) -> None:
    """They are read again whenever they are asked for, and are the same."""
    store = RecordingStore(tmp_path)
    small = Recording("small", Request("GET", "/"), 200, chunks=((0.1, b"x" * LEAST),))
    large = Recording("large", Request("GET", "/"), 200, chunks=((0.1, b"x" * (LARGE + 1)),))
    store.save(small)
    store.save(large)

    assert store.get("small") is small
    assert store.get("large") is not large
    assert store.get("large") == large
