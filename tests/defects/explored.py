"""Explores a simulator, healthy or broken; `python -m tests.defects.explored DEFECT…` by hand."""

from __future__ import annotations

import argparse
import io
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.declare.explorations import EXPLORED, Explored, read_explored
from pytest_vllm.face.items import wanted
from pytest_vllm.face.options import Options
from pytest_vllm.face.session import GateSession
from pytest_vllm.report.progress import Progress
from pytest_vllm.run.gate import Gate
from pytest_vllm.wire.store import RecordingStore
from tests.defects.judging import Check, View, collect, verdict_of
from tests.defects.recording import profile_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.decide.verdict import Verdict


@dataclass(frozen=True)
class Exploration:
    """An exploration and its verdicts, with their reasons, by check id."""

    explored: Explored
    verdicts: dict[str, tuple[Verdict, str]]


@cache
def checks() -> list[Check]:
    return collect("sim", "--vllm-tier=explore", "--vllm-check=explore")[0]


def explore(
    folder: Path,
    seed: int,
    seconds: float,
    *defects: str,
    version: str = "",
    name: str = "sim",
    root: Path | None = None,
) -> Exploration:
    """Boot a server, explore it, judge that; regressions are read from and written to the root."""
    profile = profile_for(defects, name=name)
    if version:
        server = profile.server.model_copy(update={"version": version})
        expect = profile.expect.model_copy(update={"version": version})
        profile = profile.model_copy(update={"server": server, "expect": expect})
    options = Options(profiles=(profile.name,), tier="explore", explore_seconds=seconds, explore_seed=seed)
    session = GateSession(options, folder, {profile.name: profile}, folder)
    session.rootdir = root or folder
    gate = Gate(session.context(Progress(io.StringIO())), session.profiles)
    with gate:
        state = gate.open(profile.name, wanted([one.item for one in checks()]), {})
    found = read_explored(state.folder, RecordingStore(state.folder / EXPLORED)) or Explored()
    view = View(state, {}, explored=found)
    return Exploration(found, {one.key: verdict_of(one, view) for one in checks()})


def main(argv: Sequence[str] | None = None) -> None:
    """Explore and print what was found."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("defects", nargs="*")
    parser.add_argument("--seeds", nargs="*", type=int, default=[1])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--version", default="")
    parser.add_argument("--profile", default="sim")
    asked = parser.parse_args(argv)
    for defects in [[one] for one in asked.defects] or [[]]:
        for seed in asked.seeds:
            with tempfile.TemporaryDirectory() as folder:
                found = explore(
                    Path(folder) / "a" / "b" / "c",
                    seed,
                    asked.seconds,
                    *defects,
                    version=asked.version,
                    name=asked.profile,
                )
            print(f"{' '.join(defects) or 'healthy'} seed {seed}: {found.explored.trials} trials,", end=" ")
            print(f"{found.explored.requests} requests {found.explored.stopped}")
            for key, (verdict, why) in found.verdicts.items():
                print(f"  {verdict} {key} {why[:1400]}")


if __name__ == "__main__":
    main()
