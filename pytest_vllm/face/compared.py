"""What the run of two servers found: the older one compared with the one under test."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_vllm.decide.noworse import worsened
from pytest_vllm.decide.verdict import decide, qualified
from pytest_vllm.face.extracts import about, part_of
from pytest_vllm.report.compare.figures import ALONE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_vllm.face.older import Older
    from pytest_vllm.face.session import GateSession
    from pytest_vllm.report.record import RunRecord, ServerRun

NOT_MEASURED = "no load of this run was measured on both servers"


def with_older(
    session: GateSession, record: RunRecord, as_run: Callable[[GateSession, str], ServerRun]
) -> RunRecord:
    """The record with the comparison; under `--vllm-no-worse` what is worse decides its answer.

    Args:
        session: this run.
        record: what was found of the server under test.
        as_run: gives a server as reports want it.
    """
    older = session.older
    assert older is not None  # noqa: S101 - asked by the caller
    document, why = None, older.trouble
    if not why:
        try:
            document, why = _compared(session, record, as_run(session, older.name))
        except Exception as error:  # noqa: BLE001 - the verdict is still to be said
            why = f"the comparison failed: {type(error).__name__}: {error}"
    record = replace(record, against=document, against_why=why)
    if not session.options.no_worse:
        return record
    doubts = (f"no worse than the older server is not shown: {why}",) if why else ()
    worse = tuple(worse_of(document)) if document else ()
    decision = worsened(qualified(record.decision, doubts=doubts), worse)
    return replace(record, decision=decision, doubts=(*record.doubts, *doubts), worse=worse)


def _compared(session: GateSession, record: RunRecord, run: ServerRun) -> tuple[dict[str, Any] | None, str]:
    """The comparison, or why there is none."""
    from pytest_vllm.report.compare import extract, kept  # noqa: PLC0415 - only a run that compares pays for it
    from pytest_vllm.report.compare.comparison import NotComparableError, compare  # noqa: PLC0415

    older = session.older
    assert older is not None  # noqa: S101 - asked by the caller
    name = next(iter(record.servers), "")
    if not name:
        return None, "the server under test was not asked"
    decision = decide(older.results, strict=session.options.strict)
    told = about(session, record)
    before = extract.assembled(told, {older.name: part_of(session, run, older.results, decision)})
    part = part_of(session, record.servers[name], record.results, record.decision_of(name))
    reasons = {row.check: row.reason for row in record.results if row.reason}
    after = extract.assembled(told, {name: {**part, "reasons": reasons}})
    before, after = session.redactor.value(before), session.redactor.value(after)
    kept.write(session.state(older.name).folder, before)
    measured = older.measured
    try:
        turns = measured.loads if measured else None
        document = compare(before, after, (older.name, name), turns)
    except NotComparableError as error:
        return None, str(error)
    _say_left_out(document, older)
    redacted: dict[str, Any] = session.redactor.value(document)
    return redacted, ""


def _say_left_out(document: dict[str, Any], older: Older) -> None:
    """Name what was not measured in turns, and why."""
    measured = older.measured
    if measured is None:
        return
    if measured.why and not document["speeds"]:
        document["not_compared"]["speeds"] = measured.why
    for load, why in measured.left_out.items():
        document["not_compared"].setdefault(f"speed of {load}", why)


def worse_of(document: Mapping[str, Any]) -> list[str]:
    """What is worse beside the checks, which count by themselves: what breaks clients, and what is slower.

    Times of recorded exchanges are reported and do not count: the servers were asked one after the other, and
    what else this machine did meanwhile is in them.
    """
    breaks = [
        row["what"]
        for row in document["differences"]
        if row["weight"] == "breaks clients" and row["area"] != "verdicts"
    ]
    slower = [
        f"{row['what']} is {row['means']}"
        for row in document["differences"]
        if row["area"] == "speed" and row["means"].startswith("slower") and not row["what"].endswith(ALONE)
    ]
    return [*(f"{what} (breaks clients)" for what in breaks), *slower]
