"""A sweep: what came is compared with what was said, kept, and done again when something changed."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from pytest_vllm.decide.verdict import Family, Level, Result, Verdict
from pytest_vllm.decide.waivers import apply_waivers
from pytest_vllm.profile.model import Waiver
from pytest_vllm.scripted.grammar import Call, Script
from tools.sweep import sweep
from tools.sweep.__main__ import main
from tools.sweep.compare import faults
from tools.sweep.rows import Pair, Row, cases, pairs, row_of, unpromised
from tools.sweep.served_sweep import fill
from tools.sweep.waivers import RowJudgement, judged

HERMES = Pair("tool", "hermes", "deepseek_r1")
TODAY = dt.date(2026, 11, 28)
SAID = Script("Hm.", "One.", (Call("note", {"count": 7, "flag": True}),))
CAME: dict[str, Any] = {
    "content": "One.\n",
    "thoughts": "Hm.",
    "calls": [["note", '{"count": 7.0, "flag": true}']],
}

#: A Python that "has vLLM": every answer is the text that was said, without a call.
FAKE = """#!{python}
import json, sys
if sys.argv[1] == "-c":
    print("0.32.0+cpu")
    sys.exit()
for line in sys.stdin:
    job = json.loads(line)
    if job["tool"] == "longcat":
        print(json.dumps({{"error": "RuntimeError: no such token"}}), flush=True)
        continue
    for case in job["cases"]:
        text = case["script"] if isinstance(case["script"], str) else "".join(case["script"])
        said = {{"content": text, "thoughts": "", "calls": []}}
        print(json.dumps({{"id": case["id"], "mode": case["mode"], **said}}), flush=True)
