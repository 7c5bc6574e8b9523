"""The main job on real input: a real vLLM in a real container, to a verdict."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.real.gate import ELSEWHERE, EVERYTHING, GateRun, once_more, otherwise, run_gate
from tests.real.server import HandStarted, containers

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.real, pytest.mark.docker]


def test_the_container_is_go(gate_on_container: GateRun) -> None:
    """Every MUST check of the gate passes on a real vLLM, or names the upstream fault that it waits for."""
    assert gate_on_container.answer == "GO", gate_on_container.reasons("fail", "undecided")
    (server,) = gate_on_container.report["servers"]
    assert server["version"] == "0.32.0"
    assert not server["simulated"]


def test_checks_decided_something(gate_on_container: GateRun) -> None:
    """Most checks pass; a gate that decides little is no gate."""
    decided = [verdict for verdict in gate_on_container.verdicts.values() if verdict != "not-run"]

    assert len(decided) >= 200
    assert decided.count("pass") >= 0.9 * len(decided)


def test_what_is_waived_is_known_upstream(gate_on_container: GateRun) -> None:
    """A waiver of the profile names where vLLM's fault is known."""
    waivers = gate_on_container.report["waivers"]

    assert [
        one["issue"] for one in waivers if not re.search(r"https://|vllm-project/[\w-]+#\d+", one["issue"])
    ] == []


def test_attaching_with_the_profile(gate_on_container: GateRun, by_hand: HandStarted, tmp_path: Path) -> None:
    """The same server, started by hand: every check says the same, and it goes on running.

    Not asked is only what needs a server that was started here, or to know that nothing lies between.
    """
    options = (f"--vllm-url={by_hand.url}", "--vllm-profile=cpu-smollm2")
    attached = run_gate(tmp_path, *options, *once_more())

    assert attached.exit == 0
    assert otherwise(gate_on_container, attached, f"{ELSEWHERE}|what lies between") == {}
    assert by_hand.runs()
    assert by_hand.healthy()


if EVERYTHING:

    def test_attaching_with_a_url_alone(
        gate_on_container: GateRun, by_hand: HandStarted, tmp_path: Path
    ) -> None:
        """Without a profile what a profile demands is not asked either; all else says the same."""
        attached = run_gate(tmp_path, f"--vllm-url={by_hand.url}", *once_more())

        assert attached.exit == 0
        assert len(attached.verdicts) > 1000
        assert otherwise(gate_on_container, attached, f"{ELSEWHERE}|what lies between|the profile") == {}
        assert by_hand.runs()


def test_two_runs_at_once_do_not_meet(by_hand: HandStarted, tmp_path: Path) -> None:
    """A single check by its id, against the server that another run has used."""
    before = containers()
    one = run_gate(tmp_path, f"--vllm-url={by_hand.url}", "--vllm-check=models")

    assert one.exit in {0, 1}, one.text
    assert containers() <= before
