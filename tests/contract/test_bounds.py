"""Each dependency has a lower bound, and CI runs with exactly that version."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.contract.imports import ROOT
from tools.bounds import lowest

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_ci_installs_the_bounds_of_the_project() -> None:
    """Every dependency is in the file, pinned to the lowest version that its requirement takes."""
    command = [sys.executable, "-m", "tools.bounds"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    pins = {one.name: next(iter(one.specifier)) for one in map(Requirement, printed.splitlines())}
    required = {one.name: one.specifier for one in map(Requirement, PROJECT["dependencies"])}

    assert set(pins) == set(required)
    for name, pin in pins.items():
        assert pin.operator == "=="
        assert [(one.operator, one.version) for one in required[name]] == [(">=", pin.version)]


def test_ci_runs_the_part() -> None:
    """Else the file would be made and not used."""
    assert "part_bounds()" in (ROOT / ".ci" / "run").read_text("utf-8")
    assert ".ci/run bounds" in (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")


@pytest.mark.parametrize("requirement", ["httpx", "httpx<1", "httpx>=0.27,<1", "httpx==0.27"])
def test_a_dependency_without_a_lower_bound_is_refused(requirement: str) -> None:
    """What CI cannot install at its lowest is not promised."""
    with pytest.raises(ValueError, match="NAME>=VERSION"):
        lowest(requirement)
