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
        bundled: those of the selected ones that come with pytest-vllm.
        own_meant: own tests that use a server and were collected.
        own_selected: those of them that are left.
        alone: whether no bundled check was asked for.
        controls: the verdict of every control check that was run; empty where one said nothing.
    """

    meant: int = 0
    selected: int = 0
    bundled: int = 0
    own_meant: int = 0
    own_selected: int = 0
    alone: bool = False
    controls: list[str] = field(default_factory=list)

    @property
    def partial(self) -> str:
        """How much of what the options ask for is judged, in words; empty where it is all."""
        counts = ((self.selected, self.meant, "checks"), (self.own_selected, self.own_meant, "own tests"))
        less = [f"{left} of {all_} {what}" for left, all_, what in counts if left < all_]
        return f"partial: {', '.join(less)}" if less else ""

    def numbers(self) -> list[int]:
        """What a worker counted, for `add`."""
        return [self.meant, self.selected, self.bundled, self.own_meant, self.own_selected]

    def add(self, numbers: Iterable[int], controls: Iterable[str]) -> None:
        """Take in what a worker counted; every worker collects the same items."""
        most = [max(pair) for pair in zip(self.numbers(), numbers, strict=True)]
        self.meant, self.selected, self.bundled, self.own_meant, self.own_selected = most
        self.controls += controls

    def doubts(self, results: Iterable[Result], *, own: int | None = None, faulty: int = 0) -> list[str]:
        """Why the answer of this run is not GO although nothing failed, in words.

        Args:
            results: every check that left a verdict.
            own: how many own tests that use a server have run, where passing ones count.
            faulty: how many own checks have a set-up that failed by itself.
        """
        if not self.selected and own is None:
            return []
        found = []
        if faulty:
            checks = "own check has" if faulty == 1 else "own checks have"
            found.append(f"{faulty} {checks} an error in the set-up, see ERRORS")
        if own is not None and own < self.own_selected:
            missing = self.own_selected - own
            found.append(f"{missing} of {self.own_selected} own tests have not run")
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
