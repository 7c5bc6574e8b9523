"""Wrong answers to probes, and doors left open."""

from __future__ import annotations

from pytest_vllm.wire.failure import Failure
from tests.unit.suites_b.breaks import Break, answered, changed, edited, every, having, headed, one

HEALTH = [
    Break("health fails", answered("health.ping", 500), ("health.answered",)),
    Break("health is a page", answered("health.health", 200, "<html></html>"), ("health.own",)),
    Break("health is slow", having("health.health", seconds=6.0), ("health.quick",)),
    Break(
        "no version",
        edited("health.version", lambda b: b.update(version="main")),
        ("health.version.readable",),
    ),
    Break(
        "no model",
        edited("health.models", lambda b: b["data"].clear()),
        ("health.models.listed", "answers.whole"),
    ),
    Break(
        "connections are closed",
        changed(
            one("health.health"), lambda r: r.with_response(headers=(*r.headers, ("connection", "close")))
        ),
        ("health.keep-alive",),
    ),
    Break("HEAD breaks", answered("health.head", 500), ("health.head",)),
    Break(
        "nothing is generated", answered("health.generates", None), ("health.generates", "health.truthful")
    ),
    Break("the engine is dead", answered("health.generates", 500), ("health.generates", "health.truthful")),
    Break("the model is unknown", answered("health.generates", 404), ("health.generates",)),
    Break(
        "no token",
        edited("health.generates", lambda b: b["usage"].update(completion_tokens=0)),
        ("health.generates.counted",),
    ),
    Break(
        "busy and slow",
        changed(every("health.busy"), lambda r: r.with_response(seconds=2.0)),
        ("health.busy",),
    ),
    Break(
        "a stream broken off",
        changed(one("health.work"), lambda r: r.with_response(chunks=r.chunks[:5], error="peer closed")),
        ("health.work-undisturbed", "answers.whole"),
    ),
    Break(
        "a stream whose connection breaks",
        changed(
            one("health.work"), lambda r: r.with_response(failure=Failure.TRUNCATED, chunks=r.chunks[:5])
        ),
        ("health.work-undisturbed", "answers.complete"),
    ),
    Break(
        "a stream that falls silent beside others",
        changed(
            one("health.work"),
            lambda r: r.with_response(failure=Failure.TIMEOUT_SILENCE, chunks=r.chunks[:1], seconds=60.0),
        ),
        ("health.work-undisturbed", "answers.complete"),
    ),
    Break(
        "an answer is compressed unasked",
        changed(
            one("health.models"), lambda r: r.with_response(headers=(*r.headers, ("content-encoding", "br")))
        ),
        ("answers.plain",),
    ),
]

SECURITY = [
    Break("the right key is refused", answered("security.keyed-models", 401), ("security.answered",)),
    Break(
        "a wrong key opens",
        answered("security.credential[wrong-key]", 200, "{}"),
        ("security.key.refused[wrong-key]",),
    ),
    Break(
        "a host opens",
        answered("security.credential[crafted-host]", 200, "{}"),
        ("security.key.refused[crafted-host]",),
    ),
    Break("chat without a key", answered("security.keyless-chat", 200, "{}"), ("security.key.guards-chat",)),
    Break("a route without a key", answered("security.route[messages]", 405), ("security.key.guards-api",)),
    Break(
        "scoring without a key", answered("security.route[score]", 405), ("security.key.guards-inference",)
    ),
    Break(
        "the key repeated",
        answered("security.credential[wrong-key]", 401, "sk-pytest-vllm-no-such-key is wrong"),
        ("security.key.not-echoed",),
    ),
    Break(
        "no challenge",
        headed(one("security.keyless-chat"), content_type="application/json"),
        ("security.key.challenge",),
    ),
    Break("no error object", answered("security.keyless-chat", 401, '"no"'), ("security.key.error-object",)),
    Break("sleep for anybody", answered("security.route[sleep]", 405), ("security.no-development-routes",)),
    Break(
        "a profiler for anybody",
        answered("security.route[start-profile]", 405),
        ("security.no-profiler-routes",),
    ),
    Break(
        "an address of the server's own is asked",
        answered("security.media-url", 500, '{"error": {"message": "Cannot connect to host 127.0.0.1:9"}}'),
        ("security.no-inner-fetch",),
    ),
    Break("adapters at run time", answered("security.lora-route", 405), ("security.no-lora-routes",)),
    Break(
        "a template from a client",
        answered("security.untrusted[chat-template]", 200, "{}"),
        ("security.untrusted-field[chat-template]",),
    ),
    Break(
        "every origin",
        headed(one("security.cross-origin"), access_control_allow_origin="*"),
        ("security.cross-origin.closed",),
    ),
    Break(
        "every origin with credentials",
        headed(
            one("security.cross-origin"),
            access_control_allow_origin="https://pytest-vllm.invalid",
            access_control_allow_credentials="true",
        ),
        ("security.cross-origin.closed", "security.cross-origin.no-credentials"),
    ),
    Break(
        "a version told",
        headed(one("security.cross-origin"), server="nginx/1.25.3"),
        ("security.server-header",),
    ),
]
