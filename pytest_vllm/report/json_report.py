"""`report.json`: everything a machine wants to know of a run, under a versioned schema.

The document is redacted as a whole, here; Markdown and HTML are views of it.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pytest_vllm.decide.verdict import Family, Verdict
from pytest_vllm.report import summary
from pytest_vllm.report.causes import headline, observed
from pytest_vllm.report.evidence import ACCOUNTABLE, evidence_of, rerun, spec_url
from pytest_vllm.report.record import DID_NOT_BOOT
from pytest_vllm.report.text import shown_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_vllm.decide.baseline import Comparison
    from pytest_vllm.decide.causes import Cause
    from pytest_vllm.decide.verdict import Result
    from pytest_vllm.report.evidence import Exhibit
    from pytest_vllm.report.record import BootFailure, OwnTest, Phase, RunRecord, ServerRun
    from pytest_vllm.report.summary import WaiverUse
    from pytest_vllm.wire.policy import Access
    from pytest_vllm.wire.recording import Recording, Request
    from pytest_vllm.wire.redact import Redactor

SCHEMA_VERSION = 1
SCHEMA_FILE = Path(__file__).parent / "report.schema.json"


class CurlWriter(Protocol):
    """Writes a request as a shell script that sends it again (`wire.curl.curl`)."""

    def __call__(self, request: Request, url: str, *, key_env: str, access: Access | None) -> str:
        """The script; it takes the key from the variable `key_env` when it runs."""


def document(record: RunRecord, redactor: Redactor, curl: CurlWriter) -> dict[str, Any]:
    """The report of a run as JSON values, redacted, in a fixed order.

    Args:
        record: the run.
        redactor: takes secrets out.
        curl: writes the requests of checks that did not pass as scripts.
    """
    rows, servers = record.results, record.servers
    redacted: dict[str, Any] = redactor.value(
        {
            "schema": SCHEMA_VERSION,
            "run": _run(record),
            "answer": {
                "answer": record.answer,
                "exit_code": record.exit_code,
                "why": record.why,
                "simulated": record.simulated,
                "counts": _counts(rows),
            },
            "profiles": [_profile(record, name) for name in _profiles(record)],
            "suites": [
                {"profile": suite.profile, "suite": suite.area, "counts": _full(suite.counts)}
                for suite in summary.suites(rows)
            ],
            "families": {
                str(family): _counts(row for row in rows if row.family is family) for family in Family
            },
            "servers": [_server(name, run) for name, run in servers.items()],
            "boot_failures": [_boot_failure(failure) for failure in record.boot_failures],
            "phases": [_phase(phase) for phase in record.phases],
            "own_tests": [_own_test(one) for one in record.own],
            "results": [_result(row, servers.get(row.profile), redactor, curl) for row in rows],
            "waivers": [_waiver(use) for use in summary.waiver_uses(record)],
            "comparisons": [_comparison(one) for one in record.comparisons],
            "causes": [_cause(one, servers.get(one.first.profile)) for one in record.causes],
            "against": record.against,
            "against_why": record.against_why,
        }
    )
    return redacted


def dumps(document: Mapping[str, Any]) -> str:
    """The document as text. NaN and Infinity are refused: they are not JSON."""
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the document."""
    loaded: dict[str, Any] = json.loads(SCHEMA_FILE.read_text("utf-8"))
    return loaded


def _run(record: RunRecord) -> dict[str, Any]:
    return {
        "id": record.run_id,
        "started": record.started.isoformat(),
        "seconds": _seconds(record.seconds),
        "folder": shown_path(record.folder),
        "command": record.command,
        "replayed": record.replayed,
        "strict": record.strict,
        "own_failures": record.own_failures,
        "versions": _plain(record.versions),
        "by": record.by,
        "commit": record.commit,
    }


def _comparison(one: Comparison) -> dict[str, Any]:
    before = one.baseline
    return {
        "profile": before.profile,
        "version": before.version,
        "taken": before.taken,
        "simulated": before.simulated,
        "broken": list(one.broken),
        "fixed": list(one.fixed),
        "new": list(one.new),
        "gone": list(one.gone),
    }


def _cause(one: Cause, run: ServerRun | None) -> dict[str, Any]:
    return {
        "profile": one.first.profile,
        "area": one.area,
        "areas": list(one.areas),
        "title": one.title,
        "headline": headline(one),
        "fact": one.first.fact,
        "observed": observed(one),
        "check": one.first.check,
        "checks": [check.check for check in one.checks],
        "rerun": rerun(one.first, run) if run is not None else "",
    }


def _profiles(record: RunRecord) -> list[str]:
    return [*record.servers, *(f.profile for f in record.boot_failures if f.profile not in record.servers)]


def _profile(record: RunRecord, name: str) -> dict[str, Any]:
    decision = record.decision_of(name)
    failure = next((one for one in record.boot_failures if one.profile == name), None)
    run = record.servers.get(name)
    return {
        "name": name,
        "simulated": failure.simulated if failure else run is not None and run.server.simulated,
        "answer": DID_NOT_BOOT if failure else str(decision.answer),
        "why": failure.what if failure else decision.why,
        "counts": _counts(row for row in record.results if row.profile == name),
        "seconds": _seconds(record.seconds_of(profile=name)),
        "boot_seconds": _seconds(record.seconds_of("boot", profile=name)),
    }


