"""Tracebacks as Rich, IPython, notebooks, pytest, loguru and people write them are read as Python's own."""

from __future__ import annotations

import pytest

from pytest_vllm.launch.diagnosis import diagnose
from pytest_vllm.launch.framed import framed

LIBRARY, OWN = "/v/site-packages/vllm/v1/engine/core.py", "/v/site-packages/vllm/v1/core/sched/scheduler.py"
#: In words that a cause has, and that the traceback only shows as source.
SOURCE = 'raise OSError(24, "No space left on device")'

FORMS = {
    "IPython": [
        f"File {LIBRARY}:88, in EngineCore.step(self)",
        "     87 before()",
        f"---> 88 {SOURCE}",
        f"File {OWN}:12, in Scheduler.schedule(self, now)",
        "     12 last()",
    ],
    "notebook": [
        f"[{LIBRARY}](https://localhost:8080/#) in step(self)",
        f"-> 1161             {SOURCE}",
        f"[{OWN}](https://localhost:8080/#) in schedule(self, now)",
    ],
    "pytest": [f"{LIBRARY}:88: in step", f"    {SOURCE}", f"{OWN}:12: in schedule", "    last()"],
    "Rich": [
        "╭──────────────────── Traceback (most recent call last) ────────────────────╮",
        f"│ {LIBRARY}:88 in step                                                       │",
        f"│ ❱  88 │   {SOURCE}                                                         │",
        f"│ {OWN}:12 in schedule                                                       │",
        "╰────────────────────────────────────────────────────────────────────────────╯",
    ],
    "a person": [f".../{LIBRARY[3:]}, run -> step", f"{OWN}:12, schedule", f"    {SOURCE[:5]} x"],
    "a person's columns": [f"{LIBRARY}:88  step", f"{OWN}:12  schedule", "  last()"],
    "loguru": [
        f'> File "{LIBRARY}", line 88, in step',
        f"    {SOURCE}",
        "    │    └ <function step at 0x7f00>",
        f'  File "{OWN}", line 12, in schedule',
        "    last()",
    ],
}


@pytest.mark.parametrize("form", FORMS)
def test_the_frames_are_read(form: str) -> None:
    """The innermost one says where it broke; the sources beside them say nothing."""
    found = diagnose([*FORMS[form], "ZeroDivisionError: division by zero"])

    assert found.cause == "fault-in-scheduler"
    assert "schedule" in found.means or "scheduler.py" in found.means


def test_what_is_no_frame_stays() -> None:
    """A path with a number is not one, nor is a figure, a tree or a box that stands below none."""
    lines = [
        "/v/x.py:12: DeprecationWarning: old",
        "12 requests",
        "│ └ model",
        "> quoted",
        "",
        "File x.py is gone",
    ]

    assert framed(lines) == lines


def test_an_error_that_pytest_marks() -> None:
    """The mark goes; what a test prints below stays."""
    assert framed(["E   vllm.x.EngineDeadError: gone", "E       more"]) == [
        "vllm.x.EngineDeadError: gone",
        "E       more",
    ]
