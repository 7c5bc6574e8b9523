"""Of the checkout only, never shipped. `pytest_plugins` here would break editable installs elsewhere."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the checkout run without pytest-asyncio, whose settings pyproject.toml has."""
    if find_spec("pytest_asyncio") is None:
        parser.addini("asyncio_mode", "set in pyproject.toml for pytest-asyncio")
        parser.addini("asyncio_default_fixture_loop_scope", "the same")
