"""Secrets planted in every field of a run appear in no report."""

from __future__ import annotations

import base64
import dataclasses
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from pytest_vllm.decide.verdict import Decision, Family, Level, Result, Verdict, decide
from pytest_vllm.profile.model import Waiver
from pytest_vllm.report import junit, terminal
from pytest_vllm.report.compare.comparison import compare
from pytest_vllm.report.compare.difference import Difference, Weight
from pytest_vllm.report.evidence import ACCOUNTABLE
from pytest_vllm.report.record import BootFailure, Phase, RunRecord, ServerRun
from pytest_vllm.report.write import write_all
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.redact import Redactor
from pytest_vllm.wire.server import Capability, Server
from tests.golden.sample_parts import SENT, STARTED
from tests.unit.report.compare.runs import part_of, run_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRETS = ("sk-planted-0123456789abcdef", 'reg/pass+"word"=7', "prompt-canary-Zürich-42")

#: Strings that are no free text: words of our own, and keys by which records find each other.
FIXED = {
    (Result, "level"),
    (Result, "family"),
    (Result, "verdict"),
    (Request, "method"),
    (Recording, "error"),
    (Decision, "answer"),
}


def planted() -> str:
    """Every secret, plain and in the forms it travels in."""
    encoded = [base64.b64encode(secret.encode()).decode() for secret in SECRETS]
    return " ".join([*SECRETS, *encoded, *(quote(secret, safe="") for secret in SECRETS)])


def fill(kind: type, **given: Any) -> Any:
    """An instance with the secrets in every text field that was not given."""
    values = dict(given)
    for field in dataclasses.fields(kind):
        if field.name in values or (kind, field.name) in FIXED:
            continue
        annotation = str(field.type)
        if annotation == "str" or annotation.startswith("str |"):
            values[field.name] = planted()
        elif annotation.startswith("tuple[str"):
            values[field.name] = (planted(), planted())
        elif annotation.startswith("Mapping[str, str"):
            values[field.name] = {planted(): planted()}
        elif annotation.startswith("Mapping[str, Any"):
            values[field.name] = {planted(): planted(), "nested": [{"deep": planted()}]}
    return kind(**values)


def exchanges() -> Iterator[Recording]:
    """A body, a stream, text that is no JSON, a broken response, an unanswered request."""
    request = fill(
        Request,
        method="POST",
        json={planted(): [planted()], "tools": [{"function": {"name": planted()}}]},
        content=None,
        headers={"X-Note": planted(), "Authorization": f"Bearer {SECRETS[0]}", "Cookie": planted()},
    )
    raw = dataclasses.replace(request, json=None, content=planted())
    named = (("content-type", "application/json"), ("x-request-id", planted()), ("set-cookie", planted()))
    streamed = (("content-type", "text/event-stream"),)
    event = json.dumps({"choices": [{"delta": {"content": planted(), planted(): 1}}]})
    odd = f"event: {planted()}\ndata: {planted()}\n\n{planted()}: x\ndata: 1\n\ndata: {planted()}"
    sse = f"data: {event}\n\n{odd}"
    metrics = f'vllm:planted_total{{key="{SECRETS[0]}"}} 1.0\n'
    scraped = {"metrics_before": metrics, "metrics_after": metrics}
    body = json.dumps({"error": {"message": planted(), planted(): planted()}}).encode()
    responses: list[dict[str, Any]] = [
        {"status": 401, "headers": named, "chunks": ((0.1, body),), **scraped},
        {"status": 200, "headers": streamed, "chunks": ((0.1, sse.encode()),), "error": planted()},
        {"status": 502, "headers": (("content-type", planted()),), "chunks": ((0.1, planted().encode()),)},
        {"status": None, "error": planted()},
    ]
    for number, response in enumerate(responses):
        sent = raw if number == 2 else request
        yield Recording(f"k{number} {planted()}", sent, sent=SENT, seconds=1.0, **response)


def a_comparison() -> dict[str, Any]:
    """A comparison with an older server, every text of it a secret."""
    texts = {name: planted() for name in ("what", "before", "after", "means", "source")}
    rows = [Difference(weight, "start", **texts).plain() for weight in Weight]
    found = compare(run_of(part_of(version=planted())), run_of(part_of()), ("p", "p"))
    return {**found, "differences": rows, "not_compared": {planted(): planted()}}


