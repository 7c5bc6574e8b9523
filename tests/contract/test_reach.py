"""A request field that vLLM serves is sent by an exchange, or is left out with a reason."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_vllm import facts
from pytest_vllm.facts.reach import BODIES, unsent
from pytest_vllm.report.reach import reach_of
from pytest_vllm.wire.store import RecordingStore
from tests.contract.imports import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.report.reach import Reach

NEWEST = facts.versions()[-1]
PROFILE = f"""
extends = "sim"
[server]
version = "{NEWEST}"
[expect]
version = "{NEWEST}"
"""


@pytest.fixture(scope="module")
def reach(tmp_path_factory: pytest.TempPathFactory) -> Reach:
    """What the gate asks of a simulator of the newest version that the facts know."""
    folder: Path = tmp_path_factory.mktemp("reach")
    profile = folder / "newest.toml"
    profile.write_text(PROFILE, "utf-8")
    options = [
        f"--vllm-profile={profile}",
        f"--vllm-report={folder / 'runs'}",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    command = [sys.executable, "-m", "pytest", *options]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    found = sorted(folder.glob("runs/runs/*/newest/recordings"))
    assert found, run.stdout[-2000:]
    store = RecordingStore(found[-1])
    return reach_of([store.get(key) for key in store.keys()], NEWEST)  # noqa: SIM118 - a store is no mapping


@pytest.mark.parametrize("route", BODIES)
def test_every_field_is_sent_or_left_out_with_a_reason(reach: Reach, route: str) -> None:
    """A row of `fixtures/cases/fields.json` sends it, or `facts/reach.toml` says why nothing does."""
    missing = set(reach.fields[route].missing)

    assert missing - set(unsent()) == set()


@pytest.mark.parametrize("route", BODIES)
def test_a_reason_is_for_a_field_that_no_exchange_sends(reach: Reach, route: str) -> None:
    """A reason that is outlived hides the next field of that name."""
    assert set(unsent()) & reach.fields[route].sent == set()


def test_the_sizes_go_beyond_those_of_small_requests(reach: Reach) -> None:
    """Longer streams, conversations of 40 turns with 12 tool results, 64 tools, 16 choices.

    The stream is as long as the speed of this machine allows: 2,100 events, and fewer where it is busy.
    """
    least = {"events": 600, "turns": 40, "results": 12, "tools": 64, "choices": 16, "prompt": 3500}

    assert {name: reach.maxima[name] for name, size in least.items() if reach.maxima[name][0] < size} == {}
