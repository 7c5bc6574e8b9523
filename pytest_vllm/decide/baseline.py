"""What was true last time, and what changed since. Pure: no I/O, no pytest.

A baseline is the verdict of every check of one profile, with the server's version and where it ran, and
the speeds that were measured.
Comparing names what a person must look at after an upgrade: what broke, what was fixed, what is new.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_vllm.decide.verdict import Result, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FORMAT = "pytest-vllm-baseline"
FORMAT_VERSION = 3
HOLDS = (Verdict.PASS, Verdict.WAIVED)
#: What a check that holds now may be said to have been before: it was asked, and did not hold.
WRONG = (Verdict.FAIL, Verdict.ADVISORY, Verdict.UNDECIDED)


class BaselineError(ValueError):
    """The file is not a baseline, or one of a newer version."""


@dataclass(frozen=True)
class Baseline:
    """The verdicts of one profile.

    Args:
        profile: the profile's name.
        version: vLLM's version.
        taken: ISO date.
        simulated: whether it was taken on the simulator.
        verdicts: check id (with case) -> verdict.
        hardware: the profile's, by name; empty when it names none, and in baselines of version 1.
        loads: measurement -> its workload and figures, as `measure.against.kept` gives them; in baselines
            of version 1 there are none.
        model: the name under which it was served; empty in baselines before version 3.
    """

    profile: str
    version: str
    taken: str
    simulated: bool
    verdicts: Mapping[str, str]
    hardware: str = ""
    loads: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    model: str = ""


@dataclass(frozen=True)
class Comparison:
    """How a run differs from a baseline.

    Args:
        baseline: what the run was compared with.
        broken: ids of checks that held and do not any more, sorted, as all of these are.
        fixed: ids of checks that hold now and did not.
        new: ids of checks that the baseline does not know.
        gone: ids of checks that only the baseline knows.
    """

    baseline: Baseline
    broken: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


def take(
    results: Iterable[Result],
    *,
    profile: str,
    version: str,
    taken: str,
    simulated: bool,
    hardware: str = "",
    loads: Mapping[str, Mapping[str, Any]] | None = None,
    model: str = "",
) -> Baseline:
    """The baseline of a run's results on one profile."""
    verdicts = {r.check: str(r.verdict) for r in results if r.profile == profile}
    in_order = dict(sorted(verdicts.items()))
    return Baseline(profile, version, taken, simulated, in_order, hardware, dict(loads or {}), model)


def compare(results: Iterable[Result], baseline: Baseline, *, partial: bool = False) -> Comparison:
    """What changed against a baseline.

    Args:
        results: this run's, of the baseline's profile.
        baseline: what was true.
        partial: only some checks were selected, so absent ones are not gone.
    """
    now = {r.check: r.verdict for r in results}
    before = {check: Verdict(verdict) for check, verdict in baseline.verdicts.items()}
    both = now.keys() & before.keys()
    return Comparison(
        baseline,
        broken=tuple(sorted(c for c in both if before[c] in HOLDS and now[c] not in HOLDS)),
        fixed=tuple(sorted(c for c in both if before[c] in WRONG and now[c] in HOLDS)),
        new=tuple(sorted(now.keys() - before.keys())),
        gone=() if partial else tuple(sorted(before.keys() - now.keys())),
    )


def raw(result: Result) -> Result:
    """A result as it is without a baseline that excused it (`decide.noworse`)."""
    if not result.excused:
        return result
    return replace(result, verdict=Verdict(result.excused), excused="")


def to_json(baselines: Iterable[Baseline]) -> dict[str, Any]:
    """The content of a baseline file: one entry per profile."""
    entries = {
        b.profile: {
            "version": b.version,
            "taken": b.taken,
            "simulated": b.simulated,
            "hardware": b.hardware,
            "model": b.model,
            "loads": {key: dict(load) for key, load in b.loads.items()},
            "verdicts": dict(b.verdicts),
        }
        for b in baselines
    }
    return {"format": FORMAT, "version": FORMAT_VERSION, "profiles": entries}


def from_json(body: Any) -> dict[str, Baseline]:
    """The baselines of a file, by profile. Raises BaselineError."""
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise BaselineError(
            f"it is not a baseline: its format is {body.get('format') if isinstance(body, dict) else None!r}"
        )
    if body["version"] > FORMAT_VERSION:
        raise BaselineError(
            f"baseline version {body['version']} is newer than {FORMAT_VERSION}: update pytest-vllm"
        )
    return {name: Baseline(profile=name, **entry) for name, entry in body["profiles"].items()}
