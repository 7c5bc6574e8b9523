"""Diagnoses of public failures, of altered logs and of healthy ones; and the page's table."""

from __future__ import annotations

import json
import random
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.cli import main
from pytest_vllm.launch.causes import causes
from pytest_vllm.launch.diagnosis import Sure, diagnose
from pytest_vllm.launch.kinds import kinds
from pytest_vllm.launch.logtext import owner, plain
from pytest_vllm.launch.protocol import Exit

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = Path(__file__).parent / "logs"
LOGS = sorted([*FOLDER.glob("*.log"), *FOLDER.glob("written/*.log")])
FAILED = [path for path in LOGS if path.stem != "healthy"]
UNSEEN = [
    case
    for path in sorted(FOLDER.glob("unseen-*.toml"))
    for case in tomllib.loads(path.read_text("utf-8"))["case"]
]
PAGE = Path(__file__).parents[3] / "docs/diagnose.md"


def lines_of(path: Path) -> list[str]:
    """The lines of a log."""
    return path.read_text("utf-8").splitlines()


@pytest.mark.parametrize("case", UNSEEN, ids=lambda case: case["thread"])
def test_public_failures(case: dict[str, Any]) -> None:
    """The cause that the thread came to, or an honest "unknown"."""
    found = diagnose(case["log"].splitlines(), hung=case.get("hung"))

    assert (found.cause or "unknown") in case["right"]
    assert found.quoted
    assert found.tries
    assert "wait" not in " ".join(found.tries)


@pytest.mark.parametrize("path", FAILED, ids=lambda path: path.stem)
def test_logs_of_the_repository(path: Path) -> None:
    """Each names its cause, without an exit status."""
    found = diagnose(lines_of(path))

    assert found.cause == path.stem.partition("@")[0]
    assert found.sure in {Sure.CERTAIN, Sure.LIKELY}


def coloured(lines: list[str]) -> list[str]:
    """As `FORCE_COLOR` writes them."""
    return [f"\x1b[1;36m{line}\x1b[0m" for line in lines]


def composed(lines: list[str]) -> list[str]:
    """As docker compose shows them."""
    return [f"vllm-1  | {line}" for line in lines]


def journalled(lines: list[str]) -> list[str]:
    """As journalctl shows them."""
    return [f"Aug 17 18:42:18 host vllm[8052]: {line}" for line in lines]


def podded(lines: list[str]) -> list[str]:
    """As `kubectl logs --prefix` shows them."""
    return [f"[pod/vllm-0/vllm] {line}" for line in lines]


def stored(lines: list[str]) -> list[str]:
    """As Docker's json-file driver stores them."""
    return [json.dumps({"log": f"{line}\n", "stream": "stderr"}) for line in lines]


def noisy(lines: list[str]) -> list[str]:
    """With calm lines between, from a process of its own."""
    chance = random.Random(7)  # noqa: S311
    calm = "(APIServer pid=3) INFO 11-27 20:50:01 [x.py:1] still here, no error"
    return [one for line in lines for one in ((line, calm) if chance.random() < 0.3 else (line,))]


def moved(lines: list[str]) -> list[str]:
    """Installed elsewhere, on another day."""
    return [
        line.replace(
            "/usr/local/lib/python3.12/dist-packages", "/opt/v/lib/python3.13/site-packages"
        ).replace("11-27", "02-03")
        for line in lines
    ]


def headless(lines: list[str]) -> list[str]:
    """Without its first fifth, when that is calm."""
    cut = len(lines) // 5
    return lines[cut:] if all(" INFO " in line or line.startswith("INFO") for line in lines[:cut]) else lines


@pytest.mark.parametrize(
    "alter",
    [coloured, composed, journalled, podded, stored, noisy, moved, headless],
    ids=lambda one: one.__name__,
)
def test_altered_logs(alter: Callable[[list[str]], list[str]]) -> None:
    """What carried a log, and what stands beside it, changes no diagnosis."""
    wrong = {}
    for path in LOGS:
        lines = [line for line in lines_of(path) if line.strip()]
        expected, found = diagnose(lines), diagnose(alter(lines))
        if (found.sure, found.cause) != (expected.sure, expected.cause):
            wrong[path.stem] = (found.cause, expected.cause)

    assert not wrong


def test_healthy_log() -> None:
    """A good start has no fault."""
    assert diagnose(lines_of(FOLDER / "healthy.log")).sure is Sure.NO_FAULT


def test_unknown_names_three_lines() -> None:
    """Never a wrong cause."""
    lines = [
        "(EngineCore pid=1) ERROR 11-27 20:50:01 [core.py:9] ZeroDivisionError: division by zero",
        "a",
        "b",
        "c",
    ]
    found = diagnose(lines)

    assert (found.sure, found.cause, len(found.quoted)) == (Sure.UNKNOWN, "", 3)
    assert found.quoted[0][0] == 1


def test_memory_kill_outweighs_the_log() -> None:
    """What the engine of containers knows for certain."""
    assert diagnose(["INFO fine"], Exit(137, oom=True)).cause == "killed-for-memory"


def test_start_that_goes_on_is_no_hang() -> None:
    """Only the last line of a start that stands still is a hang."""
    lines = [
        "INFO 01-01 10:00:00 [pynccl.py:1] vLLM is using nccl==2.27",
        "INFO 01-01 10:00:09 [x.py:1] Starting to load model m...",
    ]

    assert diagnose(lines, hung=True).sure is Sure.UNKNOWN
    assert diagnose(lines[:1], hung=True).cause == "collective-hang"


def test_whose_line_it_is() -> None:
    """The innermost process."""
    line = plain("vllm-1  | (APIServer pid=1) (EngineCore_DP0 pid=181) (Worker_TP1 pid=189) ERROR x")

    assert owner(line) == "Worker_TP1 pid=189"


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Plain and JSON, and the exit status."""
    assert main(["diagnose", str(FOLDER / "healthy.log")]) == 0
    assert "no fault found" in capsys.readouterr().out
    assert main(["diagnose", str(FOLDER / "port-in-use.log"), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["cause"] == "port-in-use"
    assert main(["diagnose", str(tmp_path / "none.log")]) == 4


def table() -> str:
    """The table of `docs/diagnose.md`."""
    rows = {cause.id: cause.means for cause in causes()}
    for kind in kinds():
        rows.setdefault(kind.cause.id, kind.cause.means)
    body = [f"| `{name}` | {means.replace('|', '/')} |" for name, means in sorted(rows.items())]
    return "\n".join(["| Cause | What it means |", "| --- | --- |", *body])


def test_page_lists_every_cause() -> None:
    """To renew it, put what this shows between the two marks."""
    text = PAGE.read_text("utf-8")
    between = text.partition("test_diagnosis.py -->")[2].partition("<!-- end of causes")[0]

    assert between.strip() == table()
