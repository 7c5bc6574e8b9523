"""What a run gives to every server of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_vllm.report.record import Phase

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pytest_vllm.report.progress import Progress
    from pytest_vllm.run.plan import Wanted, WantedMeasurement
    from pytest_vllm.wire.redact import Redactor


@dataclass(frozen=True)
class RunContext:
    """What every server of a run shares.

    Args:
        run_id: also the run folder's name.
        folder: the run folder.
        rootdir: where the person's own profiles, hardware and models lie.
        redactor: takes the secrets of every profile out of what is kept.
        progress: is given what happens.
        tier: smoke, gate, soak or explore.
        explore: seconds of exploration and its seed; None: the profile's, and a new one.
        asked: whether single checks were asked for.
        concurrency: exchanges recorded at once; None: what the server batches.
        keep: leave the servers running.
        evict_tenants: ask other model servers on this machine to unload first.
        phases: where the time of the run went, in order.
        ended: the signals that told the run to end; what was recorded until then is judged.
    """

    run_id: str
    folder: Path
    rootdir: Path
    redactor: Redactor
    progress: Progress
    tier: str = "gate"
    explore: tuple[float | None, int | None] = (None, None)
    asked: bool = False
    concurrency: int | None = None
    keep: bool = False
    evict_tenants: bool = False
    phases: list[Phase] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)

    def spent(self, name: str, started: float, **detail: object) -> None:
        """Write down a phase that began at a monotonic second and ends now."""
        self.phases.append(Phase(name, round(time.monotonic() - started, 3), detail))


@dataclass(frozen=True)
class Demand:
    """What the selected items of a profile want.

    Args:
        exchanges: by key.
        measurements: by key.
    """

    exchanges: Mapping[str, Wanted] = field(default_factory=dict)
    measurements: Mapping[str, WantedMeasurement] = field(default_factory=dict)
