"""Programs of others in the bench: what they report is read, and why there is none becomes their row."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.bench.client import HEAD, Row, program
from tests.bench.tools import INSTALLED, VLLM, Load, NoFigures, Told, Tool, _refusal, install
from tests.bench.truth import Pair, Truth

if TYPE_CHECKING:
    from collections.abc import Callable

#: As each tool writes it, shortened.
WRITTEN: dict[str, tuple[str, dict[str, Any]]] = {
    "guidellm": (
        "found.json",
        {
            "benchmarks": [
                {
                    "metrics": {
                        "time_to_first_token_ms": {
                            "successful": {"percentiles": {"p50": 61.0, "p99": 137.0}}
                        },
                        "inter_token_latency_ms": {"successful": {"percentiles": {"p50": 10.0, "p99": 12.0}}},
                    }
                }
            ]
        },
    ),
    "aiperf": (
        "found/profile_export_aiperf.json",
        {
            "time_to_first_token": {"unit": "ms", "p50": 61.0, "p99": 137.0},
            "inter_token_latency": {"unit": "ms", "p50": 10.0, "p99": 10.1},
            "inter_chunk_latency": {"unit": "ms", "p50": 10.0, "p99": 12.0},
        },
    ),
    "vllm bench serve": (
        "found.json",
        {"p50_ttft_ms": 61.0, "p99_ttft_ms": 137.0, "p50_itl_ms": 10.0, "p99_itl_ms": 12.0},
    ),
}


@pytest.mark.parametrize("tool", [*INSTALLED.values(), VLLM], ids=lambda tool: tool.name)
def test_what_a_tool_writes_is_read_in_seconds(tool: Tool, tmp_path: Path) -> None:
    name, values = WRITTEN[tool.name]
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(json.dumps(values))
    told = tool.read(tmp_path)

    assert (told.ttft.p50, told.ttft.p99) == pytest.approx((0.061, 0.137))
    assert (told.itl.p50, told.itl.p99) == pytest.approx((0.010, 0.012))


def never(folder: Path) -> Told:
    raise KeyError("ttft")


def scripted(source: str, read: Callable[[Path], Told] = never) -> Tool:
    """A tool that is a line of Python."""
    return Tool("scripted", lambda _: ["-c", source], read)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import sys; sys.exit('no such endpoint')", "ended with status 1: no such endpoint"),
        (
            "raise ImportError('No module named torch')",
            "ended with status 1: ImportError: No module named torch",
        ),
        ("print('done')", "no figures in what it wrote (KeyError('ttft')): done"),
        ("pass", "no figures in what it wrote (KeyError('ttft')): it said nothing"),
    ],
)
def test_a_tool_that_fails_says_why_in_a_line(source: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(NoFigures) as raised:
        scripted(source).run(Path(sys.executable), Load("http://127.0.0.1:1", 4, 10, tmp_path))

    assert str(raised.value) == why


def test_a_tool_that_hangs_is_given_up_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.bench.tools.LONGEST", 1.0)
    child = "import time; print('alive', flush=True); time.sleep(600)"
    source = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    with pytest.raises(NoFigures, match=r"^did not end within 1 s: "):
        scripted(source).run(Path(sys.executable), Load("http://127.0.0.1:1", 4, 10, tmp_path))


def test_a_package_that_is_not_there_is_told(tmp_path: Path) -> None:
    """By pip's own reason; nothing is looked up in an index for a folder."""
    with pytest.raises(NoFigures, match=r"^not installed: .*nothing-here"):
        install(str(tmp_path / "nothing-here"), tmp_path)
    with pytest.raises(NoFigures, match=r"^not installed: .*no-python"):
        install("x", tmp_path, "/no-python")


def test_a_package_for_a_newer_python_says_which() -> None:
    """As pip tells it."""
    told = (
        "ERROR: Ignored the following versions that require a different python version: "
        "0.1.1 Requires-Python >=3.12; 0.7.0 Requires-Python >=3.12\n"
        "ERROR: Could not find a version of x\nERROR: No matching distribution found for x\n"
    )
    here = ".".join(map(str, sys.version_info[:3]))

    assert _refusal(told, sys.executable) == f"it needs Python >=3.12, this is {here} (--tool-python)"
    assert _refusal("ERROR: No matching distribution found for x\n", sys.executable).endswith("found for x")


def test_a_row_with_a_reason_has_no_figures(tmp_path: Path) -> None:
    """The server is a real one: the tool alone fails."""
    row = program(scripted("import sys; sys.exit('no | way')"), Path(sys.executable), tmp_path, 64)

    assert row.text == "| scripted | 64 | ended with status 1: no way | | | | | | |"
    assert row.text.count("|") == HEAD[0].count("|")


def test_a_row_of_figures() -> None:
    truth = Truth(
        [
            {"arrived": 0.0, "written": [0.05, 0.06, 0.07]},
            {"arrived": 0.06, "written": [0.11, 0.12, 0.13]},
            {"arrived": 0.08, "written": [0.13, 0.14, 0.15]},
        ]
    )
    row = Row("ours", 3, "", Pair(0.051, 0.052), Pair(0.01, 0.011), truth, 20e-6, ("one", "two"))

    assert (truth.at_once, truth.words) == (2, 9)
    assert row.text == (
        "| ours | 3 | 2 | 51.0 / 52.0 | 50.0 / 50.0 | 10.0 / 11.0 | 10.0 / 10.0 | 50,000 | one; two |"
    )