def a_run(folder: Path) -> RunRecord:
    recordings = {recording.key: recording for recording in exchanges()}
    profile = f"p {planted()}"
    server = fill(
        Server,
        profile=profile,
        launcher="docker",
        capabilities={"chat": fill(Capability, present=True)},
        api_key=SECRETS[0],
    )
    said = planted()
    waiver = Waiver.model_construct(check=said, reason=said, issue=said, versions=said, until=STARTED.date())
    run = fill(
        ServerRun,
        server=server,
        boot_phases=((planted(), 1.0),),
        log=((SENT, f"ERROR {planted()}"), (SENT, planted())),
        recordings=recordings,
        waivers=(waiver,),
        files={key: planted() for key in recordings},
        key_env="VLLM_API_KEY",
    )
    reason = f"x-request-id, set-cookie, content-type and vllm:planted_total: {planted()}\n{planted()}"
    results = [
        fill(
            Result,
            check=f"{verdict} {number} {planted()}",
            level=Level.MUST,
            family=Family.PERFORMANCE,
            verdict=verdict,
            reason=reason,
            exchanges=(key,),
            profile=profile,
        )
        for verdict in Verdict
        for number, key in enumerate(recordings)
    ]
    record: RunRecord = fill(
        RunRecord,
        against=a_comparison(),
        started=STARTED,
        seconds=1.0,
        folder=folder,
        servers={profile: run},
        results=tuple(results),
        decision=decide(results),
        phases=(fill(Phase, seconds=1.0),),
    )
    return record


def printed(record: RunRecord, redactor: Redactor) -> str:
    """All that the terminal and JUnit show."""
    lines = terminal.verdict_lines(record, redactor=redactor)
    for row in record.results:
        run = record.servers[row.profile]
        if row.verdict in ACCOUNTABLE:
            lines.append(
                terminal.failure_block(
                    row, run, folder=record.folder, redactor=redactor, before=planted(), rerun=planted()
                )
            )
            lines.append(terminal.failure_block(row, run, folder=record.folder, redactor=redactor))
        lines.append(str(junit.properties(row, simulated=False, redactor=redactor)))
    lines.append(str(junit.suite_properties(record, redactor)))
    lines += terminal.did_not_boot_block(fill(BootFailure), redactor=redactor)
    return "\n".join(lines)


def found(text: str) -> list[str]:
    """The secrets in a text, in any of the forms in which a person or a program would find them."""
    forms = [
        form
        for secret in SECRETS
        for form in (
            secret,
            json.dumps(secret)[1:-1],
            json.dumps(secret, ensure_ascii=False)[1:-1],
            base64.b64encode(secret.encode()).decode(),
            quote(secret, safe=""),
            secret[:10],
            secret[-10:],
        )
    ]
    return [form for form in forms if form in text]


@pytest.fixture
def redactor() -> Redactor:
    return Redactor(SECRETS)


def test_the_terminal_and_junit_hold_no_secret(tmp_path: Path, redactor: Redactor) -> None:
    """Failure blocks, verdict, boot failure and properties are free of what was planted."""
    text = printed(a_run(tmp_path), redactor)

    assert "***" in text
    assert found(text) == []


def test_no_file_holds_a_secret(tmp_path: Path, redactor: Redactor) -> None:
    """JSON, Markdown, HTML and every curl script are free of what was planted, names included."""
    written = write_all(a_run(tmp_path), redactor, tmp_path)

    assert {"report.json", "report.md", "report.html"} < set(written)
    assert len(written) > 10
    for path in tmp_path.rglob("*"):
        assert found(str(path.relative_to(tmp_path))) == []
        if path.is_file():
            assert found(path.read_text("utf-8")) == [], path.name


def test_a_failed_boot_keeps_its_secrets(tmp_path: Path, redactor: Redactor) -> None:
    """The report of a boot that failed is free of what was planted."""
    record = dataclasses.replace(
        a_run(tmp_path), servers={}, results=(), boot_failures=(fill(BootFailure, seconds=3.0),)
    )
    write_all(record, redactor, tmp_path)

    for path in (tmp_path / name for name in ("report.json", "report.md", "report.html")):
        assert found(path.read_text("utf-8")) == [], path.name


def test_the_search_finds_what_is_planted(tmp_path: Path) -> None:
    """Without a redactor the same search finds the secrets: it can fail."""
    record = a_run(tmp_path)
    written = write_all(record, Redactor(), tmp_path)

    assert found(written["report.json"].read_text("utf-8"))
    assert found(written["report.html"].read_text("utf-8"))
    assert found(printed(record, Redactor()))


def test_without_a_redactor_the_servers_key_is_hidden(tmp_path: Path) -> None:
    """A failure block that was given no redactor still knows the server's key."""
    record = a_run(tmp_path)
    row = record.results[0]
    text = terminal.failure_block(row, record.servers[row.profile], folder=tmp_path)

    assert SECRETS[0] not in text
