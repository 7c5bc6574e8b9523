"""What a real server answered to these suites."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.wire.recording import Recording, load

if TYPE_CHECKING:
    from collections.abc import Mapping

AREAS = ("streaming", "errors", "health", "metrics", "security", "cancellation")
HERE = Path(__file__).parent


@cache
def healthy(area: str) -> Mapping[str, Recording]:
    """What a real vLLM 0.32.0 answered to the requests of a suite, SmolLM2-135M on a CPU."""
    text = (HERE / "recordings" / f"{area}.jsonl").read_text("utf-8")
    head = '{"format": "pytest-vllm-recording"'
    parts = [f"{head}{part}" for part in text.split(head)[1:]]
    return {one.key: one for one in map(load, parts)}
