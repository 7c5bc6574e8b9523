"""What a real server answered to these suites, and their checks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.wire.recording import Recording, load
from tests.unit import judging

if TYPE_CHECKING:
    from tests.unit.judging import Check

AREAS = ("models", "tokenize", "chat", "completions", "logprobs", "usage")
HERE = Path(__file__).parent


def real() -> dict[str, Recording]:
    """What a real vLLM 0.32.0 answered, SmolLM2-135M on a CPU."""
    parts = (HERE / "vllm-0.32.0.jsonl").read_text("utf-8").split("\n\n")
    recordings = [load(part) for part in parts]
    return {one.key: one for one in recordings}


def checks() -> list[Check]:
    """Every check of these suites, once for each choice of its cases."""
    return [check for area in AREAS for check in judging.checks(area)]
