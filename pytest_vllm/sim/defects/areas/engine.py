"""Defects of the engine: speed, cache, cancellation, death."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.make import slower
from pytest_vllm.sim.defects.registry import add, defect

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.engine.core import Engine
    from pytest_vllm.sim.engine.sequence import Sequence

slower("performance.half-speed", "Every step takes twice as long as the hardware allows.", 2.0)


@defect("cache.never-hits", on="cache_hits", faults=["CACHE-001"])
def never_hits(blocks: int, sequence: Sequence) -> int:
    """The prefix cache is asked but never finds anything."""
    del blocks, sequence
    return 0


@defect("cancellation.ignored", on="cancel")
def cancel_ignored(ignored: bool, sequence: Sequence) -> bool:
    """A request whose client has left goes on to its end."""
    del ignored, sequence
    return True


@defect("health.hangs-after-ten", on="finished", area="health", faults=["ROBUST-001"])
def hangs_after_ten(number: int, server: Server) -> int:
    """After ten generations the engine computes nothing any more, and /health stays 200."""
    if number == 10:
        server.engine.paused = True
    return number


def _dies(number: int, server: Server) -> int:
    if number == 10:
        server.engine.die()
    return number


def _still_well(status: int, engine: Engine) -> int:
    del status, engine
    return 200


add(
    "health.dead-engine-well",
    "After ten generations the engine core is dead, but /health goes on answering 200.",
    {"finished": _dies, "health": _still_well},
    area="health",
)


def _memory(freed: bool, sequence: Sequence) -> Any:
    return freed and len(sequence.prompt) % 2 == 0


add(
    "memory.blocks-leak",
    "Every other finished request keeps its KV blocks.",
    {"freed": _memory},
    area="metrics",
)
