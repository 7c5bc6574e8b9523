"""The simulator tells what a real vLLM told, in all exchanges of the suites and two versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.agree import accepted
from tests.agree.compare import differences
from tests.agree.runs import VERSIONS, simulated

if TYPE_CHECKING:
    from pathlib import Path

    from tests.agree.compare import Difference
    from tests.agree.told import Told


@pytest.fixture(scope="module", params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    """A version of vLLM."""
    return str(request.param)


@pytest.fixture(scope="module")
def ours(version: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Told]:
    """What the simulator tells."""
    return simulated(version, tmp_path_factory.mktemp(f"sim-{version}"))


@pytest.fixture(scope="module")
def theirs(version: str) -> dict[str, Told]:
    """What a real server told when it was recorded."""
    return accepted.recorded(version)


def of_both(theirs: dict[str, Told], ours: dict[str, Told]) -> list[Difference]:
    """Every difference. An exchange that is newer than the recording is left to the live comparison."""
    both = theirs.keys() & ours.keys()
    return list(differences({key: theirs[key] for key in both}, {key: ours[key] for key in both}))


@pytest.fixture(scope="module")
def found(theirs: dict[str, Told], ours: dict[str, Told]) -> list[Difference]:
    """Every difference."""
    return of_both(theirs, ours)


def test_every_difference_has_a_reason(version: str, found: list[Difference]) -> None:
    assert accepted.unexplained(version, found) == []


def test_no_accepted_difference_is_gone(version: str, found: list[Difference]) -> None:
    assert accepted.gone(version, found) == []


def test_most_exchanges_were_recorded(theirs: dict[str, Told], ours: dict[str, Told]) -> None:
    """Else the recording is too old to tell much: `python -m tests.agree VERSION --save`."""
    assert len(theirs.keys() & ours.keys()) >= 0.95 * len(theirs.keys() | ours.keys())


def test_all_kinds_of_answers_are_compared(theirs: dict[str, Told]) -> None:
    """Bodies, streams of three protocols, refusals and metrics."""
    told = list(theirs.values())
    assert len(told) > 900
    for least, part in (
        (60, "event finish "),
        (3, "event response.created "),
        (3, "event message_start "),
        (150, "body .error.message"),
        (10, "grown vllm:e2e_request_latency_seconds_count"),
        (1, "family vllm:"),
        (900, "header content-type"),
    ):
        assert sum(any(name.startswith(part) for name in parts) for parts in told) >= least, part


@pytest.mark.parametrize(
    ("area", "defect"),
    [
        ("chat", "chat.object-missing"),
        ("stream", "streaming.no-done"),
        ("metrics", "metrics.prompt-counted-twice"),
    ],
)
def test_a_simulator_that_is_broken_agrees_no_more(area: str, defect: str, tmp_path: Path) -> None:
    theirs, area_alone = accepted.recorded(VERSIONS[0]), f"--vllm-check={area}"
    for name in ("healthy", "broken"):
        (tmp_path / name).mkdir()
    healthy = simulated(VERSIONS[0], tmp_path / "healthy", area_alone)
    broken = simulated(VERSIONS[0], tmp_path / "broken", area_alone, f"--vllm-defect={defect}")

    assert accepted.unexplained(VERSIONS[0], of_both(theirs, healthy)) == []
    assert accepted.unexplained(VERSIONS[0], of_both(theirs, broken)) != []
