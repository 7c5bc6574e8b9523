"""What is kept of a version's run: its extract with the reasons of what does not hold."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_vllm.decide.verdict import Verdict
from pytest_vllm.facts.version import Version
from pytest_vllm.report.compare import kept
from pytest_vllm.report.compare.extract import ExtractError, spread

RUNS = Path(__file__).parent / "runs"
#: Verdicts that say that a requirement does not hold: an open failure, a known one, advice.
BROKEN = (Verdict.FAIL, Verdict.WAIVED, Verdict.ADVISORY)
#: Share of the asked checks from which on a run is spoilt by what was not judged.
MOST_UNDECIDED = 0.05
#: Characters of a reason that are kept.
LONGEST = 300


@dataclass(frozen=True)
class Run:
    """One version's run.

    Args:
        version: of vLLM, as the server said it.
        document: its extract.
        part: the only profile's part of it.
    """

    version: str
    document: dict[str, Any]
    part: dict[str, Any]

    @property
    def verdicts(self) -> dict[str, tuple[str, str]]:
        """Check -> its verdict and level.

        What failed in a spoilt run without being known is not judged: an answer that came too late on a busy
        machine may look like one that is wrong.
        """
        found = spread(self.part)
        if not self.spoilt:
            return found
        doubted = {Verdict.FAIL: str(Verdict.UNDECIDED)}
        return {check: (doubted.get(Verdict(is_), is_), level) for check, (is_, level) in found.items()}

    @property
    def reasons(self) -> dict[str, str]:
        """Check -> why it does not hold, or was not judged."""
        found: dict[str, str] = self.part.get("reasons", {})
        return found

    @property
    def undecided(self) -> list[str]:
        """Checks that were not judged."""
        found = self.verdicts.items()
        return sorted(check for check, (verdict, _) in found if verdict == Verdict.UNDECIDED)

    @property
    def spoilt(self) -> bool:
        """Whether so much was not judged that the run says little: the machine was busy, or it hung."""
        every = [verdict for verdict, _ in spread(self.part).values()]
        asked = len(every) - every.count(Verdict.NOT_RUN)
        return every.count(Verdict.UNDECIDED) > MOST_UNDECIDED * asked


def run_of(document: dict[str, Any]) -> Run:
    """The run in an extract. Raises ExtractError where it says nothing about a real version."""
    names = list(document["profiles"])
    if len(names) != 1:
        raise ExtractError(f"run {document['run'].get('id')} is of {len(names)} profiles: give a run of one")
    part = document["profiles"][names[0]]
    identity = part.get("identity")
    if identity is None:
        raise ExtractError(f"run {document['run'].get('id')}: its server did not start")
    if identity["simulated"]:
        raise ExtractError(f"run {document['run'].get('id')} is of the simulator: this is about vLLM itself")
    return Run(str(Version(identity["version"])), document, part)


def keep(folder: Path, runs: Path = RUNS) -> Path:
    """Keep a run folder's extract under its version; a former one of this version is replaced.

    Raises ExtractError, OSError.
    """
    run = run_of(kept.with_reasons(kept.read(folder), folder if folder.is_dir() else folder.parent))
    run.part["reasons"] = {check: why[:LONGEST] for check, why in sorted(run.reasons.items())}
    runs.mkdir(exist_ok=True)
    path = runs / f"{run.version}.json"
    path.write_text(json.dumps(run.document, separators=(",", ":"), sort_keys=True) + "\n", "utf-8")
    return path


def every(runs: Path = RUNS) -> list[Run]:
    """All kept runs, oldest version first. Raises ExtractError."""
    found = [run_of(kept.read(path)) for path in runs.glob("*.json")]
    return sorted(found, key=lambda run: Version(run.version))
