"""The simulator answers as real servers do: the suites' exchanges on two versions, then odd requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.agree import accepted
from tests.agree.compare import differences as agree
from tests.agree.runs import VERSIONS, as_the_gate, real, recorded_in, simulated
from tests.bench.sim_against import Difference, differences
from tests.real.gate import EVERYTHING
from tests.real.server import SERVE

if TYPE_CHECKING:
    from tests.real.gate import GateRun
    from tests.real.server import HandStarted

ACCEPTED: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "accepted-differences.json").read_text("utf-8")
)
SERVED_NAME = SERVE[SERVE.index("--served-model-name") + 1]
pytestmark = [pytest.mark.real, pytest.mark.docker]


def test_what_the_gate_recorded(gate_on_container: GateRun, tmp_path: Path) -> None:
    """Status, headers, shapes, order of events, refusals, metrics: of the run that gave the verdict."""
    ours = as_the_gate(tmp_path)
    theirs = {key: one for key, one in recorded_in(gate_on_container.folder).items() if key in ours}

    assert len(theirs) > 800
    assert accepted.unexplained(VERSIONS[0], list(agree(theirs, ours))) == []


if EVERYTHING:

    @pytest.mark.usefixtures("image")
    @pytest.mark.parametrize("version", VERSIONS)
    def test_with_tools(version: str, tmp_path: Path) -> None:
        """The same of a server that calls tools, of every version: others than the image's are downloaded."""
        for name in ("sim", "real"):
            (tmp_path / name).mkdir()
        theirs, ours = real(version, tmp_path / "real"), simulated(version, tmp_path / "sim")

        assert len(theirs) > 900
        assert accepted.unexplained(version, list(agree(theirs, ours))) == []

    @pytest.fixture(scope="module")
    def compared(by_hand: HandStarted) -> list[Difference | None]:
        """What two thousand odd requests show, three minutes."""
        after_name = SERVE[SERVE.index(SERVED_NAME) + 1 :]
        return list(differences(by_hand.url, SERVED_NAME, after_name))

    def test_every_difference_has_a_reason(compared: list[Difference | None]) -> None:
        known = {label for group in ACCEPTED for label in group["requests"]}

        assert [one.told for one in compared if one and one.label not in known] == []

    def test_no_accepted_difference_is_gone(compared: list[Difference | None]) -> None:
        found = {one.label for one in compared if one}

        assert [label for group in ACCEPTED for label in group["requests"] if label not in found] == []

    def test_most_is_compared(compared: list[Difference | None]) -> None:
        assert len(compared) > 2000
