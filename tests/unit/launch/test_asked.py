"""Beside a server that started: a stop that was asked for, another program's error."""

from __future__ import annotations

from pathlib import Path

from pytest_vllm.launch.diagnosis import Sure, diagnose

WELL = (Path(__file__).parent / "logs/healthy.log").read_text("utf-8").splitlines()
TOLD = (
    "(EngineCore pid=7) INFO 11-27 20:51:00 [core.py:1214] "
    "[shutdown] EngineCore: trigger received signal=SIGTERM"
)
MISSED = (
    "(APIServer pid=3) ERROR 11-27 20:51:01 [async_llm.py:704] "
    "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above)."
)
FATAL = (
    "(EngineCore pid=7) ERROR 11-27 20:50:59 [core.py:1134] EngineCore encountered a fatal error.",
    (
        "(EngineCore pid=7) ERROR 11-27 20:50:59 [core.py:1134] "
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
    ),
)
SCRIPT = (
    "Traceback (most recent call last):",
    '  File "/home/me/bench.py", line 3, in <module>',
    "AttributeError: 'Properties' object has no attribute 'total_mem'",
)


def test_an_engine_that_is_told_to_stop() -> None:
    """The front end misses it; nothing failed."""
    assert diagnose([*WELL, TOLD, MISSED]).sure is Sure.NO_FAULT


def test_an_engine_that_failed_before() -> None:
    """It is stopped because it failed: that stays the cause."""
    assert diagnose([*WELL, *FATAL, TOLD, MISSED]).cause == "illegal-memory-access"


def test_a_start_that_is_told_to_stop() -> None:
    """It did not come to its end, and the reason lies outside."""
    found = diagnose([*WELL[:8], TOLD, MISSED])

    assert (found.sure, found.cause) == (Sure.LIKELY, "stopped-from-outside")


def test_another_programs_error() -> None:
    """Of no consequence beside a server that names its processes; a question where none does."""
    assert diagnose([*WELL, *SCRIPT]).sure is Sure.NO_FAULT
    assert diagnose([*WELL, "ERROR 11-27 20:50:59 [core.py:1] it failed", *SCRIPT]).sure is Sure.UNKNOWN


def test_an_error_that_hands_another_on() -> None:
    """Its last clause is the cause, whoever quotes it."""
    error = "torch._inductor.exc.InductorError: RuntimeError: Failed to run autotuning code block"
    rest = "CUDA out of memory. Tried to allocate 1.02 GiB."

    assert diagnose([f"(EngineCore pid=7) {error}: {rest}"]).cause == "cuda-out-of-memory"
