"""`pytest-vllm preflight`: what it prints, writes and returns."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.cli import main
from pytest_vllm.preflight.render import catalogue
from pytest_vllm.preflight.rule import RULES
from tests.contract.imports import ROOT

if TYPE_CHECKING:
    from pathlib import Path

BAD = """\
extends = "h100-fp8"

[server.args]
disable-log-requests = true  # an old habit
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one profile, which is the current folder."""
    folder = tmp_path / "vllm-profiles"
    folder.mkdir()
    (folder / "bad.toml").write_text(BAD, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_errors_exit_with_1(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And the last line counts."""
    assert main(["preflight", "bad"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("bad: 1 error")


def test_a_good_profile_exits_with_0(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Notes are none."""
    assert main(["preflight", "h100-fp8"]) == 0
    assert "error" not in capsys.readouterr().out


def test_several_profiles_are_checked_at_once(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each in its turn; the worst is the exit status, and one that cannot be read hides no other."""
    assert main(["preflight", "h100-fp8", "bad"]) == 1
    assert main(["preflight", "nothing-so-called", "bad", "h100-fp8"]) == 4

    said = capsys.readouterr()
    last = [line.partition(":")[0] for line in said.out.splitlines() if "not judged" in line]
    assert last == ["h100-fp8", "bad", "bad", "h100-fp8"]
    assert "nothing-so-called" in said.err


@pytest.mark.parametrize("option", ["--json", "--sarif=x", "--fix=x"])
def test_one_file_is_of_one_profile(option: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What would be overwritten, or be two documents, is refused."""
    assert main(["preflight", "bad", "h100-fp8", option]) == 4
    assert "takes one profile, and 2 are named" in capsys.readouterr().err
    assert not (project / "x").exists()


def test_fixing_in_place(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The profile's own file; a second look finds no error."""
    file = project / "vllm-profiles" / "bad.toml"

    assert main(["preflight", "bad", "--fix", str(file)]) == 1
    assert "remove disable-log-requests" in capsys.readouterr().out
    assert "disable-log-requests" not in file.read_text("utf-8")
    assert main(["preflight", "bad"]) == 0


def test_fixing_a_built_in_profile_makes_a_new_one(project: Path) -> None:
    """Which has the comments of the first."""
    file = project / "vllm-profiles" / "mine.toml"
    main(["preflight", "rtxpro6000-fp8", "--fix", str(file)])

    assert "trust-remote-code" not in tomllib.loads(file.read_text("utf-8"))["server"]["args"]
    assert "# One RTX PRO 6000 Blackwell" in file.read_text("utf-8")


def test_json_and_sarif(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both name the rule and the line."""
    main(["preflight", "bad", "--json", "--sarif", "out/log.sarif"])
    answer = json.loads(capsys.readouterr().out)
    rows = answer["findings"]
    log = json.loads((project / "out" / "log.sarif").read_text("utf-8"))

    assert (rows[0]["rule"], rows[0]["line"]) == ("flags.removed", 4)
    assert {one["rule"] for one in answer["rules"]} == set(RULES)
    assert {one["said"] for one in answer["rules"]} <= {"pass", "finding", "not judged"}
    assert log["runs"][0]["results"][0]["ruleId"] == "flags.removed"


def test_no_name_is_a_question(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the next step."""
    assert main(["preflight"]) == 4
    assert "pytest-vllm profiles" in capsys.readouterr().err


def test_the_page_lists_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    """`pytest-vllm preflight --rules` makes its table."""
    main(["preflight", "--rules"])

    assert capsys.readouterr().out.strip() == catalogue()
    assert catalogue() in (ROOT / "docs" / "preflight.md").read_text("utf-8")
