"""Compares whole texts with files; `PYTEST_VLLM_GOLDEN_UPDATE=1 pytest tests/golden` rewrites them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
UPDATE = "PYTEST_VLLM_GOLDEN_UPDATE"


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """`golden(name, text)`: the text is what `tests/golden/NAME` holds."""

    def compare(name: str, text: str) -> None:
        path = HERE / name
        if os.environ.get(UPDATE):
            path.write_text(text, "utf-8")
        assert path.is_file(), f"{name} does not exist: run with {UPDATE}=1 to write it, then read it"
        assert text == path.read_text("utf-8"), (
            f"{name} differs: read the difference, then run with {UPDATE}=1"
        )

    return compare
