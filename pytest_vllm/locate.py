"""Which pytest-vllm this is, and where its suites and fixtures lie: in a wheel inside it, else beside it."""

from __future__ import annotations

from pathlib import Path

VERSION = "0.1.0"
PACKAGE = Path(__file__).parent


def data_dir(name: str) -> Path:
    """The folder `suites` or `fixtures`. Raises FileNotFoundError naming the broken installation."""
    for folder in (PACKAGE / name, PACKAGE.parent / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"pytest-vllm is installed at {PACKAGE} without its {name}: install it again")


def suites_package() -> str:
    """The import name of the bundled suites."""
    return "pytest_vllm.suites" if (PACKAGE / "suites").is_dir() else "suites"


def case_file(name: str) -> Path:
    """A bundled case set: `fixtures/cases/NAME.json`."""
    return data_dir("fixtures") / "cases" / f"{name}.json"
