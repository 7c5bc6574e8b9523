"""What became of a client, in words: its verdict, the steps that failed, and those that were left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm import Recording

WORKS, LIMITED, BROKEN, UNKNOWN = "works", "works with limits", "does not work", "not judged"


@dataclass(frozen=True)
class Outcome:
    """What a client's program reported.

    Args:
        version: the client's; empty when it was not there.
        missing: why it could not be run at all; empty when it was.
        ended: how its program ended before it had reported; empty when it reported.
        late: whether it was ended because its time was up.
        steps: step -> `passed` (None: nothing to judge) and `error`.
        left: step -> why it was not asked for.
        log: where its exchanges are kept.
        elsewhere: whom it wanted to reach besides the server.
    """

    version: str
    missing: str
    ended: str
    late: bool
    steps: Mapping[str, Mapping[str, Any]]
    left: Mapping[str, str]
    log: str
    elsewhere: list[str]

    @classmethod
    def of(cls, recording: Recording) -> Outcome:
        """Read what the gate kept of it."""
        found = recording.ok
        names = ("version", "missing", "ended", "late", "steps", "log", "elsewhere")
        return cls(left=recording.request.json["left"], **{name: found[name] for name in names})

    @property
    def ran(self) -> bool:
        """Whether its program was there and was asked for anything."""
        return not self.missing and bool(self.steps or self.ended)

    @property
    def why_not(self) -> str:
        """Why it did not run."""
        return self.missing or _listed(self.limits)

    @property
    def failed(self) -> dict[str, str]:
        """The steps that failed, with the error."""
        return {name: one["error"] for name, one in self.steps.items() if one["passed"] is False}

    @property
    def limits(self) -> dict[str, str]:
        """The steps of which nothing is known, with the reason."""
        open_ = {name: one["error"] for name, one in self.steps.items() if one["passed"] is None}
        return {**self.left, **open_}

    @property
    def passed(self) -> list[str]:
        """The steps that passed."""
        return [name for name, one in self.steps.items() if one["passed"]]

    @property
    def verdict(self) -> str:
        """Works, works with limits (which), does not work, or not judged, with the reason."""
        if not self.ran:
            return f"{UNKNOWN}: {self.why_not}"
        if self.ended:
            return f"{UNKNOWN if self.late else BROKEN}: {self.ended}"
        if self.failed:
            return f"{BROKEN}: {_listed(self.failed)}"
        if not self.passed:
            return f"{UNKNOWN}: {_listed(self.limits)}"
        return f"{LIMITED}: {_listed(self.limits)}" if self.limits else WORKS


def _listed(rows: Mapping[str, str]) -> str:
    return "; ".join(f"{name} ({why})" for name, why in rows.items())
