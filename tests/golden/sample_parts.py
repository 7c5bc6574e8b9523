"""Parts of runs to print: servers, recordings, results; fixed clock, fixed ids."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.decide.verdict import Family, Level, Result, Verdict, decide
from pytest_vllm.report.record import Phase, RunRecord, ServerRun
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.server import Capability, Server

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STARTED = dt.datetime(2026, 11, 27, 20, 50, tzinfo=dt.UTC)
SENT = STARTED.timestamp() + 600
FOLDER = Path(".vllm/runs/20261127-2050-7c1e")

WEATHER = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}},
}


def server(profile: str = "sim", *, simulated: bool = True, **more: Any) -> Server:
    present = ("chat", "stream", "tools", "metrics")
    known = {
        name: Capability(name, name in present, "trial request") for name in (*present, "lora", "vision")
    }
    defaults: dict[str, Any] = {
        "url": "http://127.0.0.1:49153",
        "model": "qwen3-30b",
        "version": "0.32.0",
        "max_model_len": 32768,
        "max_num_seqs": 8,
        "args": {"max-model-len": 32768, "tool-call-parser": "hermes"},
        "capabilities": known,
        "launcher": "sim" if simulated else "docker",
        "models": ("qwen3-30b",),
    }
    return Server(profile=profile, simulated=simulated, **{**defaults, **more})


def answer(key: str, body: Any, *, status: int = 200, at: float = 0.05, **more: Any) -> Recording:
    """A recording of a JSON answer."""
    request = more.pop("request", None) or Request(
        "POST",
        "/v1/chat/completions",
        json={"model": "qwen3-30b", "messages": [{"role": "user", "content": "Say hi."}], "temperature": 0},
    )
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = more.pop("headers", (("content-type", "application/json"),))
    return Recording(key, request, status, headers, ((at, text),), SENT, at, at, **more)


def stream(key: str, events: Sequence[Any], *, request: Request | None = None, **more: Any) -> Recording:
    """A recording of a stream: events 30 ms apart, strings as they are, anything else as JSON."""
    texts = [event if isinstance(event, str) else json.dumps(event) for event in events]
    chunks = tuple((0.18 + 0.03 * place, f"data: {text}\n\n".encode()) for place, text in enumerate(texts))
    request = request or Request(
        "POST",
        "/v1/chat/completions",
        json={
            "model": "qwen3-30b",
            "stream": True,
            "tool_choice": "required",
            "tools": [WEATHER],
            "temperature": 0,
        },
    )
    headers = (("content-type", "text/event-stream; charset=utf-8"),)
    took = chunks[-1][0] if chunks else 0.2
    return Recording(key, request, 200, headers, chunks, SENT, 0.17, took, **more)


def chunk(delta: Mapping[str, Any], **choice: Any) -> dict[str, Any]:
    """One chunk of a chat stream."""
    choices = [{"index": 0, "delta": dict(delta), "finish_reason": None, **choice}]
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "qwen3-30b", "choices": choices}


def arguments(text: str) -> dict[str, Any]:
    """A chunk with a piece of a tool call's arguments."""
    return chunk({"tool_calls": [{"index": 0, "function": {"arguments": text}}]})


BROKEN_TOOL_CALL = [
    chunk({"role": "assistant", "content": ""}),
    chunk(
        {"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "get_weather", "arguments": ""}}]}
    ),
    *(arguments(piece) for piece in ('{"', "city", '": "', "Par", "is", '" "', "unit", '": "', "c", '"}')),
    chunk({}, finish_reason="tool_calls"),
    "[DONE]",
]


def result(check: str, verdict: Verdict = Verdict.PASS, **more: Any) -> Result:
    """One result; the suite is the id's first word."""
    area = check.partition(".")[0]
    defaults: dict[str, Any] = {
        "level": Level.SHOULD if verdict is Verdict.ADVISORY else Level.MUST,
        "family": Family.CONFORMANCE,
        "fact": "A chat answer names itself `chat.completion`.",
        "area": area,
        "source": f"suites/{area}/test_envelope.py:41",
        "spec": "openai:chat/object",
        "exchanges": ("chat.plain",),
        "seconds": 0.0004,
        "profile": "sim",
        "nodeid": f"suites/{area}/test_envelope.py::test_{check.rpartition('.')[2].replace('-', '_')}",
    }
    return Result(check=check, verdict=verdict, **{**defaults, **more})


def passes(area: str, count: int, **more: Any) -> list[Result]:
    """Checks of one suite that passed."""
    return [result(f"{area}.sample.fact-{n}", **more) for n in range(1, count + 1)]


CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "qwen3-30b",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
}


def run_of(one: Server, *recordings: Recording, **more: Any) -> ServerRun:
    """A server with recordings, filed as a run files them."""
    files = {r.key: f"{one.profile}/recordings/{r.key}.jsonl" for r in recordings}
    defaults: dict[str, Any] = {
        "facts": {"image": "vllm/vllm-openai@sha256:4f1c", "container": "pytest-vllm-7c1e"},
        "boot_phases": (("container started", 0.0), ("loading weights", 12.0), ("compiling", 310.0)),
        "log_file": f"{one.profile}/server.log",
        "origin": "built in",
        "files": files,
    }
    return ServerRun(one, recordings={r.key: r for r in recordings}, **{**defaults, **more})


def record(servers: Mapping[str, ServerRun], results: Sequence[Result], **more: Any) -> RunRecord:
    """A run of these servers and results."""
    phases = tuple(
        phase
        for name in servers
        for phase in (
            Phase("boot", 1.2, {"profile": name}),
            Phase("probe", 0.2, {"profile": name}),
            Phase("record", 2.6, {"profile": name, "exchanges": 80, "concurrency": 8, "bound_seconds": 3.1}),
            Phase("judge", 0.9, {"profile": name}),
        )
    )
    defaults: dict[str, Any] = {
        "run_id": FOLDER.name,
        "started": STARTED,
        "seconds": 5.1,
        "folder": FOLDER,
        "decision": decide(results),
        "phases": phases,
        "command": "pytest --vllm-profile=sim",
        "versions": {"pytest-vllm": "0.1.0", "python": "3.12.3", "pytest": "9.2.0"},
    }
    return RunRecord(servers=dict(servers), results=tuple(results), **{**defaults, **more})
