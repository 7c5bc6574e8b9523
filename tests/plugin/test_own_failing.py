"""What failing own tests and faulty own checks leave behind: names, words, evidence, rerun lines that run."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.plugin.running import Gate, Run

FAILING = """
import pytest
from pytest_vllm import MUST, check, exchange


@exchange("mine.greeting")
def mine_greeting(server):
    return server.chat("Say hello.", max_tokens=8)


@pytest.fixture
def prompts():
    return {"a": 1}["b"]


class TestLive:
    def test_sync(self, vllm_http, vllm_server):
        vllm_http.post("/v1/completions", json={"model": vllm_server.model, "prompt": "Hi", "max_tokens": 3})
        assert vllm_http.get("/nowhere").status_code == 200, "nowhere is missing"


@pytest.mark.asyncio
async def test_async(vllm_async_client, vllm_server):
    stream = await vllm_async_client.completions.create(
        model=vllm_server.model, prompt="Hi", max_tokens=2, stream=True
    )
    assert not [chunk async for chunk in stream]


def test_recorded(mine_greeting):
    assert mine_greeting.status == 201


def test_set_up(vllm_server, prompts):
    pass


@check("mine.greeting.answered", MUST, spec="profile:mine")
def test_check(mine_greeting):
    \"\"\"Our greeting is answered.\"\"\"
    assert mine_greeting.status == 201, f"answered {mine_greeting.status}"


@check("mine.greeting.faulty", MUST, spec="profile:mine")
def test_faulty(mine_greeting, prompts):
    \"\"\"Our greeting has prompts.\"\"\"


@check("mine.greeting.crashing", MUST, spec="profile:mine")
def test_crashing(mine_greeting):
    \"\"\"Our greeting has a total.\"\"\"
    assert mine_greeting.ok["totals"]
"""


def words(run: Run) -> str:
    """What was printed, its lines joined."""
    return " ".join(run.text.split())


@pytest.mark.parametrize("more", [(), ("-n2",)], ids=["", "xdist"])
def test_a_failing_test_is_in_every_report_with_what_it_used(gate: Gate, more: tuple[str, ...]) -> None:
    run = gate("--vllm-profile=sim", "tests/test_mine.py", *more, files={"tests/test_mine.py": FAILING})

    assert run.exit == 1, run.text
    rows = {row["nodeid"].rpartition("::")[2]: row for row in run.report["own_tests"]}
    sent = [one["request"] for one in rows["test_sync"]["exchanges"]]
    assert sent == ["POST /v1/completions", "GET /nowhere"]
    assert rows["test_sync"]["exchanges"][1]["status"] == 404
    assert rows["test_sync"]["message"].startswith("AssertionError: nowhere is missing")
    assert "def test_sync" in rows["test_sync"]["traceback"]
    assert rows["test_async"]["exchanges"][0]["events"] >= 2
    assert rows["test_recorded"]["exchanges"][0]["key"] == "mine.greeting"
    assert (rows["test_set_up"]["outcome"], rows["test_set_up"]["message"]) == ("error", "KeyError: 'b'")
    for name in ("report.md", "report.html"):
        text = (run.folders[-1] / name).read_text("utf-8")
        assert text.count("nowhere is missing") >= 1, name
        assert "/nowhere" in text, name
    assert "own failed" in run.text
    assert re.search(r"^rerun +pytest --vllm-profile=sim .*test_mine.py::", run.text, re.MULTILINE)

    assert run.verdicts["mine.greeting.faulty"] == run.verdicts["mine.greeting.crashing"] == "undecided"
    assert "ERROR at setup of" in run.text
    assert run.text.count("KeyError: 'totals'") >= 1, "with pytest's traceback"
    assert "mine_greeting.ok[" in run.text, "with pytest's traceback"


def test_printed_rerun_lines_run(gate: Gate, pytester: pytest.Pytester) -> None:
    files = {"tests/test_mine.py": FAILING, "profiles/mine.toml": 'extends = "sim"\n'}
    first = gate("--vllm-profile=profiles/mine.toml", "tests", files=files)
    row = next(row for row in first.report["results"] if row["verdict"] == "fail")
    own = next(row for row in first.report["own_tests"] if row["nodeid"].endswith("test_sync"))

    for line, left in ((row["evidence"]["rerun"], "mine.greeting.answered"), (own["rerun"], "test_sync")):
        again = gate(*shlex.split(line)[1:])

        assert again.exit == 1, again.text
        assert left in again.text
        failing = [one for one in again.report["own_tests"] if one["outcome"] != "passed"]
        assert len(failing) + len(again.verdicts) == 1, line


@pytest.mark.parametrize("more", [(), ("-n2",)], ids=["", "xdist"])
def test_a_misspelt_fixture_is_known_before_the_boot(gate: Gate, more: tuple[str, ...]) -> None:
    mine = "def test_mine(vllm_serverr, vllm_server):\n    pass\n"
    run = gate("--vllm-profile=sim", "test_mine.py", *more, files={"test_mine.py": mine})

    assert run.exit == 4, run.text
    assert "fixture 'vllm_serverr' not found; did you mean 'vllm_server'?" in run.text
    assert "cache_again" not in run.text, "recordings of the bundled suites are not listed"
    assert "available fixtures:" in run.text
    assert "vllm: ready" not in run.text
    assert "INTERNALERROR" not in run.text


def test_checks_without_a_server_under_xdist_say_what_to_pass(gate: Gate) -> None:
    run = gate("suites/models", "-n2")

    assert run.exit == 4, run.text
    assert "these checks need a server: pass --vllm-profile=NAME" in words(run)
    assert "INTERNALERROR" not in run.text
