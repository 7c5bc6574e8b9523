"""Long logs: how much of them is read, and that nothing that tells is lost."""

from __future__ import annotations

import io
import sys

import pytest

from pytest_vllm.launch import logtext
from pytest_vllm.launch.diagnose_command import lines_of, said
from pytest_vllm.launch.diagnosis import Sure, diagnose
from pytest_vllm.launch.digest import KEPT, LONG, digest
from pytest_vllm.profile.errors import ProfileError
from tests.unit.launch.test_diagnosis import FOLDER
from tests.unit.launch.test_diagnosis import lines_of as lines_of_path

LOAD = "(APIServer pid=3) INFO 11-27 {:02}:{:02}:01 [loggers.py:1] Engine 000: {} tokens/s, Running: 1 reqs"
ANSWERED = '(APIServer pid=3) INFO:     10.0.0.7:{} - "POST /v1/chat/completions HTTP/1.1" 200 OK'
DIED = (
    "(EngineCore pid=7) ERROR 11-27 20:50:01 [core.py:9] Traceback (most recent call last):",
    '(EngineCore pid=7) ERROR 11-27 20:50:01 [core.py:9]   File "/v/vllm/w.py", line 8, in execute_model',
    "(EngineCore pid=7) ERROR 11-27 20:50:01 [core.py:9] torch.OutOfMemoryError: CUDA out of memory.",
)


def long_run(times: int) -> list[str]:
    """A healthy start, and a run of twice that many lines."""
    start = lines_of_path(FOLDER / "healthy.log")
    run = [line for n in range(times) for line in (LOAD.format(n % 24, n % 60, n), ANSWERED.format(n))]
    return [*start, *run]


def test_usual_logs_are_read_whole() -> None:
    """With their numbers."""
    lines = ["a", "a", *("a",) * 90]

    assert digest(lines) == list(enumerate(lines, 1))


def test_work_does_not_grow_with_repetitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times the log, not a line more to look at."""
    read: list[int] = []
    plain = logtext.plain

    def counted(line: str, *, levels: bool = True) -> str:
        read.append(1)
        return plain(line, levels=levels)

    monkeypatch.setattr(logtext, "plain", counted)
    counts = []
    for times in (LONG, 10 * LONG):
        lines = [*long_run(times), *DIED]
        read.clear()
        found = diagnose(lines)
        counts.append(len(read))

        assert (found.cause, found.quoted[0][0]) == ("memory-at-serving", len(lines))

    assert counts[0] == counts[1]
    assert counts[0] < LONG / 10


def test_work_is_bounded_for_what_never_repeats() -> None:
    """The begin and the end of it."""
    words = [f"{n:b}".replace("0", "x").replace("1", "y") for n in range(3 * LONG)]
    kept = digest(words)

    assert len(kept) == LONG
    assert kept[0] == (1, words[0])
    assert kept[-1] == (3 * LONG, words[-1])


def test_first_and_last_of_a_shape_are_kept() -> None:
    """A stamp or an id makes no other shape."""
    lines = [f"INFO 11-27 20:50:{n % 60:02} request cmpl-{n:08x}" for n in range(LONG + 1)]
    numbers = [number for number, _ in digest(lines)]

    assert numbers == [*range(1, KEPT + 1), *range(LONG + 2 - KEPT, LONG + 2)]


def test_a_long_healthy_run_has_no_fault() -> None:
    """Whatever is left out of it."""
    assert diagnose(long_run(LONG)).sure is Sure.NO_FAULT


def test_a_line_in_the_middle_is_not_lost() -> None:
    """The server died there, and something else kept on logging."""
    lines = long_run(LONG)
    other = [f"probe says: connection refused, {n}" for n in range(LONG)]
    found = diagnose([*lines, *DIED, *other])

    assert (found.cause, found.quoted[0][0]) == ("memory-at-serving", len(lines) + 3)


def test_a_dump_of_one_line_is_cut() -> None:
    """A batch that is dumped can be a line of megabytes."""
    assert len(logtext.spread(["ERROR Dumping " + "y" * 1_000_000])[0][1]) < 10_000


def test_a_program_is_read_in_bounds() -> None:
    """As a container's log is: its begin and its end, whatever its length."""
    script = (
        "import sys\n"
        "for n in range(100_000): print('line', n, file=(sys.stdout, sys.stderr)[n % 2], flush=n < 9)"
    )
    lines = said((sys.executable, "-c", script), head=100, tail=5_000)

    assert "line 0" in lines
    assert "line 99998" in lines
    assert sum(map(len, lines)) < 20_000


def test_a_program_that_fails_says_why() -> None:
    """With its own last words, or that it did not answer."""
    with pytest.raises(ProfileError, match="no such container"):
        said((sys.executable, "-c", "raise SystemExit('no such container')"))
    with pytest.raises(ProfileError, match="did not answer"):
        said((sys.executable, "-c", "import threading; threading.Event().wait()"), patience=0.1)
    with pytest.raises(ProfileError, match="not installed"):
        said(("no-such-program-here",))


@pytest.mark.parametrize("tail", [20, 50, 400])
def test_begin_and_end_of_a_stream(tail: int) -> None:
    """Every line keeps its number; those between are empty."""
    lines = [f"line {n}" for n in range(100)]
    found = lines_of(io.BytesIO("\n".join(lines).encode()), head=30, tail=tail)

    assert len(found) == 100
    assert found[:3] == lines[:3]
    assert found[-1] == "line 99"
    assert all(
        one in {"", line} or line.endswith(one) or line.startswith(one)
        for one, line in zip(found, lines, strict=True)
    )
