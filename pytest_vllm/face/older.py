"""The server that a run is compared with: which it is, and what it showed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_vllm.decide.verdict import Result
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.run.interleaved import Interleaved


@dataclass
class Older:
    """An older server. It is recorded and judged as the one under test is, and counts for nothing by itself.

    Args:
        profile: how it is reached or started.
        together: whether both servers may live at once, so that their loads take turns.
        results: its judged checks.
        trouble: why nothing can be said of what it did before, in words; empty when it can.
        measured: both servers' speeds, measured in turns; None where they were not.
    """

    profile: Profile
    together: bool
    results: list[Result] = field(default_factory=list)
    trouble: str = ""
    measured: Interleaved | None = None

    @property
    def name(self) -> str:
        """The name of its profile."""
        return self.profile.name