def _server(name: str, run: ServerRun) -> dict[str, Any]:
    server = run.server
    first = min((recording.sent for recording in run.recordings.values()), default=0.0)
    exchanges = [_exchange(recording, run, first) for recording in run.recordings.values()]
    return {
        "profile": name,
        "origin": run.origin,
        "launcher": server.launcher,
        "simulated": server.simulated,
        "url": server.url,
        "model": server.model,
        "models": list(server.models),
        "version": server.version,
        "max_model_len": server.max_model_len,
        "max_num_seqs": server.max_num_seqs,
        "args": _plain(server.args),
        "capabilities": [asdict(capability) for capability in server.capabilities.values()],
        "facts": _plain(run.facts),
        "boot": [{"phase": phase, "at": _seconds(at)} for phase, at in run.boot_phases],
        "died": run.died,
        "log_file": run.log_file,
        "log_lines": len(run.log),
        "exchanges": sorted(exchanges, key=lambda row: (row["started"], row["key"])),
        "plots": _plain({"timeline": [], "loads": [], **run.plots}),
    }


def _exchange(recording: Recording, run: ServerRun, first: float) -> dict[str, Any]:
    return {
        "key": recording.key,
        "file": run.files.get(recording.key, ""),
        "method": recording.request.method,
        "path": recording.request.path,
        "status": recording.status,
        "started": _seconds(recording.sent - first),
        "headers_at": None if recording.headers_at is None else _seconds(recording.headers_at),
        "seconds": _seconds(recording.seconds),
        "size": len(recording.body),
        "error": recording.error,
        "aborted": recording.aborted,
    }


def _boot_failure(failure: BootFailure) -> dict[str, Any]:
    values = asdict(failure)
    tries = list(values.pop("try_"))
    listed = {"evidence": list(failure.evidence), "try": tries, "kept": list(failure.kept)}
    return {**values, **listed, "seconds": _seconds(failure.seconds)}


def _phase(phase: Phase) -> dict[str, Any]:
    return {"name": phase.name, "seconds": _seconds(phase.seconds), "detail": _plain(phase.detail)}


def _result(row: Result, run: ServerRun | None, redactor: Redactor, curl: CurlWriter) -> dict[str, Any]:
    owes = run is not None and row.verdict in ACCOUNTABLE
    return {
        "check": row.check,
        "profile": row.profile,
        "level": str(row.level),
        "family": str(row.family),
        "verdict": str(row.verdict),
        "fact": row.fact,
        "reason": row.reason,
        "suite": row.area,
        "source": row.source,
        "spec": row.spec,
        "spec_url": spec_url(row.spec),
        "nodeid": row.nodeid,
        "seconds": _seconds(row.seconds),
        "observations": _plain(row.observations),
        "exchanges": list(row.exchanges),
        "evidence": _evidence(row, run, redactor, curl) if owes and run is not None else None,
    }


def _own_test(one: OwnTest) -> dict[str, Any]:
    return {
        "nodeid": one.nodeid,
        "profile": one.profile,
        "outcome": one.outcome,
        "seconds": _seconds(one.seconds),
        "message": one.message,
        "traceback": one.traceback,
        "exchanges": [_exhibit(exhibit) for exhibit in one.exhibits],
        "rerun": one.rerun if one.failing else "",
    }


def _evidence(row: Result, run: ServerRun, redactor: Redactor, curl: CurlWriter) -> dict[str, Any]:
    evidence = evidence_of(row, run, redactor)
    requests = [run.recordings[key].request for key in evidence.keys if key in run.recordings]
    return {
        "exchanges": [_exhibit(exhibit) for exhibit in evidence.exhibits],
        "left_out": evidence.left_out,
        "log": list(evidence.log),
        "log_total": evidence.log_total,
        "log_file": evidence.log_file,
        "rerun": evidence.rerun,
        "script": evidence.script,
        "curl": [
            curl(
                redactor.request(request),
                redactor.text(run.server.url),
                key_env=run.key_env,
                access=run.server.access,
            )
            for request in requests
        ],
    }


def _exhibit(exhibit: Exhibit) -> dict[str, Any]:
    lines = [
        {"text": line.text, "at": None if line.at is None else _seconds(line.at), "left_out": line.left_out}
        for line in exhibit.lines
    ]
    listed = {"headers": list(exhibit.headers), "lines": lines}
    return {**asdict(exhibit), **listed, "seconds": _seconds(exhibit.seconds)}


def _waiver(use: WaiverUse) -> dict[str, Any]:
    waiver = use.waiver
    return {
        "profile": use.profile,
        "check": waiver.check,
        "reason": waiver.reason,
        "issue": waiver.issue,
        "versions": waiver.versions,
        "until": waiver.until.isoformat(),
        "state": use.state,
    }


def _counts(results: Iterable[Result]) -> dict[str, int]:
    return _full(Counter(row.verdict for row in results))


def _full(counts: Mapping[Verdict, int]) -> dict[str, int]:
    return {str(verdict): counts.get(verdict, 0) for verdict in Verdict}


def _seconds(seconds: float) -> float:
    return round(seconds, 6)


def _plain(value: Any) -> Any:
    """A value that nobody knows beforehand, as JSON; names sorted, so that equal runs give equal text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(value[name]) for name in sorted(value, key=str)}
    if isinstance(value, set | frozenset):
        return [_plain(item) for item in sorted(value, key=str)]
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return value.isoformat() if isinstance(value, dt.date) else str(value)
