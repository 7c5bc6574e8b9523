"""Small runs to compare: recordings of answers, and extracts made of them by the code that the gate uses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.decide.verdict import Family, Level, Result, Verdict
from pytest_vllm.report.compare.extract import assembled, observed, verdicts
from pytest_vllm.report.compare.identity import identity
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CHAT = "/v1/chat/completions"


def answer(
    key: str, body: Any, *, ask: Mapping[str, Any] | None = None, path: str = CHAT, **more: Any
) -> Recording:
    """A whole answer to a greedy request; `status`, `sent` and `seconds` may be given."""
    request = Request("POST", path, json={"temperature": 0, "messages": [key], **(ask or {})})
    text = json.dumps(body).encode()
    headers = (("content-type", "application/json"),)
    return Recording(key, request, **{"status": 200, "headers": headers, "chunks": ((0.1, text),), **more})


def chat(key: str, text: str, *, ask: Mapping[str, Any] | None = None, **message: Any) -> Recording:
    """A chat answer of this text; further fields of its message by name."""
    inner = {"role": "assistant", "content": text, **message}
    choice = {"index": 0, "message": inner, "finish_reason": "stop"}
    body = {
        "id": f"chatcmpl-{key}",
        "object": "chat.completion",
        "choices": [choice],
        "usage": {"prompt_tokens": 9},
    }
    return answer(key, body, ask=ask)


def stream(key: str, *deltas: Mapping[str, Any], done: bool = True) -> Recording:
    """A chat stream of these deltas."""
    events = [
        {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]} for delta in deltas
    ]
    text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n" * done
    request = Request("POST", CHAT, json={"temperature": 0, "stream": True, "messages": [key]})
    headers = (("content-type", "text/event-stream"),)
    return Recording(key, request, status=200, headers=headers, chunks=((0.1, text.encode()),))


def scrape(text: str) -> Recording:
    """An answer of `/metrics`."""
    return Recording("metrics", Request("GET", "/metrics"), status=200, chunks=((0.1, text.encode()),))


def part_of(
    recordings: Iterable[Recording] = (),
    *,
    results: Mapping[str, str] | None = None,
    log: Iterable[str] = (),
    document: Mapping[str, Any] | None = None,
    **who: Any,
) -> dict[str, Any]:
    """A profile's part of an extract; parts of its identity by name."""
    by_key = {one.key: one for one in recordings}
    server = Server("http://x", "m", version="0.32.0", profile="p", launcher="process")
    told = identity(server, by_key, facts={}, profile={}, suite="1", machine={})
    rows = [
        Result(check, Level.MUST, Family.CONFORMANCE, Verdict(verdict), f"{check} holds.", profile="p")
        for check, verdict in (results or {"a.one": "pass"}).items()
    ]
    return {
        "answer": "GO",
        "why": "",
        "identity": {**told, **who},
        **verdicts(rows),
        "observed": observed(by_key, list(log), document, ["m"]),
        "boot": [["starting", 0.0], ["started", 30.0]],
        "figures": {},
        "loads": {},
    }


def run_of(part: dict[str, Any], run: str = "r1", **about: Any) -> dict[str, Any]:
    """An extract of one profile, `p`."""
    started = "2026-11-29T04:00:00+00:00"
    told = {"id": run, "started": started, "seconds": 1.0, "suite": "1", "tier": "gate", "partial": False}
    return assembled({**told, "replayed": "", **about}, {"p": part})
