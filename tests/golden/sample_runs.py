"""Whole runs to print: fixed clock, fixed ids, no server. Used by the golden files and the report tests."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from pytest_vllm.decide.verdict import Family, Level, Verdict
from pytest_vllm.profile.model import Waiver
from pytest_vllm.report.record import BootFailure, Phase
from pytest_vllm.wire.recording import Recording, Request
from tests.golden.sample_parts import (
    BROKEN_TOOL_CALL,
    CHAT,
    FOLDER,
    SENT,
    answer,
    chunk,
    passes,
    record,
    result,
    run_of,
    server,
    stream,
)

if TYPE_CHECKING:
    from pytest_vllm.report.record import RunRecord


def go() -> RunRecord:
    """Everything holds, on the simulator."""
    rows = [
        *passes("chat", 18),
        *passes("stream", 14),
        *passes("metrics", 7),
        result("models.created-is-stable", Verdict.ADVISORY, reason="created was 1 and then 2"),
        *(
            result(
                f"lora.load.fact-{n}",
                Verdict.NOT_RUN,
                reason="the server has no lora and the profile does not expect it",
            )
            for n in range(1, 12)
        ),
    ]
    return record({"sim": run_of(server(), answer("chat.plain", CHAT))}, rows)


def no_go() -> RunRecord:
    """A broken tool-call stream, a speed below its floor, an error body of the wrong kind, and a header."""
    spark = server("spark-fp8", simulated=False, api_key="sk-live-0123456789abcdef")
    of_spark = {"profile": "spark-fp8"}
    tool = stream("tools.required-stream", BROKEN_TOOL_CALL)
    speeds = [answer(f"speed.decode[{n}]", CHAT, at=1.5) for n in range(1, 6)]
    missing = answer(
        "errors.missing-model",
        b"<html><body><h1>502 Bad Gateway</h1><p>nginx</p></body></html>\n",
        status=502,
        headers=(("content-type", "text/html"), ("server", "nginx")),
        request=Request(
            "POST", "/v1/chat/completions", json={"messages": []}, headers={"X-Request-Id": "a-1"}, expect=400
        ),
    )
    log = (
        (SENT - 1, "INFO 11-27 21:00:01 [loggers.py:248] Engine 000: Running: 1 reqs, Waiting: 0 reqs"),
        (SENT + 0.2, 'INFO:     127.0.0.1:51000 - "POST /v1/chat/completions HTTP/1.1" 200 OK'),
        (SENT + 0.4, "WARNING 11-27 21:00:02 [hermes_tool_parser.py:88] partial JSON could not be parsed"),
        (SENT + 300, "ERROR much later, of no concern"),
    )
    rows = [
        *passes("chat", 18, **of_spark),
        *passes("tools", 16, **of_spark),
        result(
            "tools.stream.arguments-join",
            Verdict.FAIL,
            fact="The argument pieces of a streamed tool call join into one JSON object.",
            reason="joined text is not JSON: Expecting ',' delimiter at column 17\n"
            'joined  {"city": "Paris" "unit": "c"}\n'
            "                         ^",
            spec="openai:chat/streaming#tool_calls",
            source="suites/tools/test_streamed_arguments.py:41",
            exchanges=("tools.required-stream",),
            **of_spark,
        ),
        result(
            "throughput.decode.floor",
            Verdict.FAIL,
            family=Family.PERFORMANCE,
            fact="One stream decodes at least as fast as the profile demands.",
            reason="29.6 tok/s at 1 stream, the floor is 30.0 tok/s (median of 5, 28.9 to 30.2)",
            spec="profile:limits.decode-tok-s",
            source="suites/throughput/test_floors.py:17",
            exchanges=tuple(one.key for one in speeds),
            observations={"decode-tok-s": "decode-tok-s 29.6, floor 30 (28.9 to 29.9, 98 %, n 5, 40 s)"},
            **of_spark,
        ),
        result(
            "throughput.first-token.limit",
            Verdict.PASS,
            family=Family.PERFORMANCE,
            fact="The first token comes as soon as the profile promises.",
            spec="profile:limits.ttft",
            observations={"ttft": "ttft 0.31 s, limit 0.5 s (0.29 to 0.34, 98 %, n 40, 30 s)"},
            **of_spark,
        ),
        result(
            "errors.missing-model.status",
            Verdict.FAIL,
            fact="A request without a model is refused with 400.",
            reason="errors.missing-model was answered with 502, content-type text/html",
            source="suites/errors/test_bad_requests.py:12",
            exchanges=("errors.missing-model",),
            **of_spark,
        ),
    ]
    long = (
        Phase("boot", 592.0, {"profile": "spark-fp8"}),
        Phase(
            "record",
            41.0,
            {
                "profile": "spark-fp8",
                "exchanges": 80,
                "concurrency": 8,
                "bound_seconds": 33.5,
                "within_bound": False,
            },
        ),
        Phase("judge", 1.0, {"profile": "spark-fp8"}),
    )
    servers = {"spark-fp8": run_of(spark, tool, missing, *speeds, log=log)}
    return record(servers, rows, seconds=641.2, phases=long, command="pytest --vllm-profile=spark-fp8")


def undecided() -> RunRecord:
    """A MUST check whose path was not exercised, and one that crashed."""
    vague = stream(
        "stream.stop-string", [chunk({"content": "Hi"}), chunk({}, finish_reason="length"), "[DONE]"]
    )
    rows = [
        *passes("chat", 18),
        result(
            "stream.stop.not-in-text",
            Verdict.UNDECIDED,
            fact="The stop string is not part of the streamed text.",
            reason="the model never came near the stop string, so nothing was cut",
            exchanges=("stream.stop-string",),
        ),
        result(
            "usage.total.adds-up",
            Verdict.UNDECIDED,
            fact="total_tokens is the sum of prompt_tokens and completion_tokens.",
            reason="the check crashed at test_usage.py:31: KeyError: 'usage'",
            exchanges=("chat.unrecorded",),
        ),
    ]
    return record({"sim": run_of(server(), vague)}, rows)


def nothing_ran() -> RunRecord:
    """Every selected check needs what the server lacks."""
    why = "the server has no lora and the profile does not expect it"
    rows = [result(f"lora.load.fact-{n}", Verdict.NOT_RUN, reason=why) for n in (1, 2)]
    return record({"sim": run_of(server())}, rows)


def two_profiles() -> RunRecord:
    """GO on the simulator, NO-GO on another server."""
    other = server("rtx5090-awq", simulated=False, url="http://127.0.0.1:49200", model="qwq-32b")
    broken = {**CHAT, "object": "chat.completions"}
    rows = [
        *passes("chat", 3),
        *passes("chat", 2, profile="rtx5090-awq"),
        result(
            "chat.envelope.object",
            Verdict.FAIL,
            reason="object is 'chat.completions'",
            profile="rtx5090-awq",
        ),
    ]
    servers = {
        "sim": run_of(server(), answer("chat.plain", CHAT)),
        "rtx5090-awq": run_of(other, answer("chat.plain", broken)),
    }
    return record(servers, rows, seconds=10.4)


def waivers() -> RunRecord:
    """One waiver in force, one that has ended."""
    issue = "https://github.com/vllm-project/vllm/issues/1"
    known = Waiver(
        check="stream.usage.null-before-final",
        reason="our clients do not read it",
        issue=issue,
        versions="<0.34",
        until=dt.date(2027, 3, 31),
    )
    old = Waiver(
        check="chat.envelope.object",
        reason="fixed soon",
        issue=issue,
        versions="<0.34",
        until=dt.date(2026, 10, 1),
    )
    rows = [
        *passes("chat", 3),
        result(
            "stream.usage.null-before-final",
            Verdict.WAIVED,
            level=Level.SHOULD,
            fact="With include_usage, every chunk before the last has `usage: null`.",
            reason=f"our clients do not read it ({issue}, until 2027-03-31); chunks [0, 1] have no usage",
        ),
        result(
            "chat.envelope.object",
            Verdict.FAIL,
            reason=f"object is 'chat.completions'\nits waiver ended on 2026-10-01: fixed soon ({issue})",
        ),
    ]
    broken = answer("chat.plain", {**CHAT, "object": "chat.completions"})
    return record({"sim": run_of(server(), broken, waivers=(known, old))}, rows)


def died() -> RunRecord:
    """The server is killed while it is being tested."""
    cpu = server("cpu-smollm2", simulated=False, model="smollm2")
    lost = Recording(
        "chat.long",
        Request("POST", "/v1/chat/completions", json={"model": "smollm2", "n": 8}),
        None,
        sent=SENT,
        seconds=3.02,
        error="the server closed the connection",
    )
    log = (
        (SENT, "INFO 11-27 21:00:01 [loggers.py:248] Engine 000: Running: 8 reqs, Waiting: 0 reqs"),
        (SENT + 2.9, "ERROR 11-27 21:00:04 [core.py:710] EngineCore encountered a fatal error."),
        (SENT + 2.9, "RuntimeError: unable to allocate 512 MiB"),
    )
    why = "chat.long got no response: the server closed the connection"
    rows = [
        *passes("models", 4, profile="cpu-smollm2"),
        *(
            result(
                f"chat.long.fact-{n}",
                Verdict.UNDECIDED,
                reason=why,
                exchanges=("chat.long",),
                profile="cpu-smollm2",
            )
            for n in range(1, 6)
        ),
    ]
    how = "the container was killed because memory ran out, status 137, after 41 of 80 exchanges"
    return record({"cpu-smollm2": run_of(cpu, lost, log=log, died=how)}, rows)


BOOT_FAILURE = BootFailure(
    profile="spark-fp8",
    what="the container exited with status 1 after 3:12, while sizing the KV cache",
    evidence=(
        (
            "ValueError: To serve at least one request with the model's max seq len (32768), 9.1 GiB KV "
            "cache is needed, which is larger than the available KV cache memory (6.4 GiB)."
        ),
    ),
    means="gpu-memory-utilization 0.80 leaves too little room for max-model-len 32768",
    try_=("[server.args] max-model-len = 22000", "[server.args] gpu-memory-utilization = 0.86"),
    seconds=192.0,
    kept=(f"{FOLDER}/spark-fp8/server.log", f"{FOLDER}/spark-fp8/inspect.json", "container removed"),
)


def did_not_boot() -> RunRecord:
    """The container exits while it sizes the KV cache."""
    return record(
        {}, [], seconds=193.0, boot_failures=(BOOT_FAILURE,), command="pytest --vllm-profile=spark-fp8"
    )


RUNS = {
    "go-sim": go,
    "no-go-stream": no_go,
    "undecided": undecided,
    "nothing-ran": nothing_ran,
    "two-profiles": two_profiles,
    "waivers": waivers,
    "server-died": died,
    "did-not-boot": did_not_boot,
}
