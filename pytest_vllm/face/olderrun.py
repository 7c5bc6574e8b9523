"""Records and judges the older server of a run, silently and before the one under test.

The very items of the run are judged on it: pytest runs them twice, and shows the second time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from _pytest.runner import runtestprotocol

from pytest_vllm.decide.baseline import take
from pytest_vllm.face import judgement as judge
from pytest_vllm.face.against import answers, refuse_other_models
from pytest_vllm.face.baselines import loads_of
from pytest_vllm.face.items import measured_by, spec_of, wanted
from pytest_vllm.launch.protocol import BootError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.decide.verdict import Result
    from pytest_vllm.face.older import Older
    from pytest_vllm.face.session import GateSession


def record_older(session: GateSession, items: Sequence[pytest.Item]) -> None:
    """Let the older server show what held before.

    Raises pytest.UsageError where it does not answer, or serves another model.
    """
    older, gate = session.older, session.gate
    assert older is not None  # noqa: S101 - asked by the caller
    assert gate is not None  # noqa: S101 - opened by the run loop
    checks = [item for item in items if spec_of(item)]
    if not checks:
        older.trouble = "no check was selected, so nothing was asked of it"
        return
    newer = session.profiles[session.default_profile]
    if not answers(newer):  # its own start says so at once
        older.trouble = "the server under test did not answer"
        return
    refuse_other_models(older.profile, newer)
    gate.run.progress.say(f"the older server first, {older.name}: it is judged silently")
    try:
        state = gate.open(older.name, wanted(checks), measured_by(checks))
    except BootError as error:
        raise pytest.UsageError(_not_there(session, older, error)) from None
    session.serving = older.name
    try:
        older.results = list(_judged(checks))
    finally:
        session.serving = ""
    if not older.together:
        gate.close(older.name)
    if state.died:
        older.trouble = f"{older.name}: {state.died}, so what held before is not known"
        return
    server = state.server
    session.baselines[newer.name] = take(
        [replace(judged, profile=newer.name) for judged in older.results],
        profile=newer.name,
        version=server.version,
        model=server.model,
        taken=session.started.date().isoformat(),
        simulated=server.simulated,
        hardware=newer.hardware or "",
        loads=loads_of(state.folder),
    )


def _judged(items: Sequence[pytest.Item]) -> list[Result]:
    """What every check says of the server that is served now; nothing is shown, logged or counted."""
    found = []
    for place, item in enumerate(items):
        following = items[place + 1] if place + 1 < len(items) else None
        for report in runtestprotocol(item, log=False, nextitem=following):
            carried = getattr(report, "vllm_result", None)
            if carried is not None:
                found.append(judge.from_wire(carried))
        item.user_properties.clear()
        item._report_sections.clear()  # noqa: SLF001 - the second time says it again
    return found


def _not_there(session: GateSession, older: Older, error: BootError) -> str:
    """What happened, the evidence and the next step, of an older server that cannot be asked."""
    url = session.options.against_url
    lines = [f"the older server, {older.name}, did not answer, so nothing is compared: {error.what}"]
    lines += [f"  {line}" for text in error.evidence for line in text.split("\n")][-10:]
    lines += [f"what it means: {error.means}"] if error.means else []
    tries = [one.replace("--vllm-url=", "--vllm-against-url=") if url else one for one in error.try_]
    lines += [f"try: {one}" for one in tries]
    lines.append("or leave the comparison out: without --vllm-against… the gate judges the new server alone")
    return session.redactor.text("\n".join(lines))
