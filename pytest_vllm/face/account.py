"""What a run was to check and what it did: no check gets lost without a word."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_vllm.decide.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_vllm.decide.verdict import Result


@dataclass
class Account:
    """Checks of this run, counted where they are collected and where they run.

    Args:
        meant: checks that were collected and that the options ask for.
        selected: those of them that were left by `-k`, `-m` and plugins.
        controls: the verdict of every control check that was run; empty where one said nothing.
    """

    meant: int = 0
    selected: int = 0
    controls: list[str] = field(default_factory=list)

    @property
    def partial(self) -> str:
        """How much of what the options ask for is judged, in words; empty where it is all."""
        return f"partial: {self.selected} of {self.meant} checks" if self.selected < self.meant else ""

    def doubts(self, results: Iterable[Result]) -> list[str]:
        """Why the answer of this run is not GO although nothing failed, in words."""
        if not self.selected:
            return []
        found = []
        lost = self.selected - len({result.nodeid for result in results})
        if lost > 0:
            found.append(
                f"{lost} of {self.selected} selected checks left no verdict: the run was stopped early, or "
                "a plugin swallowed them"
            )
        if not self.controls or any(verdict != Verdict.FAIL for verdict in self.controls):
            said = ", ".join(sorted({verdict or "nothing" for verdict in self.controls})) or "nothing"
            found.append(
                f"a control check that must fail said {said}, so failures are not seen here: leave out "
                "python -O and plugins that run tests themselves"
            )
        return found
