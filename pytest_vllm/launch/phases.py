"""Which part of its start a vLLM is in, read from its log with the table `phases.toml`."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_vllm.launch.guarded import Shapes
from pytest_vllm.launch.remembered import remembered

_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_STEPS = [(row["phase"], row.get("tells", "")) for row in _TABLE["step"]]
_SHAPES = Shapes(row["pattern"] for row in _TABLE["step"])
_FACTS = [*_TABLE["facts"]]
_FIGURES = Shapes(_TABLE["facts"].values())

#: Phases in the order in which a start goes through them; it never goes back.
ORDER: tuple[str, ...] = tuple(_TABLE["order"])
STARTING, STARTED = ORDER[0], ORDER[-1]
_SIZING = "sizing KV cache"


@dataclass(frozen=True)
class Step:
    """What one line tells: the phase, and what is worth telling of it ("7 of 15 shards")."""

    phase: str
    detail: str = ""


@remembered
def step_of(line: str) -> Step | None:
    """What a log line tells about the start; None for most lines."""
    for n, match in _SHAPES.fitting(line):
        phase, detail = _STEPS[n]
        groups = {name: _figure(text or "") for name, text in match.groupdict().items()}
        return Step(phase, detail.format_map(groups).strip())
    return None


@dataclass
class PhaseReader:
    """Follows a start through its log.

    Attributes:
        phase: the current one.
        detail: the newest detail of the current phase, "" when there is none.
        history: (phase, second of its begin).
        facts: figures read on the way, by name.
    """

    phase: str = STARTING
    detail: str = ""
    history: list[tuple[str, float]] = field(default_factory=lambda: [(STARTING, 0.0)])
    facts: dict[str, Any] = field(default_factory=dict)

    def read(self, line: str, at: float) -> None:
        """Take a log line that came `at` seconds after the start."""
        for n, match in _FIGURES.fitting(line):
            self.facts[_FACTS[n]] = _value(match[1])
        step = step_of(line)
        if step is None or ORDER.index(step.phase) < ORDER.index(self.phase):
            return
        if step.phase != self.phase:
            self.phase, self.detail = step.phase, ""
            self.history.append((step.phase, at))
        if step.detail:
            size = self.detail.partition(", ")[0]
            joined = size.endswith(" GiB") and self.phase == _SIZING and size != step.detail
            self.detail = f"{size}, {step.detail}" if joined else step.detail


def _figure(text: str) -> Any:
    """A number where it is one as Python writes it; `407,648` stays as vLLM shows it."""
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?\d+\.\d+", text) else text


def _value(text: str) -> Any:
    return _figure(text.replace(",", "")) if re.fullmatch(r"[\d,]+", text) else _figure(text)
