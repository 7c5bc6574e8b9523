"""The extract of this run: written into its folder, and into the history of each profile."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.decide.baseline import raw
from pytest_vllm.locate import own_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_vllm.decide.verdict import Decision, Result
    from pytest_vllm.face.session import GateSession
    from pytest_vllm.report.record import BootFailure, RunRecord, ServerRun
    from pytest_vllm.run.state import ServerState

DRIVER = Path("/proc/driver/nvidia/version")


def write_extract(session: GateSession, record: RunRecord) -> None:
    """Write the extract of a run; a replay, which asks no server, leaves the history as it is.

    What cannot be written is said at the end, as for reports.
    """
    from pytest_vllm.report import overview  # noqa: PLC0415 - only a run that ends pays for it
    from pytest_vllm.report.compare import extract, kept  # noqa: PLC0415

    writing = kept.FILE
    try:
        profiles = {
            name: part_of(session, run, record.results, record.decision_of(name))
            for name, run in record.servers.items()
        }
        profiles |= {one.profile: _not_booted(one) for one in record.boot_failures}
        document = session.redactor.value(extract.assembled(about(session, record), profiles))
        session.make_reports()
        kept.write(session.reports, document)
        if not session.replaying:
            kept.remember(session.options.report / kept.HISTORY, document)
            writing = overview.PAGE
            overview.add(session.options.report, document)
    except Exception as error:  # noqa: BLE001 - the verdict is still to be said
        session.unwritten[writing] = f"{type(error).__name__}: {error}"


def about(session: GateSession, record: RunRecord) -> dict[str, Any]:
    """What an extract says of the whole run."""
    return {
        "id": record.run_id,
        "started": record.started.isoformat(),
        "seconds": round(record.seconds, 1),
        "suite": own_version(),
        "tier": session.options.tier,
        "partial": bool(session.options.checks or session.account.partial),
        "replayed": record.replayed,
    }


def part_of(
    session: GateSession, run: ServerRun, results: Iterable[Result], decision: Decision
) -> dict[str, Any]:
    """What an extract holds of one server.

    Args:
        session: this run.
        run: the server.
        results: judged checks, of this server among others.
        decision: the answer for it.
    """
    from pytest_vllm.face.baselines import loads_of  # noqa: PLC0415
    from pytest_vllm.report.compare import extract  # noqa: PLC0415
    from pytest_vllm.report.compare.identity import identity  # noqa: PLC0415

    name = run.server.profile
    state = session.state(name)
    log = [line for _, line in run.log]
    facts = {**_figures(log), **state.facts}
    served = state.profile.server
    told = {
        "hardware": state.profile.hardware or "",
        "path": served.model or "",
        "revision": "",
        "env": list(served.env),
    }
    rows: Sequence[Result] = [raw(row) for row in results if row.profile == name]
    return {
        "answer": str(decision.answer),
        "why": decision.why,
        "identity": identity(
            state.server,
            run.recordings,
            facts=facts,
            profile=told,
            suite=own_version(),
            machine=_machine(state),
        ),
        **extract.verdicts(rows),
        "observed": extract.observed(run.recordings, log, _document(state), state.server.models),
        "boot": [[phase, round(at, 2)] for phase, at in run.boot_phases],
        "figures": figures(facts, run.plots.get("timeline", ())),
        "loads": loads_of(state.folder),
    }


def _not_booted(failure: BootFailure) -> dict[str, Any]:
    return {"answer": "DID NOT BOOT", "why": failure.what, "seconds": round(failure.seconds, 1)}


def figures(facts: Mapping[str, Any], timeline: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Figures of a start and of memory, by name: those of the log that are numbers, and the highest readings.

    Args:
        facts: what the log and the launcher tell.
        timeline: readings, as `run.series` gives them; bytes.
    """
    found = {
        name: float(value)
        for name, value in facts.items()
        if name in FIGURES and isinstance(value, int | float) and not isinstance(value, bool)
    }
    for name, key in (("memory-gib", "used"), ("main-memory-gib", "resident")):
        seen = [one[key] for one in timeline if key in one]
        if seen:
            found[name] = round(max(seen) / 2**30, 3)
    return found


#: Figures of the start-up log that are compared.
FIGURES = (
    "kv-cache-tokens",
    "kv-cache-gib",
    "weights-gib",
    "weights-seconds",
    "compile-seconds",
    "engine-seconds",
    "graphs-gib",
)


def _figures(log: Sequence[str]) -> dict[str, Any]:
    from pytest_vllm.launch.phases import PhaseReader  # noqa: PLC0415

    reader = PhaseReader()
    for line in log:
        reader.read(line, 0.0)
        if reader.phase == "started":
            break
    return reader.facts


def _document(state: ServerState) -> Any:
    from pytest_vllm.run.steps import DESCRIPTION  # noqa: PLC0415

    try:
        found = json.loads((state.folder / DESCRIPTION).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _machine(state: ServerState) -> dict[str, str]:
    """The kernel and the GPU driver of this machine, where the server ran on it."""
    if not state.server.kind.starts:
        return {}
    driver = ""
    if DRIVER.is_file():
        match = re.search(
            r"Kernel Module.*?(\d+\.\d+(?:\.\d+)?)", DRIVER.read_text("utf-8", errors="replace")
        )
        driver = match[1] if match else ""
    return {"kernel": platform.release(), "driver": driver}
