"""vLLM's own benchmark beside our driver: how it is called, how it is read, what a difference says."""

from __future__ import annotations

import io
import json
import subprocess
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.launch.arguments import bench_of
from pytest_vllm.measure.measured import Measured
from pytest_vllm.measure.samples import Sample
from pytest_vllm.measure.secondopinion import SCRIPT, command, read
from pytest_vllm.measure.workload import Workload
from pytest_vllm.measuring import second_opinion
from pytest_vllm.report.progress import Progress

if TYPE_CHECKING:
    from pathlib import Path

#: As vLLM 0.32.0 saves it, shortened.
RESULT: dict[str, Any] = {
    "backend": "openai",
    "completed": 4,
    "output_throughput": 40.0,
    "median_ttft_ms": 100.0,
    "median_tpot_ms": 11.0,
    "mean_ttft_ms": 140.0,
}


def measured() -> Measured:
    """Four answers one after the other, 0.1 s to the first of eleven tokens, 0.01 s between two."""
    deltas = [0.1 + 0.01 * n for n in range(11)]
    ones = tuple(
        Sample("x", float(at), float(at), None, [at + one for one in deltas], at + 0.25, tokens=11)
        for at in range(4)
    )
    return Measured("second-opinion.ours", Workload(), samples=ones, alone=("It is Paris.", "It is Paris."))


def test_both_opinions_by_the_same_definitions() -> None:
    found = read(0, json.dumps(RESULT), measured())

    assert found.theirs == pytest.approx({"ttft": 0.1, "tpot": 0.011, "aggregate-tok-s": 40.0})
    assert found.ours == pytest.approx({"ttft": 0.1, "tpot": 0.01, "aggregate-tok-s": 44 / 3.25})
    assert found.completed == 4


def test_only_what_differs_by_more_than_15_percent_is_told() -> None:
    assert read(0, json.dumps(RESULT), measured()).apart() == [
        "aggregate-tok-s: ours 13.54, vllm bench serve 40 (+195%)"
    ]


@pytest.mark.parametrize(
    ("status", "text", "told"),
    [
        (2, "No module named 'vllm.benchmarks'", "status 2: No module named"),
        (None, "", "did not end within"),
        (0, "Traceback", "no result of vllm bench serve"),
        (0, '{"completed": 4}', "median_ttft_ms"),
    ],
)
def test_what_is_no_result(status: int | None, text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read(status, text, measured())


@pytest.mark.parametrize(
    ("serve", "bench"),
    [
        (("vllm", "serve"), ("vllm", "bench", "serve")),
        (
            ("py", "-m", "vllm.entrypoints.openai.api_server"),
            ("py", "-m", "vllm.entrypoints.cli.main", "bench", "serve"),
        ),
        (("start.sh",), None),
    ],
)
def test_the_server_s_own_program_benchmarks(serve: tuple[str, ...], bench: tuple[str, ...] | None) -> None:
    assert bench_of(serve) == bench


def test_the_result_is_all_that_is_printed(tmp_path: Path) -> None:
    fake = tmp_path / "bench"
    fake.write_text('#!/bin/sh\necho noise\nwhile [ "$1" != --result-dir ]; do shift; done\n')
    with fake.open("a") as script:
        script.write('printf \'{"completed": 1}\' >"$2/$4"\n')
    fake.chmod(0o755)
    words = command([str(fake)], "http://127.0.0.1:8000", "m", "m")

    assert SCRIPT in words
    assert json.loads(subprocess.run(words, capture_output=True, check=True).stdout) == {"completed": 1}


def test_a_launcher_that_cannot_is_told_once() -> None:
    said = io.StringIO()
    state: Any = SimpleNamespace(server=SimpleNamespace(launcher="attach"))
    handle: Any = SimpleNamespace()

    assert second_opinion(state, handle, Progress(said)) == {
        "not-run": "the launcher attach has none to run; docker, podman and process have"
    }
    assert "vllm bench serve: not run: the launcher attach" in " ".join(said.getvalue().split())
