"""Why two clients tell different times to the first token: requests that come in waves, or in turn.

    python -m tests.bench.waves URL NAME MODEL VLLM_PYTHON [ROUNDS]

URL is a vLLM that runs on this machine, NAME what requests call its model, MODEL the model's folder,
VLLM_PYTHON a Python that has vLLM. The load of the second opinion is performed by our driver and by
`vllm bench serve`, one after the other: with answers of different lengths, as the second opinion asks them,
and with answers that are all alike. Those end together, so that the next prompts come together; our driver
shortens the first ones against that, and is also made to leave it. Beside each stands what the server tells.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from unittest.mock import patch

import httpx

from pytest_vllm.measure import secondopinion
from pytest_vllm.measure.run import perform
from pytest_vllm.measure.sender import Sender
from pytest_vllm.wire.metrics import Metrics
from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST = "vllm:time_to_first_token_seconds"
_FIRST = Sender.ask_first


@dataclass(frozen=True)
class Bench:
    """Where both clients ask."""

    url: str
    name: str
    model: str
    python: str

    def ours(self, *, varied: bool, waves: bool) -> float:
        """Our median time to the first token, in seconds."""
        load = secondopinion.workload()
        (kind,) = load.kinds
        kind = replace(kind, varied=kind.varied if varied else 0.0)
        whole = (lambda sender, _, then: sender.ask(sender.start, then=then)) if waves else _FIRST
        with patch.object(Sender, "ask_first", whole):
            server = Server(self.url, self.name)
            found = perform("waves", replace(load, kinds=(kind,), canary=False), server)
        return secondopinion.ours_of(found)["ttft"]

    def theirs(self, *, varied: bool) -> float:
        """The same of `vllm bench serve`. Raises CalledProcessError."""
        program = [self.python, "-m", "vllm.entrypoints.cli.main", "bench", "serve"]
        words = secondopinion.command(program, self.url, self.model, self.name)
        if not varied:
            words[words.index("--random-range-ratio") + 1] = "0.0"
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return float(json.loads(done.stdout)["median_ttft_ms"]) / 1e3

    def told(self) -> Metrics:
        """What the server counts."""
        return Metrics(httpx.get(f"{self.url}/metrics", trust_env=False, timeout=30).text)


def main(url: str, name: str, model: str, python: str, rounds: str = "3") -> int:
    """Print a table in Markdown, a column a round: the client's median / the server's mean, in ms."""
    bench = Bench(url, name, model, python)
    loads: dict[str, Callable[[], float]] = {
        "different lengths, ours": lambda: bench.ours(varied=True, waves=False),
        "different lengths, vllm bench serve": lambda: bench.theirs(varied=True),
        "all alike, ours, the first ones shortened": lambda: bench.ours(varied=False, waves=False),
        "all alike, ours, in waves": lambda: bench.ours(varied=False, waves=True),
        "all alike, vllm bench serve": lambda: bench.theirs(varied=False),
    }
    rows: dict[str, list[str]] = {load: [] for load in loads}
    for number in range(int(rounds)):
        for load, measure in loads.items():
            before = bench.told()
            mine = measure()
            after = bench.told()
            count, total = (after.delta(before, f"{FIRST}_{what}") or 0.0 for what in ("count", "sum"))
            rows[load].append(f"{mine * 1e3:.0f} / {total / max(count, 1) * 1e3:.0f}")
            print(f"waves: round {number + 1}: {load}: {rows[load][-1]} ms", file=sys.stderr, flush=True)
    print(f"| answers, client | {' | '.join(f'round {at + 1}' for at in range(int(rounds)))} |")
    print("| --- " * (int(rounds) + 1) + "|")
    for load, cells in rows.items():
        print(f"| {load} | {' | '.join(cells)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
