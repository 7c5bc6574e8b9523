"""Models on GPUs, as vLLM logged their memory or somebody published it, and the same computed.

python -m tests.unit.profile.memory.pairs    # the table of docs/roofline.md
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_vllm.profile.derived import Figures
from pytest_vllm.profile.hardware import GIB, load_hardware
from pytest_vllm.profile.model import Profile, ServerPart
from pytest_vllm.profile.modelfile import load_model
from pytest_vllm.profile.recognised import by_name

HERE = Path(__file__).parent
NOWHERE = HERE / "no-project"


@dataclass(frozen=True)
class Pair:
    """A row of pairs.toml."""

    model: str
    hardware: str
    version: str
    args: dict[str, Any]
    measured: dict[str, float]
    tolerance: float
    url: str
    served: str = ""
    on: str = ""
    why: str = ""

    def figures(self) -> Figures:
        """What is computed for it."""
        model = by_name(self.model) or load_model(self.model, NOWHERE)
        server = ServerPart(model=self.model, version=self.version, args=self.args)
        return Figures(Profile(name="pair", server=server), load_hardware(self.hardware, NOWHERE), model)

    def computed(self) -> dict[str, float]:
        """Each measured figure, computed; tokens follow from the bytes that were logged as available."""
        figures = self.figures()
        found: dict[str, float] = {}
        for name in self.measured:
            if name == "weights":
                found[name] = figures.weight_bytes / GIB
            elif name == "per-token":
                found[name] = figures.kv_bytes_per_token
            elif name == "needed":
                found[name] = (figures.request_bytes or 0) / GIB
            elif name == "tokens" and figures.pool:
                found[name] = figures.pool.tokens(self.measured["available"] * GIB, figures.serving)
        return found


def pairs() -> list[Pair]:
    """All rows."""
    rows = tomllib.loads((HERE / "pairs.toml").read_text("utf-8"))["pair"]
    return [Pair(**row) for row in rows]


_UNITS = {"weights": "GiB of weights", "needed": "GiB for one sequence", "per-token": "bytes per token"}


def table() -> list[str]:
    """Rows of the table: model, GPU, figure, logged, computed, where it was logged."""
    lines = ["| model | on | what | logged | computed | off by | where |", f"|{' --- |' * 7}"]
    for pair in pairs():
        split = pair.args.get("tensor-parallel-size", 1)
        where = pair.on or f"{split} x {pair.hardware}"
        for name, ours in pair.computed().items():
            logged = pair.measured[name]
            what = _UNITS.get(name) or f"tokens in {pair.measured['available']:g} GiB"
            model = f"{pair.model} ({pair.served})" if pair.served else pair.model
            shown = [
                f"{value:,.2f}" if "GiB of" in what or name == "needed" else f"{value:,.0f}"
                for value in (logged, ours)
            ]
            row = [model, where, what, *shown, f"{ours / logged - 1:+.1%}", pair.url]
            lines.append(f"| {' | '.join(row)} |")
    return lines


if __name__ == "__main__":
    print("\n".join(table()))
