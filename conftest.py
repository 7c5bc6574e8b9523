"""Of the checkout only, never shipped. `pytest_plugins` here would break editable installs elsewhere."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

TESTS = Path(__file__).parent / "tests"
#: Folders and files whose tests run whole gates in other processes, or start and kill servers: seconds each.
GATES = (
    "plugin", "reap", "agree", "defects/test_restart.py", "contract/test_launchers.py",
    "contract/test_malformed.py", "contract/test_reach.py", "contract/test_restarts.py",
)  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the checkout run without pytest-asyncio, whose settings pyproject.toml has."""
    if find_spec("pytest_asyncio") is None:
        parser.addini("asyncio_mode", "set in pyproject.toml for pytest-asyncio")
        parser.addini("asyncio_default_fixture_loop_scope", "the same")


def pytest_configure(config: pytest.Config) -> None:
    """Without a path only quick tests run: `pytest tests` runs all of them, `pytest -m gates` the others."""
    asked = config.option.markexpr
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS and "gates" not in asked:
        config.option.markexpr = f"({asked}) and not gates" if asked else "not gates"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that run whole gates by where they lie, before pytest selects."""
    places = tuple(TESTS / place for place in GATES)
    for item in items:
        if any(item.path.is_relative_to(place) for place in places):
            item.add_marker("gates")
