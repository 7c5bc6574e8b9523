"""A real browser: all of this folder is asked for by `-m browser`, as `.ci/run browser` does."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.chromium import Chromium

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
#: Names the file axe.min.js of axe-core, which finds what people with a screen reader or keys stumble over.
AXE = "PYTEST_VLLM_AXE"
#: A folder that keeps the pictures, for people to look at.
PICTURES = "PYTEST_VLLM_PICTURES"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each test of this folder needs the browser."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """The browser, once for all tests."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if found is None:
        pytest.fail(f"no browser: install one of {', '.join(PROGRAMS)}")
    with Chromium(found) as browser:
        yield browser


@pytest.fixture(scope="session")
def axe() -> str:
    """The script that looks for barriers."""
    if AXE not in os.environ:
        pytest.fail(f"{AXE} does not name axe.min.js: `npm pack axe-core`, unpack it")
    return Path(os.environ[AXE]).read_text("utf-8")


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures are kept."""
    folder = Path(os.environ.get(PICTURES) or tmp_path_factory.mktemp("pictures"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
