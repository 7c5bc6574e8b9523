"""What is accepted as a fault of the real server is waived there: else the healthy would be accused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_vllm.decide.waivers import covers, in_range
from pytest_vllm.facts.version import Version
from pytest_vllm.profile.known import known_faults
from pytest_vllm.sim.versions import DEFAULT
from tests.agree import accepted

(FAULTS,) = (
    one
    for one in json.loads((accepted.HERE / "accepted-differences.json").read_text("utf-8"))
    if "What is a fault of the real server" in one["reason"]
)
PLACES = [(version, place) for version, places in FAULTS["where"].items() for place in places]


@pytest.mark.parametrize(("version", "place"), PLACES)
def test_a_fault_of_the_real_server_has_its_waiver(version: str, place: str) -> None:
    """The group names the check that fails for it; a row covers that check in that version."""
    checks: dict[str, Any] = FAULTS["checks"]
    check = checks[place.partition(": ")[0]]

    assert [one.check for one in known_faults() if in_range(version, one.versions) and covers(one, check)]


def test_the_simulator_is_by_default_the_newest_version_that_was_recorded() -> None:
    """What it says by default is held to what a real server said."""
    recorded = [path.stem for path in accepted.RECORDED.glob("*.json")]

    assert max(recorded, key=Version) == DEFAULT
