"""Boots the simulator, healthy or broken, and records what every check needs."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_vllm.gate import Gate
from pytest_vllm.launch.protocol import BootError
from pytest_vllm.options import Options
from pytest_vllm.planning import wanted
from pytest_vllm.profile.load import load
from pytest_vllm.report.progress import Progress
from pytest_vllm.sim.defects.registry import Defect
from tests.defects.judging import View

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from pytest_vllm.profile.model import Profile


def profile_for(name: str, rootdir: Path, arguments: str = "", version: str = "") -> Profile:
    """A built-in profile with further serve arguments, as a command line writes them."""
    profile = load(name, rootdir)
    args = {**profile.server.args, **_parsed(arguments)}
    changes: dict[str, object] = {"args": args}
    if version:
        changes["version"] = version
    return profile.model_copy(update={"server": profile.server.model_copy(update=changes)})


def _parsed(arguments: str) -> dict[str, object]:
    words = arguments.split()
    parsed: dict[str, object] = {}
    for index, word in enumerate(words):
        if word.startswith("--"):
            following = words[index + 1] if index + 1 < len(words) else "--"
            parsed[word.removeprefix("--")] = True if following.startswith("--") else following
    return parsed


def record(
    folder: Path, profile: Profile, items: list[pytest.Item], defects: tuple[str, ...] = ()
) -> View | BootError:
    """Boot, probe and record; a boot that fails is an outcome too."""
    options = Options(profiles=(profile.name,), defects=defects, report=folder)
    gate = Gate(folder.name, folder, options, {profile.name: profile}, Progress(io.StringIO()))
    with gate:
        try:
            state = gate.open(profile.name, wanted(items))
        except BootError as error:
            return error
    return View(state, {key: state.store.get(key) for key in state.store.keys()})  # noqa: SIM118


def rewritten(view: View, defect: Defect) -> View:
    """The recordings of a healthy server as a broken one would have answered."""
    from pytest_vllm.sim.defects.rewrite import rewrite

    return replace(
        view,
        recordings={
            key: one if one.status is None else one.with_response(**rewrite(defect, one))
            for key, one in view.recordings.items()
        },
    )
