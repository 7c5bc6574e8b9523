"""A run leaves an extract; two are compared, one is a baseline, and the history keeps them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_vllm.cli.entry import main

if TYPE_CHECKING:
    import pytest

    from tests.plugin.running import Gate

SELECT = ("--vllm-profile=sim", "--vllm-check=models", "--vllm-check=metrics")
#: Breaks one check of `models` (`pytest-vllm defects --area models`).
DEFECT = "--vllm-defect=models.twice"


def test_two_runs_of_one_server_differ_in_nothing_and_a_broken_one_shows(
    gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    gate(*SELECT)
    gate(*SELECT)
    run = gate(*SELECT, DEFECT)
    first, second, broken = map(str, run.folders)
    capsys.readouterr()

    assert main(["compare", first, second, "--json"]) == 0
    same = json.loads(capsys.readouterr().out)
    assert {one["weight"] for one in same["differences"]} <= {"for information"}

    assert main(["compare", f"{first}/extract.json", broken]) == 1
    assert "broken MUST models.list.unique" in capsys.readouterr().out
    assert main(["compare", broken, first, "--all"]) == 0
    assert "fixed MUST models.list.unique" in capsys.readouterr().out

    reports = f"--reports={run.folders[-1].parents[1]}"
    assert main(["history", "sim", reports, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["runs"]
    assert [(row["run"], row["answer"]) for row in rows] == [
        (folder.name, answer) for folder, answer in zip(run.folders, ("GO", "GO", "NO-GO"), strict=True)
    ]
    assert main(["history", "sims", reports]) == 4
    assert "did you mean" in capsys.readouterr().err


def test_what_failed_before_does_not_count_and_what_broke_does(gate: Gate) -> None:
    before = gate(*SELECT, DEFECT)
    same = gate(*SELECT, DEFECT, f"--vllm-baseline={before.folders[-1]}", "--vllm-no-worse")
    good = gate(*SELECT)
    worse = gate(*SELECT, DEFECT, "--vllm-no-worse", f"--vllm-baseline={good.folders[-1]}")

    assert (before.exit, same.exit, good.exit, worse.exit) == (1, 0, 0, 1)
    assert "no worse than the baseline: 2 that did not hold before do not hold now" in " ".join(
        same.text.split()
    )
    assert "as before" in same.text


def test_no_worse_than_nothing_is_one_clear_error(gate: Gate) -> None:
    alone = gate(*SELECT, "--vllm-no-worse")
    never = gate(*SELECT, "--vllm-no-worse", "--vllm-baseline=last-good")

    assert (alone.exit, never.exit) == (4, 4)
    assert "add --vllm-baseline=" in alone.text
    assert "sim has no last-good run" in never.text


def test_todays_failures_become_waivers_that_a_profile_takes(
    gate: Gate, pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    run = gate(*SELECT, DEFECT)
    profile = pytester.path / "vllm-profiles" / "ours.toml"
    profile.parent.mkdir()
    profile.write_text('extends = "sim"\n# a comment\n', "utf-8")
    capsys.readouterr()

    assert main(["waive", str(run.folders[-1])]) == 4
    assert "--issue=URL" in capsys.readouterr().err
    assert main(["waive", str(run.folders[-1]), "--issue=o/r#7", f"--write={profile}"]) == 0
    assert "# a comment" in profile.read_text("utf-8")

    waived = gate("--vllm-profile=ours", *SELECT[1:], DEFECT)
    assert (waived.exit, "waived" in waived.text) == (0, True)


def test_bad_input_is_one_line_and_status_4(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    (pytester.path / "empty").mkdir()

    assert main(["compare", str(pytester.path / "empty"), "nowhere"]) == 4
    assert "has no extract.json" in capsys.readouterr().err
