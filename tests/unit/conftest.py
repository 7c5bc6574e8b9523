"""What unit tests of several folders share."""

from __future__ import annotations

import pytest

from pytest_vllm.run import heldup


@pytest.fixture
def briefly_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a second of being held up does to a real run, 0.3 s do in this test."""
    monkeypatch.setattr(heldup, "GIVEN_UP", 0.3)
