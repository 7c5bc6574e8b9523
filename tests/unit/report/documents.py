"""Reports of sample runs, and of runs that mean harm."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.decide.verdict import Verdict
from pytest_vllm.report import json_report
from pytest_vllm.wire.redact import Redactor
from tests.golden.sample_parts import CHAT, answer, record, result, run_of, server

if TYPE_CHECKING:
    from pytest_vllm.report.record import RunRecord
    from pytest_vllm.wire.policy import Access
    from pytest_vllm.wire.recording import Request

HOSTILE = (
    "</script></pre><script>alert(1)</script>```\n# pwned\n"
    "<img src=x onerror=alert(1)> | [a](http://x) \x1b[2J"
)


def curl(request: Request, url: str, *, key_env: str, access: Access | None) -> str:
    return f'#!/bin/sh\necho {request.method} {url}{request.path} "${{{key_env}:-no key}}"\n'


def document(record: RunRecord) -> dict[str, Any]:
    return json_report.document(record, Redactor(), curl)


def read_back(record: RunRecord) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json_report.dumps(document(record)))
    return loaded


def hostile() -> RunRecord:
    """A server that answers with markup, and a check that repeats it."""
    row = result("chat.envelope.object", Verdict.FAIL, reason=HOSTILE, fact=f"A fact. {HOSTILE}")
    body = {**CHAT, "object": HOSTILE, HOSTILE: HOSTILE}
    run = run_of(server(model=HOSTILE), answer("chat.plain", body), died=HOSTILE, facts={HOSTILE: HOSTILE})
    return record({"sim": run}, [row, result("x.y", Verdict.NOT_RUN, reason=HOSTILE)])


def many(count: int) -> RunRecord:
    """So many failing checks, each with a long reason and body."""
    rows = [
        result(f"chat.envelope.fact-{n}", Verdict.FAIL, reason="x" * 500, area=f"area-{n}")
        for n in range(count)
    ]
    rows += [result(f"lora.fact-{n}", Verdict.NOT_RUN, reason=f"{n} {'y' * 300}") for n in range(count)]
    return record({"sim": run_of(server(), answer("chat.plain", {"a": ["z" * 70] * 40}))}, rows)
