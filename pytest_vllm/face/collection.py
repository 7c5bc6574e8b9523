"""Collects the bundled suites wherever they lie, under the same node ids in wheel, editable and checkout.

Source: pytest's collector API (`pytest_collect_directory`, `pytest_pycollect_makemodule`).
"""

from __future__ import annotations

import difflib
import importlib
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.locate import data_dir, suites_package

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT_ID = "suites"
#: How a suite declares a check: its id is always written out (tests/contract/test_catalogue.py).
_CHECK = re.compile(r'^@check\(\s*"([^"]+)"', re.MULTILINE)


class SuiteDirectory(pytest.Directory):
    """A folder of the bundled suites; the person's python_files and norecursedirs do not apply."""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """The folder's areas and topics, by name."""
        for entry in sorted(self.path.iterdir()):
            if self.ihook.pytest_ignore_collect(collection_path=entry, config=self.config):
                continue
            if entry.is_dir() and (entry / "__init__.py").is_file():
                yield suite_directory(self, entry)
            elif is_topic(entry):
                yield suite_module(self, entry)


class SuiteModule(pytest.Module):
    """A topic of the bundled suites; the person's python_functions do not apply."""

    def funcnamefilter(self, name: str) -> bool:
        """Every `test_` function is a check."""
        return name.startswith("test_")

    def classnamefilter(self, name: str) -> bool:  # noqa: ARG002 - pytest's signature
        """Suites hold no classes."""
        return False


def suite_directory(parent: pytest.Collector, path: Path) -> SuiteDirectory:
    """The collector of a suite folder."""
    made: SuiteDirectory = SuiteDirectory.from_parent(parent, path=path, name=path.name, nodeid=node_id(path))
    return made


def suite_module(parent: pytest.Collector, path: Path) -> SuiteModule:
    """The collector of a suite file."""
    made: SuiteModule = SuiteModule.from_parent(parent, path=path, name=path.name, nodeid=node_id(path))
    return made


def in_suites(path: Path) -> bool:
    """Whether a path lies in the bundled suites."""
    return path.is_relative_to(data_dir("suites"))


def is_topic(path: Path) -> bool:
    """Whether this is a file of checks of the bundled suites."""
    return path.name.startswith("test_") and path.suffix == ".py" and in_suites(path)


def is_of(path: Path, area: str) -> bool:
    """Whether this is the folder of that area of the bundled suites."""
    return path == data_dir("suites") / area


@cache
def declared() -> dict[Path, list[str]]:
    """The ids of the checks of every file of the suites, read from its text: that is ten times as quick."""
    return {
        path: _CHECK.findall(path.read_text("utf-8"))
        for path in sorted(data_dir("suites").glob("*/test_*.py"))
    }


def node_id(path: Path) -> str:
    """`suites/chat/test_envelope.py`, wherever the suites lie."""
    inner = path.relative_to(data_dir("suites")).as_posix()
    return ROOT_ID if inner == "." else f"{ROOT_ID}/{inner}"


def area_of(nodeid: str) -> str:
    """The suite folder of a check: `chat`; for a person's own file, its name without `test_`."""
    parts = nodeid.split("::", maxsplit=1)[0].split("/")
    if parts[0] == ROOT_ID and len(parts) > 2:
        return parts[1]
    return Path(parts[-1]).stem.removeprefix("test_")


def bundled_args(args: Iterable[str], base: Path) -> list[str]:
    """The arguments of a run, `suites/…` resolved."""
    return [_resolve(arg, base) for arg in args]


def names_suites(arg: str, base: Path) -> bool:
    """Whether an argument of the run means the bundled suites or lies in them; an own `suites/` does not."""
    path = arg.partition("::")[0]
    return _means_bundled(path, base) or in_suites((base / path).absolute())


def _resolve(arg: str, base: Path) -> str:
    path, sep, rest = arg.partition("::")
    if not _means_bundled(path, base):
        return arg
    found = data_dir("suites").joinpath(*Path(path).parts[1:])
    if not found.exists():
        raise pytest.UsageError(f"{path}: there is no such suite{_near(path)}")
    return f"{found}{sep}{rest}"


def _near(path: str) -> str:
    suites = data_dir("suites")
    known = [str(one.relative_to(suites)) for one in (*suites.glob("*/"), *suites.glob("*/test_*.py"))]
    near = difflib.get_close_matches("/".join(Path(path).parts[1:]), known, n=1)
    return f"; did you mean {ROOT_ID}/{near[0]}?" if near else "; `pytest-vllm checks` lists them all"


def _means_bundled(path: str, base: Path) -> bool:
    return Path(path).parts[:1] == (ROOT_ID,) and not (base / path).exists()


def exchange_modules() -> list[Any]:
    """Import every `suites/AREA/exchanges.py` and `measurements.py`: then their fixtures are known."""
    root = data_dir("suites")
    package = suites_package()
    if package == ROOT_ID and str(root.parent) not in sys.path:
        sys.path.insert(0, str(root.parent))
    found = sorted(root.glob("*/exchanges.py")) + sorted(root.glob("*/measurements.py"))
    return [importlib.import_module(f"{package}.{path.parent.name}.{path.stem}") for path in found]
