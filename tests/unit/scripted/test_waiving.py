"""What a sweep waives: what is known upstream of these parsers and this version, and nothing else."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.decide.waivers import in_range
from pytest_vllm.profile.model import Waiver
from tools.sweep import sweep
from tools.sweep.__main__ import main
from tools.sweep.alone_sweep import mark
from tools.sweep.rows import Outcome, Pair, Row, pairs
from tools.sweep.waivers import judged, waivers_of

if TYPE_CHECKING:
    from pathlib import Path

HERMES = Pair("tool", "hermes", "deepseek_r1")
TODAY = dt.date(2026, 11, 28)
CUT = "scripted.answer.whole[marker-end]"
STOP = "scripted.stop.stream"


def known(check: str, *, versions: str = ">=0.27,<0.33", until: str = "2027-06-30") -> Waiver:
    return Waiver.model_validate(
        {"check": check, "reason": "cut", "issue": "o/r#7", "versions": versions, "until": until}
    )


def row(outcomes: dict[str, Outcome], version: str = "0.32.0", via: str = "server") -> Row:
    wrong = {check: "seen" for check, outcome in outcomes.items() if outcome != "passed"}
    return Row(HERMES, version, via, outcomes, wrong)


def test_a_known_fault_is_waived_and_its_thread_told() -> None:
    one = judged(row({CUT: "failed", "scripted.cut.room": "passed"}), [known(CUT)], TODAY)

    assert (one.failed, list(one.waived), one.upstream, one.stale) == ({}, [CUT], ["o/r#7"], ())
    assert sweep.status([one]) == 0
    cells = sweep.table([one])[0]
    assert (cells["failed"], cells["waived"], cells["waived for"]) == (0, 1, ["o/r#7"])
    assert one.plain()["waived"] == {CUT: "o/r#7"}


@pytest.mark.parametrize(
    "waivers",
    [
        [],
        [known("scripted.answer.whole[marker-begin]")],
        [known(CUT, versions="<0.32")],
        [known(CUT, until="2026-11-27")],
    ],
    ids=["none", "another check", "another version", "ended"],
)
def test_a_fault_that_no_waiver_covers_fails(waivers: list[Waiver]) -> None:
    one = judged(row({CUT: "failed"}), waivers, TODAY)

    assert list(one.failed) == [CUT]
    assert sweep.status([one]) == 1
    assert list(sweep.told(one, known=False))[1].startswith(f"  failed: {CUT}: seen")


def test_a_new_fault_beside_a_known_one_fails() -> None:
    one = judged(row({CUT: "failed", "scripted.cut.room": "failed"}), [known(CUT)], TODAY)

    assert (list(one.failed), list(one.waived)) == (["scripted.cut.room"], [CUT])
    assert sweep.status([one]) == 1


def test_a_stale_waiver_is_reported_and_fails() -> None:
    one = judged(row({CUT: "passed"}), [known(CUT)], TODAY)

    assert one.stale == (f"{CUT} passes on 0.32.0: remove its waiver, or narrow versions = '>=0.27,<0.33'",)
    assert sweep.status([one]) == 1
    assert "waived, but" in list(sweep.told(one, known=False))[-1]


@pytest.mark.parametrize("outcome", ["failed", "unpromised", "undecided"])
def test_a_waiver_is_not_stale_while_anything_it_covers_does_not_pass(outcome: Outcome) -> None:
    seen: dict[str, Outcome] = {f"{STOP}[nowhere]": "passed", f"{STOP}[content]": outcome}

    assert judged(row(seen), [known(STOP)], TODAY).stale == ()


def test_what_was_not_asked_makes_no_waiver_stale() -> None:
    one = judged(row({"whole[marker-end]": "failed"}, via="alone"), [known(CUT), known(STOP)], TODAY)

    assert (list(one.waived), one.stale) == (["whole[marker-end]"], ())


def test_waivers_are_those_of_a_gate_on_these_parsers() -> None:
    hermes = waivers_of(HERMES)
    coder = waivers_of(Pair("tool", "qwen3_coder", "qwen3"))

    assert {STOP, CUT, "scripted.cut.markup"} <= {one.check for one in hermes}
    assert "scripted.cut.markup" not in {one.check for one in coder if in_range("0.32.0", one.versions)}
    assert {one.check.partition(".")[0] for one in [*hermes, *coder]} == {"scripted"}


def test_every_waiver_names_a_thread_and_versions() -> None:
    swept = {pair.tool + pair.reasoning: pair for pair in pairs()}.values()
    told = [one for pair in swept for one in waivers_of(pair)]

    assert len(told) > 20
    assert [one for one in told if "#" not in one.issue or not one.versions] == []


def kept(folder: Path, outcomes: dict[str, Outcome]) -> list[str]:
    """A finished row of hermes in a folder, and the command that judges it."""
    done = row(outcomes)
    done.mark = mark(HERMES)
    where = folder / "0.32.0-server"
    where.mkdir()
    (where / "tool-hermes.json").write_text(json.dumps(done.plain()), "utf-8")
    return ["--parser", "hermes", "--folder", str(folder)]


@pytest.fixture
def _for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """One waiver, which these tests do not outlive."""
    monkeypatch.setattr(sweep, "waivers_of", lambda _: [known(CUT, until="2999-01-01")])


@pytest.mark.usefixtures("_for_ever")
def test_the_command_passes_what_is_waived(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = kept(tmp_path, {CUT: "failed", "scripted.answer.whole[single]": "passed"})

    assert main(asked) == 0
    assert "o/r#7" in capsys.readouterr().out
    assert main([*asked, "--no-waivers"]) == 1
    assert f"  failed: {CUT}: seen" in capsys.readouterr().err


@pytest.mark.usefixtures("_for_ever")
def test_the_command_fails_for_a_fault_that_is_not_waived(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = kept(tmp_path, {CUT: "failed", "scripted.answer.whole[single]": "failed"})

    assert main(asked) == 1
    assert "  failed: scripted.answer.whole[single]: seen" in capsys.readouterr().err