"""


@pytest.fixture
def python(tmp_path: Path) -> str:
    """A Python that has a fake vLLM."""
    path = tmp_path / "python"
    path.write_text(FAKE.format(python=sys.executable), "utf-8")
    path.chmod(0o755)
    return str(path)


def test_what_was_said_came() -> None:
    assert faults(CAME, SAID) == []


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"content": "One. Two."}, "content 'One. Two.', not 'One.'"),
        ({"thoughts": ""}, "reasoning '', not 'Hm.'"),
        ({"calls": []}, "calls: none; not 1"),
        ({"calls": [["note", '{"count": "7", "flag": true}']]}, "not note"),
        ({"calls": [["note", '{"count": 7, "flag": 1}']]}, "not note"),
        ({"calls": [["note", '{"count": 7']]}, "are no JSON"),
        ({"calls": [["nite", '{"count": 7, "flag": true}']]}, "nite"),
    ],
)
def test_what_is_wrong_is_told(changed: dict[str, Any], told: str) -> None:
    assert told in " ".join(faults({**CAME, **changed}, SAID))


def test_a_promise_rules_out_what_models_do_not_write() -> None:
    two = Script(None, "", (Call("ping", {}), Call("ping", {})))
    after = Script(None, "", (Call("ping", {}),), "And now?")

    assert unpromised("internlm", two) == "several calls in one answer"
    assert not unpromised("hermes", two)
    assert unpromised("hermes", after) == "text after a call"
    assert not unpromised("granite4", after)
    assert unpromised("pythonic", Script(None, "Look:", (Call("ping", {}),))) == "text before a call"


def test_every_covered_parser_is_swept_beside_its_own() -> None:
    all_ = pairs()

    assert len({one.name for one in all_ if one.kind == "tool"}) >= 30
    assert len({one.name for one in all_ if one.kind == "reasoning"}) >= 10
    assert HERMES in all_
    assert len(cases(HERMES)) >= 80


def test_a_sweep_alone_is_kept_and_goes_on_where_it_stopped(python: str, tmp_path: Path) -> None:
    folder, both = tmp_path / "kept", pairs(["xlam", "longcat"])
    first = list(sweep.sweep("0.32.0", folder, both, python=python, alone=True))
    again = list(sweep.sweep("0.32.0", folder, both, python=python, alone=True))

    rows = {row.pair.name: row for row, _ in first}
    assert rows["longcat"].broken == "RuntimeError: no such token"
    assert rows["longcat"].count("undecided") == 1
    assert rows["xlam"].outcomes["stream[text-only]"] == "passed"
    assert rows["xlam"].outcomes["stream[single]"] == "failed"
    assert "calls: none; not 1" in rows["xlam"].evidence["stream[single]"]
    assert [(row.pair.name, known) for row, known in again] == [("xlam", True), ("longcat", False)]
    assert row_of(rows["xlam"].plain()) == rows["xlam"]


def test_a_row_is_done_again_when_what_is_said_has_changed(python: str, tmp_path: Path) -> None:
    only = pairs(["xlam"])
    list(sweep.sweep("0.32.0", tmp_path, only, python=python, alone=True))
    path = tmp_path / "tool-xlam.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "mark": "older"}))

    assert [known for _, known in sweep.sweep("0.32.0", tmp_path, only, python=python, alone=True)] == [False]


def test_the_command_prints_a_table_and_fails(
    python: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--alone", "--python", python, "--parser", "xlam", "--folder", str(tmp_path)]
    status = main(asked)
    out = capsys.readouterr().out.splitlines()

    assert status == 1
    assert out[0].split() == [
        "parser",
        "kind",
        "beside",
        "passed",
        "failed",
        "waived",
        "undecided",
        "unsupported",
        "boot",
        "s",
        "cases",
        "s",
        "waived",
        "for",
        "why",
    ]
    assert out[1].startswith("xlam")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["--alone"], "--alone needs --python"),
        (["--alone", "--python", "/no/such/python"], "does not run"),
        (["--python", sys.executable], "has no vLLM"),
        (["--parser", "hermis"], "did you mean hermes?"),
    ],
)
def test_what_cannot_be_swept_is_told(
    asked: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(asked) == 4
    assert told in capsys.readouterr().err


def test_another_version_than_the_python_has_is_refused(
    python: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--version", "0.27.0", "--alone", "--python", python]) == 4
    assert "has vLLM 0.32.0, not 0.27.0" in capsys.readouterr().err


def test_a_report_fills_a_row() -> None:
    """Only what must hold counts; what is waived failed; what nobody promised is told apart."""
    row = Row(HERMES, "0.32.0", "server")
    told = [
        ("scripted.answer.whole[single]", "MUST", "pass"),
        ("scripted.answer.whole[content-after]", "MUST", "waived"),
        ("scripted.answer.whole[marker-end]", "MUST", "waived"),
        ("scripted.cut.finish", "MUST", "undecided"),
        ("scripted.usage.thoughts", "SHOULD", "advisory"),
        ("scripted.form.whole", "MUST", "not-run"),
        ("waiver.scripted.stop.stream", "MUST", "fail"),
    ]
    results = [
        {"check": check, "level": level, "verdict": verdict, "reason": "why"}
        for check, level, verdict in told
    ]
    boot = [{"phase": "starting", "at": 0.0}, {"phase": "started", "at": 31.26}]
    fill(row, {"boot_failures": [], "results": results, "servers": [{"boot": boot}]})

    assert row.boot_s == 31.3
    assert row.outcomes == {
        "scripted.answer.whole[single]": "passed",
        "scripted.answer.whole[content-after]": "unpromised",
        "scripted.answer.whole[marker-end]": "failed",
        "scripted.cut.finish": "undecided",
    }
    assert sweep.status([raw(row)]) == 1


def test_the_evidence_of_what_is_waived_is_what_was_observed() -> None:
    """Not why it does not matter: findings are told apart by what was observed."""
    check = "scripted.cut.finish"
    known = Waiver.model_validate(
        {
            "check": check,
            "reason": "a call (cut); it ends in tool_calls",
            "issue": "o/r#1",
            "versions": ">=0",
            "until": "2027-06-30",
        }
    )
    observed = "cut.whole[1]: 'tool_calls' (seen, until then); more"
    failed = Result(check, Level.MUST, Family.CONFORMANCE, Verdict.FAIL, "", observed)
    told = apply_waivers(failed, [known], "0.32.0", TODAY)
    row = Row(HERMES, "0.32.0", "server")
    result = {"check": check, "level": "MUST", "verdict": told.verdict, "reason": told.reason}
    fill(row, {"boot_failures": [], "servers": [], "results": [result]})

    assert told.verdict is Verdict.WAIVED
    assert row.evidence == {check: observed}


def raw(row: Row) -> RowJudgement:
    """A row to which no waiver is applied."""
    return judged(row, [], TODAY)


def test_the_status_tells_what_is_undecided() -> None:
    assert sweep.status([raw(Row(HERMES, "0.32.0", "alone", {"whole[a]": "passed"}))]) == 0
    assert sweep.status([raw(Row(HERMES, "0.32.0", "alone", broken="no boot"))]) == 21
    assert sweep.status([]) == 21


#: A Python that says that it runs, and then works for ever.
BUSY = """#!{python}
import os, sys, threading
if sys.argv[1] == "-c":
    print("0.32.0")
    sys.exit()
with open({fifo!r}, "w") as told:
    told.write(f"{{os.getpid()}} {{os.path.realpath('/proc/self/fd/0')}}")
threading.Event().wait()
"""


def test_a_sweep_that_is_ended_leaves_nothing_behind(tmp_path: Path) -> None:
    fifo, python = tmp_path / "told", tmp_path / "python"
    os.mkfifo(fifo)
    python.write_text(BUSY.format(python=sys.executable, fifo=str(fifo)), "utf-8")
    python.chmod(0o755)
    command = [
        "-m",
        "tools.sweep",
        "--alone",
        "--python",
        str(python),
        "--parser",
        "xlam",
    ]
    with subprocess.Popen([sys.executable, *command, "--folder", str(tmp_path / "kept")]) as sweeping:
        pid, _, jobs = fifo.read_text("utf-8").partition(" ")
        sweeping.terminate()

    assert sweeping.returncode == 128 + signal.SIGTERM
    assert not psutil.pid_exists(int(pid))
    assert jobs.endswith("jobs")
    assert not Path(jobs).parent.exists()
