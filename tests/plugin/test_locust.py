"""Loads that Locust's workers send in a gate: the same verdicts as ever, beside Locust's own plugin."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.face import profiles
from pytest_vllm.face.options import Options
from pytest_vllm.face.profiles import load_profiles

if TYPE_CHECKING:
    from pathlib import Path

    from tests.plugin.running import Gate

ALONE = """
extends = "spark-fp8"

[limits]
decode-tok-s = { min = "1 tok/s" }

[measure]
budget = "30s"
"""
TWO = f"{ALONE}locust = 2\n"
SELECT = ("--vllm-launcher=sim", "--vllm-check=throughput.decode", "--vllm-check=throughput.outputs.alone")

OURS = """
import sys

from pytest_vllm import MUST, Kind, Workload, check, measurement


@measurement("ours.load")
def ours_load(server):
    return Workload(streams=4, requests=8, kinds=(Kind(output=8),))


@check("ours.load.sent", MUST, spec="profile:load", needs=["completions"])
def test_sent(ours_load):
    \"\"\"Two workers send eight requests.\"\"\"
    assert len(ours_load.samples) == 8
    assert "cpu-share of worker 2" in ours_load.client


def test_locust_has_a_plugin_too(vllm_server, pytestconfig):
    assert pytestconfig.pluginmanager.has_plugin("locust")
    assert pytestconfig.getoption("--host") == "http://elsewhere"


def test_nothing_is_patched(vllm_server):
    assert not {"locust", "gevent"} & sys.modules.keys()
"""


def test_two_workers_give_the_verdicts_of_one_process(gate: Gate) -> None:
    files = {"vllm-profiles/alone.toml": ALONE, "vllm-profiles/two.toml": TWO}
    alone = gate("--vllm-profile=alone", *SELECT, files=files)
    two = gate("--vllm-profile=two", *SELECT)

    assert (alone.exit, two.exit) == (0, 0), two.text
    assert two.verdicts == alone.verdicts
    assert "pass" in two.verdicts.values()


def test_locust_s_own_plugin_is_no_obstacle(gate: Gate) -> None:
    files = {"vllm-profiles/two.toml": TWO, "test_ours.py": OURS}
    run = gate("test_ours.py", "--host=http://elsewhere", "--vllm-profile=two", SELECT[0], files=files)

    run.result.assert_outcomes(passed=3)
    assert run.verdicts == {"ours.load.sent": "pass"}


def test_half_the_speed_is_no_go_for_two_workers_too(gate: Gate) -> None:
    floor = TWO.replace("1 tok/s", "40 tok/s")
    run = gate(
        "--vllm-profile=two",
        *SELECT,
        "--vllm-defect=performance.half-speed",
        files={"vllm-profiles/two.toml": floor},
    )

    assert run.exit == 1, run.text
    assert run.verdicts["throughput.decode.floor"] == "fail"


def test_locust_is_asked_for_and_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(profiles, "available", lambda: False)
    profile = tmp_path / "two.toml"
    profile.write_text(TWO)

    with pytest.raises(pytest.UsageError, match=r"not installed: pip install 'pytest-vllm\[locust\]'"):
        load_profiles(Options(profiles=(str(profile),)), tmp_path, [])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("locusts = 2", "did you mean 'locust'"),
        ("locust = -1", "greater than or equal to 0"),
        ('locust-address = "spark:5557"', "an IP address of this machine and a port"),
        ("locust-elsewhere = 2", 'workers elsewhere need to be told where: locust-address = "10.0.0.5:5557"'),
    ],
)
def test_what_cannot_be_is_one_clear_error(line: str, told: str, tmp_path: Path) -> None:
    profile = tmp_path / "ours.toml"
    profile.write_text(f"{ALONE}{line}\n")

    with pytest.raises(pytest.UsageError, match=re.escape(told)):
        load_profiles(Options(profiles=(str(profile),)), tmp_path, [])


def test_a_worker_that_never_comes_decides_nothing(gate: Gate) -> None:
    patience = "from pytest_vllm.measure.swarm import crew\n\ncrew.JOIN = 1.0\n"
    elsewhere = 'locust-elsewhere = 1\nlocust-address = "127.0.0.2:0"\n'
    files = {"vllm-profiles/two.toml": TWO + elsewhere, "conftest.py": patience, "test_ours.py": OURS}
    run = gate("test_ours.py", "--host=http://elsewhere", "--vllm-profile=two", SELECT[0], files=files)

    assert run.exit == 21, run.text
    assert run.verdicts == {"ours.load.sent": "undecided"}
    # the one elsewhere never comes; whether those here came within the second is up to the machine
    assert re.search(r"[123] of 3 workers have not joined", " ".join(run.text.split()))
