"""`--vllm-plan`: what a run would send and how long it would take, without a server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_vllm.face.items import measured_by, spec_of, wanted
from pytest_vllm.face.selection import profile_of
from pytest_vllm.run.forecast import (
    expected_server,
    explored_requests,
    forecast,
    last_recording,
    load_seconds,
)
from pytest_vllm.run.regressions import file_of, read
from pytest_vllm.run.steps import DEFAULT_CONCURRENCY, REHEARSED_CONCURRENCY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import Any

    import pytest

    from pytest_vllm.face.session import GateSession
    from pytest_vllm.profile.model import Profile
    from pytest_vllm.run.forecast import Forecast


def plan_lines(session: GateSession, items: Sequence[pytest.Item]) -> Iterator[str]:
    """The plan of every profile of a run."""
    for name, profile in session.profiles.items():
        mine = [item for item in items if profile_of(item, session.default_profile) == name]
        most = REHEARSED_CONCURRENCY if profile.server.launcher == "sim" else DEFAULT_CONCURRENCY
        batch = profile.server.args.get("max-num-seqs")
        limit = session.options.concurrency or min(batch if isinstance(batch, int) else 8, most)
        asked = session.options
        wants, measures = wanted(mine), measured_by(mine)
        own = any(one.planned.spec.own for one in measures.values())
        seconds = load_seconds(profile, asked.tier, asked=bool(asked.checks) or own)
        made = forecast(profile, wants, measures, limit, seconds)
        checks = sum(1 for item in mine if spec_of(item))
        yield from _lines(profile, made, f"tier {asked.tier}: {checks} checks", _last(session, name))
        yield from _explored(session, profile, limit, {one.planned.spec.explores for one in wants.values()})


def _lines(
    profile: Profile, made: Forecast, what: str, last: tuple[str, dict[str, Any]] | None
) -> Iterator[str]:
    able = "what the profile expects" if profile.expect.capabilities else "everything"
    yield f"plan of {profile.name}, {what}; nothing was started or sent"
    yield (
        f"  record   {made.requests:,} requests, {made.concurrency} at once, {made.alone:,} of them alone; "
        f"about {made.prompt:,} prompt tokens, {made.output:,} output tokens at most"
    )
    if made.unknown:
        yield f"           {made.unknown:,} of them follow earlier answers: counted as the others are"
    basis = (
        f"by the pace of run {last[0]}" if last else "at 20 tokens a second a request: no earlier run is here"
    )
    yield f"           about {_seconds(made.recording(last[1] if last else None))} ({basis})"
    if made.measurements:
        yield f"  measure  {made.measurements} loads, {_seconds(made.seconds)} at most"
    yield f"  counted for a server that can do {able}; a start takes {_seconds(profile.boot.timeout)} at most"


def _explored(session: GateSession, profile: Profile, limit: int, explores: set[str]) -> Iterator[str]:
    """What was not written down by anybody: regressions of the profile, and what is drawn."""
    file = file_of(session.rootdir, profile.name)
    rows = len(read(file, expected_server(profile))[0])
    if "known" in explores and rows:
        yield f"  again    {rows} regressions of {file.parent.name}/{file.name}"
    if "drawn" in explores:
        seconds = session.options.explore_seconds or profile.explore.budget
        about = explored_requests(seconds, limit)
        yield f"  explore  {_seconds(seconds)} of requests drawn at random, about {about:,}"


def _last(session: GateSession, profile: str) -> tuple[str, dict[str, Any]] | None:
    """The last run of this profile that left a report: its folder's name and how it recorded."""
    runs = session.reports.parent
    for folder in sorted(runs.iterdir(), reverse=True) if runs.is_dir() else ():
        found = _recording(folder / "report.json", profile)
        if found:
            return folder.name, found
    return None


def _recording(report: Path, profile: str) -> dict[str, Any] | None:
    try:
        return last_recording(json.loads(report.read_text("utf-8")).get("phases") or [], profile)
    except (OSError, ValueError, AttributeError):
        return None


def _seconds(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole} s" if whole < 120 else f"{whole // 60} min {whole % 60:02} s"
