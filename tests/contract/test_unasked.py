"""A pytest run that does not ask for a server pays nothing for the plugin that is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from pytest_vllm.declare import checks
from pytest_vllm.face import fixtures, options
from pytest_vllm.face.options import FIXTURES

if TYPE_CHECKING:
    from pathlib import Path

MODULES = 15
RUN = """
import json, sys, pytest
status = pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]])
print("MODULES", json.dumps([int(status), sorted(sys.modules)]))
"""


def loaded(folder: Path, *options: str) -> set[str]:
    """The modules of a process that ran the tests of a folder."""
    command = [sys.executable, "-c", RUN, "-p", "no:pytester", *options]
    out = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    status, names = json.loads(out.partition("MODULES ")[2])
    assert status == 0, out
    return set(names)


def test_a_run_that_asks_for_nothing_imports_nothing_of_others(tmp_path: Path) -> None:
    """Fewer than fifteen modules more, none of them somebody else's."""
    (tmp_path / "test_one.py").write_text("def test_one(): pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    more = loaded(tmp_path) - loaded(tmp_path, "-p", "no:vllm")
    foreign = {
        name for name in more if name.partition(".")[0] not in {"pytest_vllm", *sys.stdlib_module_names}
    }

    assert foreign == set()
    assert len(more) < MODULES, sorted(more)


def test_a_folder_of_ones_own_may_be_called_suites(tmp_path: Path) -> None:
    """Only the bundled suites ask for what they need."""
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "test_one.py").write_text("def test_one(): pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    assert "pytest_vllm.face.items" not in loaded(tmp_path, "suites")


def test_checks_that_were_left_out_need_no_server(tmp_path: Path) -> None:
    """Of a folder with checks and plain tests, `-m` runs the plain ones; all of it is refused at once."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_both.py").write_text(
        "import pytest\n\n@pytest.mark.vllm_check(None)\ndef test_check(): pass\n\ndef test_plain(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q"]
    left_out = subprocess.run([*command, "-m", "not vllm_check"], cwd=tmp_path, check=False)
    whole = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert left_out.returncode == 0
    assert whole.returncode == 4
    assert "these checks need a server: pass --vllm-profile=NAME" in whole.stderr


def test_the_options_repeat_the_tiers() -> None:
    """They stand twice, so that options import nothing: `face/options.py` and `declare/checks.py`."""
    assert options.TIERS == checks.TIERS


def test_each_fixture_says_so_where_nobody_asked_for_a_server() -> None:
    """The names in `face/options.py` are those of `face/fixtures.py`."""
    assert {name for name in vars(fixtures) if name.startswith("vllm_")} == set(FIXTURES)
