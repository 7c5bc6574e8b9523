"""Which pytest-vllm this is, and where its suites and fixtures lie: in a wheel inside it, else beside it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

DISTRIBUTION = "pytest-vllm"
#: What a copy says that was never installed, such as a folder on PYTHONPATH.
NOT_INSTALLED = "0+not.installed"
PACKAGE = Path(__file__).parent


@cache
def own_version() -> str:
    """The version that the build made of the newest tag: of the installed package, as its metadata has it."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - 25 ms, and few need it

    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return NOT_INSTALLED


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
