"""Extracts on disk: whole, bounded, and refused in words where they are something else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.report.compare import kept
from pytest_vllm.report.compare.extract import ExtractError, as_baseline
from pytest_vllm.report.compare.history import changed, columns, rows
from tests.unit.report.compare.runs import part_of, run_of

if TYPE_CHECKING:
    from pathlib import Path


def named(number: int) -> dict[str, str]:
    return {
        "run": f"20261129-{number:06}",
        "started": f"2026-11-29T00:{number // 60:02}:{number % 60:02}+00:00",
    }


def test_the_history_keeps_the_newest_runs_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST", 3)
    for number in range(5):
        kept.remember(tmp_path, run_of(part_of(), **named(number)))

    assert [one["run"]["id"] for one in kept.runs(tmp_path, "p")] == [named(n)["run"] for n in (2, 3, 4)]


def test_the_last_good_run_is_the_newest_go_that_left_nothing_out(tmp_path: Path) -> None:
    parts = [part_of(), part_of(), {**part_of(), "answer": "NO-GO"}]
    for number, part in enumerate(parts):
        kept.remember(tmp_path, run_of(part, partial=number == 1, **named(number)))

    assert kept.last_good(tmp_path, "p")["run"]["id"] == named(0)["run"]
    with pytest.raises(ExtractError, match="it has no run yet"):
        kept.last_good(tmp_path, "other")


def test_profiles_with_odd_names_have_their_own_history(tmp_path: Path) -> None:
    for number, name in enumerate(("../up", "a b", "a_b")):
        run = run_of(part_of(), run=f"r{number}")
        kept.remember(tmp_path, {**run, "profiles": {name: run["profiles"]["p"]}})

    assert [len(kept.runs(tmp_path, name)) for name in ("../up", "a b", "a_b")] == [1, 1, 1]
    assert {path.parent.parent for path in tmp_path.rglob("*.json")} == {tmp_path}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "other"}', "[" * 100_000, "\x00"])
def test_a_file_that_is_no_extract_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "extract.json"
    path.write_text(text, "utf-8")

    with pytest.raises(ExtractError, match="extract"):
        kept.read(path)


def test_a_newer_extract_says_so(tmp_path: Path) -> None:
    path = tmp_path / "extract.json"
    path.write_text(json.dumps({**run_of(part_of()), "version": 99}), "utf-8")

    with pytest.raises(ExtractError, match="update pytest-vllm"):
        kept.read(tmp_path)


def test_an_extract_is_a_baseline() -> None:
    baseline = as_baseline("p", run_of(part_of(results={"a.b": "fail", "a.c[x]": "pass"})))

    assert baseline.verdicts == {"a.b": "fail", "a.c[x]": "pass"}
    assert (baseline.version, baseline.model, baseline.taken) == ("0.32.0", "m", "2026-11-29")


def test_the_history_marks_where_a_speed_changed() -> None:
    def run(number: int, speed: float, version: str) -> dict[str, object]:
        part = part_of(version=version)
        part["loads"] = {"t.one": {"workload": {}, "figures": {"decode-tok-s": {"value": speed}}}}
        return run_of(part, **named(number))

    speeds = [42.0, 42.3, 41.8, 42.1, 42.2, 41.9, 42.0, 38.1, 37.9, 38.2, 38.0, 38.1]
    table = rows([run(n, one, "0.31.0" if n < 7 else "0.32.0") for n, one in enumerate(speeds)], "p")
    (change,) = changed(table)

    assert (change["run"], change["versions"]) == (named(7)["run"], ["0.31.0", "0.32.0"])
    assert columns(table) == ["decode-tok-s of t.one"]


def test_a_run_on_another_machine_is_marked_and_changes_nothing() -> None:
    table = rows([run_of(part_of(hardware=name)) for name in ("h100", "h200")], "p")

    assert [row["mark"] for row in table] == ["other machine", ""]


def test_what_a_run_is_compared_with_came_before_it(tmp_path: Path) -> None:
    for number in range(2):
        kept.remember(tmp_path, run_of(part_of(), **named(number)))

    assert kept.last_good(tmp_path, "p", but=named(1)["run"])["run"]["id"] == named(0)["run"]
    assert kept.last_good(tmp_path, "p", but=named(0)["run"])["run"]["id"] == named(1)["run"]
