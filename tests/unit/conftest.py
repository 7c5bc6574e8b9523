"""What unit tests of several folders share."""

from __future__ import annotations

import pytest
from hypothesis import settings

from pytest_vllm.run import heldup

#: A machine with other work is slow, and that is no fault of what is tested.
settings.register_profile("machines", deadline=None)
settings.load_profile("machines")


@pytest.fixture
def briefly_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a second of being held up does to a real run, 0.3 s do in this test."""
    monkeypatch.setattr(heldup, "GIVEN_UP", 0.3)
