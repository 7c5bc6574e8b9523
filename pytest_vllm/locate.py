"""Which pytest-vllm this is, and where its suites and fixtures lie: in a wheel inside it, else beside it."""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path

DISTRIBUTION = "pytest-vllm"
#: What a copy says that was never installed, such as a folder on PYTHONPATH.
NOT_INSTALLED = "0+not.installed"
PACKAGE = Path(__file__).parent
#: Files that lie in the root of a project.
ROOTS = (".git", "pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini")


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
    """A file of cases for `cases`: a bundled one by its name alone, a project's own by its file name.

    Args:
        name: `schemas`: the bundled `fixtures/cases/schemas.json`. With an ending, `questions.json` or
            `data/questions.jsonl`: a file beside the one that calls, or in a folder above it, up to the root.

    Raises FileNotFoundError with where an own file was looked for.
    """
    if not Path(name).suffix:
        return data_dir("fixtures") / "cases" / f"{name}.json"
    frame = inspect.currentframe()
    caller = frame.f_back.f_code.co_filename if frame and frame.f_back else ""
    return file_beside(name, Path(caller))


def file_beside(name: str, source: Path) -> Path:
    """The file beside the source or in a folder above it, up to the root of the project.

    Raises FileNotFoundError with where it was looked for.
    """
    folders = [source.parent]
    while not any((folders[-1] / root).exists() for root in ROOTS) and folders[-1] != folders[-1].parent:
        folders.append(folders[-1].parent)
    path = next((folder / name for folder in folders if (folder / name).is_file()), None)
    if path is None:
        looked = ", ".join(map(str, folders))
        raise FileNotFoundError(f"no {name} beside {source.name} nor above it, in {looked}")
    return path
