"""Baselines on disk: read before anything is started, compared at the end, saved for the next time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.decide.baseline import BaselineError, compare, from_json, raw, take, to_json
from pytest_vllm.decide.noworse import lost
from pytest_vllm.profile.bounded import read_bounded
from pytest_vllm.profile.errors import ProfileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pytest_vllm.decide.baseline import Baseline, Comparison
    from pytest_vllm.decide.verdict import Result
    from pytest_vllm.face.options import Options
    from pytest_vllm.face.session import GateSession

#: Bytes of a baseline. One of all checks of twenty profiles has 2 MiB.
LARGEST = 16 * 2**20


def read_baseline(path: Path | None) -> dict[str, Baseline]:
    """The baselines of a file, by profile; none without a file. Raises pytest.UsageError on a bad one."""
    if path is None:
        return {}
    save = f"save one first with --vllm-save-baseline={path.name}"
    try:
        if not path.exists():
            raise pytest.UsageError(f"--vllm-baseline={path}: there is no such file; {save}")
        return from_json(json.loads(read_bounded(path, LARGEST)))
    except json.JSONDecodeError as error:
        raise pytest.UsageError(f"--vllm-baseline={path}: it is not JSON ({error}); {save}") from None
    except RecursionError:
        raise pytest.UsageError(f"--vllm-baseline={path}: nested too deep to be read; {save}") from None
    except (ProfileError, BaselineError, ValueError, TypeError, KeyError) as error:
        raise pytest.UsageError(f"--vllm-baseline={path}: {error}; {save}") from None


def read_baselines(options: Options, profiles: Iterable[str]) -> dict[str, Baseline]:
    """The baselines to compare with: of a file, of a run folder, or of the history of each profile.

    Raises pytest.UsageError where there are none.
    """
    path = options.baseline
    if options.no_worse and path is None and options.compares:
        return {}  # what the older server shows
    if options.no_worse and path is None:
        raise pytest.UsageError(
            "--vllm-no-worse needs a run to be no worse than: add --vllm-baseline=FILE (a saved baseline, "
            "a run folder, or last-good), or --vllm-against-url=URL for an older server"
        )
    if path is None:
        return {}
    from pytest_vllm.report.compare import extract, kept  # noqa: PLC0415 - only a run that compares pays for it

    try:
        if path.name == kept.LAST_GOOD and not path.exists():
            good = {name: kept.last_good(options.report / kept.HISTORY, name) for name in profiles}
            return {name: extract.as_baseline(name, one) for name, one in good.items()}
        if path.is_dir() or _is_extract(path):
            run = kept.read(path)
            booted = [name for name, part in run["profiles"].items() if "identity" in part]
            return {name: extract.as_baseline(name, run) for name in booted}
    except (extract.ExtractError, LookupError, TypeError, ValueError) as error:
        raise pytest.UsageError(f"--vllm-baseline={path}: {error}") from None
    return read_baseline(path)


def _is_extract(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as lines:
        return b'"pytest-vllm-extract"' in lines.read(200)


def refuse_unknown(path: Path | None, known: Mapping[str, Baseline], profiles: Iterable[str]) -> None:
    """Raise pytest.UsageError where a baseline has nothing to compare a profile of this run with."""
    unknown = [name for name in profiles if name not in known]
    if path is not None and unknown:
        raise pytest.UsageError(
            f"--vllm-baseline={path} is of {', '.join(known) or 'no profile'}, this run of "
            f"{', '.join(unknown)}: nothing would be compared; save one of this profile first with "
            f"--vllm-save-baseline={path.name}"
        )


def refuse_other_model(session: GateSession, name: str) -> None:
    """Raise pytest.UsageError where a profile's baseline was taken of another model."""
    before = session.baselines.get(name)
    if session.older is not None:
        _refuse_unlike(session, name)
        return
    now = session.state(name).server.model
    simulated = session.state(name).server.simulated
    if session.options.no_worse and before is not None and before.simulated != simulated:
        raise pytest.UsageError(
            f"--vllm-no-worse: the baseline of {name} was taken on {_kind(before.simulated)}, and this is "
            f"{_kind(simulated)}: neither says what the other must not lose; give a baseline of the same kind"
        )
    if before is not None and before.model and now and before.model != now:
        raise pytest.UsageError(
            f"--vllm-baseline={session.options.baseline}: {name} was {before.model} when it was saved and "
            f"serves {now} now, and two models are not compared; give the baseline of {now}, or save one "
            "with --vllm-save-baseline"
        )


def _refuse_unlike(session: GateSession, name: str) -> None:
    before, now = session.baselines.get(name), session.state(name).server
    if before is None or name not in session.profiles:
        return
    one, other = (before.model, before.simulated), (now.model, now.simulated)
    if one != other:
        told = [f"{model or 'an unknown model'} on {_kind(simulated)}" for model, simulated in (one, other)]
        raise pytest.UsageError(
            f"not comparable: the older server serves {told[0]}, the one under test {told[1]}; give a server "
            "of the same kind and model, or leave --vllm-against… out"
        )


def _kind(simulated: bool) -> str:
    return "the simulator" if simulated else "a real server"


def lost_checks(session: GateSession, results: Sequence[Result]) -> list[str]:
    """Doubts of a run that is to be no worse: checks that held and that it did not ask."""
    if not session.options.no_worse or session.options.checks or session.account.partial:
        return []
    found = [
        lost([row for row in results if row.profile == name], baseline)
        for name, baseline in session.baselines.items()
        if name in session.profiles
    ]
    return [doubt for doubt in found if doubt]


def comparisons(session: GateSession, results: Sequence[Result]) -> tuple[Comparison, ...]:
    """How this run differs from the baseline, for every profile that both know."""
    partial = session.partial or bool(session.account.partial)
    mine = {name: [raw(row) for row in results if row.profile == name] for name in session.profiles}
    return tuple(
        compare(rows, session.baselines[name], partial=partial)
        for name, rows in mine.items()
        if rows and name in session.baselines
    )


def save_baseline(session: GateSession, results: Sequence[Result]) -> None:
    """Write the verdicts of this run where `--vllm-save-baseline` says; profiles not run are kept."""
    path = session.options.save_baseline
    if path is None or not results:
        return
    kept = read_baseline(path) if path.is_file() else {}
    for name in session.profiles:
        state = session.state(name)
        server = state.server
        kept[name] = take(
            [raw(row) for row in results],
            profile=name,
            version=server.version,
            model=server.model,
            taken=session.started.date().isoformat(),
            simulated=server.simulated,
            hardware=state.profile.hardware or "",
            loads=loads_of(state.folder),
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(to_json(kept.values()), indent=1) + "\n", "utf-8")


def loads_of(folder: Path) -> dict[str, Any]:
    """What a baseline keeps of every load that was measured, by its key."""
    from pytest_vllm.declare.measurements import Measurements  # noqa: PLC0415
    from pytest_vllm.measure.against import kept  # noqa: PLC0415 - only a run that saves pays for it

    measured = Measurements(folder)
    found = {key: kept(measured.get(key)) for key in measured.keys()}  # noqa: SIM118 - no mapping
    return {key: load for key, load in found.items() if load}
