"""The simulator's own options, beside vLLM's arguments."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_vllm.sim.versions import DEFAULT


@dataclass
class Options:
    """The simulator's own options.

    `speed` "auto" lets slow hardware run faster than life; `step` above 0 is the time of every engine step in
    virtual seconds, whatever it computes; `proxy` above 0 is a port
    where a proxy listens in front of the server.
    """

    version: str = DEFAULT
    hardware: str = ""
    model: str = ""
    seed: int = 0
    speed: str = "auto"
    step: float = 0.0
    proxy: int = 0
    defects: list[str] = field(default_factory=list)
