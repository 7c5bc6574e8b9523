"""What is written to a run folder."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import subprocess
from typing import TYPE_CHECKING

from pytest_vllm.decide.verdict import Verdict
from pytest_vllm.report.write import write_all
from pytest_vllm.wire.redact import Redactor
from tests.golden.sample_parts import CHAT, answer, record, result, run_of, server
from tests.golden.sample_runs import go, no_go, two_profiles
from tests.unit.report.documents import curl, hostile

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_what_is_written(tmp_path: Path) -> None:
    """The reports and one executable script per check that did not pass; no half-written file."""
    written = write_all(two_profiles(), Redactor(), tmp_path / "new", curl=curl)
    script = written["checks/chat.envelope.object.sh"]

    exported = ["badge.svg", "checks/chat.envelope.object.sh", "measurements.csv", "metrics.prom"]
    assert sorted(written) == [*exported, "report.html", "report.json", "report.md", "report.sarif"]
    assert sorted(p for p in (tmp_path / "new").rglob("*") if p.is_file()) == sorted(written.values())
    assert os.access(script, os.X_OK)
    said = subprocess.run([script], capture_output=True, text=True, check=True, env={"VLLM_API_KEY": "k"})
    assert said.stdout == "POST http://127.0.0.1:49200/v1/chat/completions k\n"


def test_a_script_for_two_profiles_holds_both(tmp_path: Path) -> None:
    """A check that fails on both profiles has one script that asks both servers."""
    both = two_profiles()
    rows = (*both.results, result("chat.envelope.object", Verdict.FAIL, reason="no\nobject"))
    written = write_all(dataclasses.replace(both, results=rows), Redactor(), tmp_path, curl=curl)
    text = written["checks/chat.envelope.object.sh"].read_text()

    assert text.count("#!/bin/sh") == 1
    assert text.count("\necho POST ") == 2
    assert "# no\n# object\n" in text


def test_a_reason_cannot_run_in_a_script(tmp_path: Path) -> None:
    """Every line of what a check said is a comment."""
    written = write_all(hostile(), Redactor(), tmp_path, curl=curl)
    script = next(path for name, path in written.items() if name.endswith(".sh"))
    ours = [line for line in script.read_text().splitlines() if line and not line.startswith("#")]

    assert ours == ['echo POST http://127.0.0.1:49153/v1/chat/completions "${VLLM_API_KEY:-no key}"']


def test_cases_have_scripts_of_their_own(tmp_path: Path) -> None:
    """A case's brackets make a safe file name, different from another case's."""
    rows = [
        result(f"chat.bad[{case}]", Verdict.FAIL, reason="r")
        for case in ("a/../../b", "a b", "a_b", "Ünicode")
    ]
    run = run_of(server(), answer("chat.plain", CHAT))
    written = write_all(record({"sim": run}, rows), Redactor(), tmp_path, curl=curl)
    scripts = [name for name in written if name.endswith(".sh")]

    assert len(scripts) == 4
    assert all(written[name].parent == tmp_path / "checks" for name in scripts)


def test_a_lone_surrogate_is_written(tmp_path: Path) -> None:
    """Text that UTF-8 cannot hold does not end the report."""
    row_ = result("chat.x", Verdict.FAIL, reason="half \udc80", observations={"text": "\udc80"})
    run = run_of(server(), answer("chat.plain", b'{"a": "\\udc80"}'))
    written = write_all(record({"sim": run}, [row_]), Redactor(), tmp_path, curl=curl)

    assert json.loads(written["report.json"].read_text())["results"][0]["reason"] == "half \udc80"


def test_writing_again_replaces(tmp_path: Path) -> None:
    """A second report of the same folder is the newer one."""
    write_all(go(), Redactor(), tmp_path, curl=curl)
    write_all(no_go(), Redactor(), tmp_path, curl=curl)

    assert json.loads((tmp_path / "report.json").read_text())["answer"]["answer"] == "NO-GO"


def test_a_writer_that_crashes_costs_its_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_: object) -> str:
        raise ValueError("no such column")

    monkeypatch.setattr("pytest_vllm.report.html.render", crash)
    unwritten: dict[str, str] = {}
    written = write_all(no_go(), Redactor(), tmp_path, curl=curl, unwritten=unwritten)

    assert unwritten == {"report.html": "ValueError: no such column"}
    assert {"report.json", "report.md"} <= set(written)
    assert "report.html" not in written


def test_a_full_disk_leaves_no_halves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = type(tmp_path).write_bytes

    def full(path: Path, body: bytes) -> int:
        if "report.json" in path.name:
            whole(path, body[:10])
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(path, body)

    monkeypatch.setattr(type(tmp_path), "write_bytes", full)
    unwritten: dict[str, str] = {}
    write_all(no_go(), Redactor(), tmp_path, curl=curl, unwritten=unwritten)

    assert list(unwritten) == ["report.json"]
    assert "No space left" in unwritten["report.json"]
    left = sorted(path.name for path in tmp_path.iterdir() if path.is_file())
    assert left == [
        "badge.svg",
        "measurements.csv",
        "metrics.prom",
        "report.html",
        "report.md",
        "report.sarif",
    ]
