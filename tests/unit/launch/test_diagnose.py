"""The root cause of a failed start, from real logs and from the table itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_vllm.launch.causes import Cause, causes
from pytest_vllm.launch.diagnose import (
    LAST_LINES,
    boot_error,
    daemon_error,
    first_exception,
    root_cause,
)
from pytest_vllm.launch.logtext import unprefixed
from pytest_vllm.launch.protocol import Exit

#: Logs of real starts of vLLM 0.32.0 for the CPU that were made to fail; each is named after its cause.
LOGS = sorted((Path(__file__).parent / "logs").glob("*.log"))


def lines_of(path: Path) -> list[str]:
    """As a handle gives them."""
    return [line for line in path.read_text("utf-8").splitlines() if line.strip()]


@pytest.mark.parametrize("path", [log for log in LOGS if log.stem != "healthy"], ids=lambda path: path.stem)
def test_real_failures_are_named(path: Path) -> None:
    """The first cause, however many tracebacks and wrappers follow it."""
    error = boot_error("it died", lines_of(path), Exit(1))
    found = root_cause(lines_of(path))

    assert found is not None
    assert found.cause.id == path.stem
    assert error.means == found.means
    assert "server.log:" in error.evidence[0]


def test_healthy_start_shows_no_cause() -> None:
    """None of the patterns takes a line of a good start for a failure."""
    assert root_cause(lines_of(Path(__file__).parent / "logs/healthy.log")) is None


@pytest.mark.parametrize("cause", causes(), ids=lambda cause: cause.id)
def test_entries_of_the_table(cause: Cause) -> None:
    """Each has an example that it is the first to match, a meaning and a step to take, all places filled."""
    found = root_cause([cause.example])

    assert found is not None
    assert found.cause.id == cause.id
    assert cause.means
    assert found.tries
    assert cause.source
    named = set(re.findall(r"\{(\w+)\}", " ".join([cause.means, *cause.tries])))
    known = {name.rstrip("23") for name in cause.pattern.groupindex} | {"near", "GPU"}
    assert named <= known


def test_ids_are_unique() -> None:
    """A cause is told by its id."""
    names = [cause.id for cause in causes()]

    assert len(names) == len(set(names))


def test_figures_fill_meaning_and_steps() -> None:
    """What the line says, in the terms of the profile."""
    line = f"(EngineCore pid=7) ERROR 11-27 20:50:01 [core.py:9] {NO_ROOM}"
    error = boot_error("it died", [line], Exit(1))

    assert error.evidence == (f"{NO_ROOM}   (server.log:1)",)
    assert error.means.startswith("one request of max-model-len 32768 needs 9.1 GiB of KV cache and 6.4 GiB")
    assert error.try_[0] == "[server.args] max-model-len = 22000 or less"


NO_ROOM = (
    "ValueError: To serve at least one request with the models's max seq len (32768), (9.1 GiB KV cache "
    "is needed, which is larger than the available KV cache memory (6.4 GiB). Based on the available "
    "memory, the estimated maximum model length is 22000."
)


def test_step_without_its_figure_is_left_out() -> None:
    """An older message without the estimate gives the other steps only."""
    error = boot_error("it died", [NO_ROOM.partition(" Based on")[0]], Exit(1))

    assert not [step for step in error.try_ if "max-model-len =" in step]
    assert error.try_


def test_nearest_choice_is_offered() -> None:
    """`hermez` was meant to be `hermes`."""
    error = boot_error("it died", [next(c.example for c in causes() if c.id == "parser-unknown")], Exit(1))

    assert error.try_[0] == "did you mean hermes?"


def test_warning_gives_way_to_an_error() -> None:
    """A line that only warns is the cause only when nothing else is."""
    warning = "WARNING 11-27 20:50:01 [x.py:1] OSError: [Errno 28] No space left on device: '/tmp'"
    failure = "ValueError: No available memory for the cache blocks."

    assert root_cause([warning, failure]).cause.id == "kv-cache-none"  # type: ignore[union-attr]
    assert root_cause([warning]).cause.id == "disk-full"  # type: ignore[union-attr]


def test_quoted_source_and_usage_are_no_evidence() -> None:
    """Tracebacks quote code with messages in it; usage texts name every flag."""
    lines = [
        '  File "x.py", line 1, in main',
        '    raise TypeError("Error: --enable-auto-tool-choice requires --tool-call-parser")',
        "usage: vllm serve [-h]",
        "                  [--x address already in use]",
        "INFO 11-27 20:50:01 [x.py:1] Segmentation fault",
    ]

    assert root_cause(lines) is None


def test_unknown_failure_shows_first_exception_and_last_lines() -> None:
    """The wrapper that names no cause is passed over."""
    lines = [
        "(EngineCore pid=1) ERROR 11-27 20:50:01 [core.py:9] Traceback (most recent call last):",
        "(EngineCore pid=1) ERROR 11-27 20:50:01 [core.py:9] ZeroDivisionError: division by zero",
        *(f"line {number}" for number in range(40)),
        "RuntimeError: Engine core initialization failed. See root cause above.",
    ]
    error = boot_error("it died", lines, Exit(1))

    assert first_exception(lines) == 1
    assert error.evidence[1] == "ZeroDivisionError: division by zero   (server.log:2)"
    assert error.evidence[-1] == lines[-1]
    assert len(error.evidence) == LAST_LINES + 3
    assert error.means == ""
    assert error.try_


@pytest.mark.parametrize(
    ("ended", "cause"),
    [
        (Exit(137, oom=True), "the kernel killed the server because the machine"),
        (Exit(-9, signal="SIGKILL"), "something killed the server with SIGKILL"),
        (Exit(139), "native code crashed"),
        (Exit(-4, signal="SIGILL"), "the build uses processor instructions"),
    ],
)
def test_exit_status_tells_where_the_log_does_not(ended: Exit, cause: str) -> None:
    """A killed server has no last words."""
    assert boot_error("it died", ["INFO fine so far"], ended).means.startswith(cause)


def test_known_cause_outweighs_a_signal() -> None:
    """A server that logged why and was then killed is explained by its log."""
    error = boot_error("it died", [NO_ROOM], Exit(-9, signal="SIGKILL"))

    assert error.means.startswith("one request of max-model-len 32768")


def test_words_of_a_daemon() -> None:
    """Kept as evidence, explained when known."""
    error = daemon_error("refused", 'could not select device driver "" with capabilities: [[gpu]]')

    assert error.evidence == ('could not select device driver "" with capabilities: [[gpu]]',)
    assert "NVIDIA container toolkit" in error.means
    assert daemon_error("refused", "never heard", means="as said").means == "as said"


@pytest.mark.parametrize(
    "line",
    [
        "(EngineCore pid=15) ERROR 11-27 20:50:01 [core.py:9] KeyError: 1",
        "(EngineCore_DP0 pid=15) ERROR 11-27 20:50:01 [core.py:9] KeyError: 1",
        "ERROR 11-27 20:50:01 [core.py:9] KeyError: 1",
        "(APIServer pid=1) KeyError: 1",
        "KeyError: 1",
    ],
)
def test_prefixes_of_all_versions_are_taken_off(line: str) -> None:
    """With and without process, level, date and file."""
    assert unprefixed(line) == "KeyError: 1"
