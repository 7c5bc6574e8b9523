"""Wrong refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.unit.suites_b.breaks import (
    Break,
    answered,
    changed,
    edited,
    every,
    having,
    headed,
    one,
    raw,
    streamed,
)

if TYPE_CHECKING:
    from pytest_vllm.wire.recording import Recording

BAD = every("errors.bad[t")
HOT, ROLE = "errors.bad[temperature-negative]", "errors.bad[role-missing]"
STREAM = "errors.stream-bad-regex"


def _error(**fields: Any) -> Any:
    return lambda body: body["error"].update(fields)


def _flat(body: Any) -> None:
    error = body.pop("error")
    body.update(error)


def _without_params(recording: Recording) -> Recording:
    body = recording.body.decode().replace("temperature", "it")
    return recording.with_response(chunks=((0.1, body.encode()),))


ERRORS = [
    Break("no response", answered(HOT, None), ("errors.answered",)),
    Break("taken", answered(HOT, 200, "{}"), ("errors.refused[temperature-negative]",)),
    Break(
        "a server error",
        answered(
            HOT,
            500,
            '{"error": {"message": "temperature", "type": "x", "param": "temperature", "code": 500}}',
        ),
        ("errors.refused[temperature-negative]",),
    ),
    Break(
        "an odd request breaks the server",
        answered("errors.odd[content-lone-surrogate]", 500),
        ("errors.survived[content-lone-surrogate]",),
    ),
    Break(
        "no limit is refused",
        answered("errors.odd[max-tokens-null]", 400),
        ("errors.survived[max-tokens-null]",),
    ),
    Break(
        "a hostile request breaks the server",
        answered("errors.hostile[temperature-nan]", 500),
        ("errors.hostile[temperature-nan]",),
    ),
    Break("dead afterwards", answered("errors.after-bad[temperature-word]", 500), ("errors.alive",)),
    Break("silent afterwards", answered("errors.after-odd[tools-empty]", None), ("errors.alive",)),
    Break(
        "two tokens for one",
        edited("errors.after-bad[temperature-word]", lambda b: b["usage"].update(completion_tokens=2)),
        ("errors.alive.generates",),
    ),
    Break("slow", having(HOT, seconds=9.0), ("errors.quick",)),
    Break("a million choices", answered("errors.fan-out", 200, "{}"), ("errors.fan-out",)),
    Break(
        "an unknown field breaks the server",
        answered("errors.unknown-field", 500),
        ("errors.unknown-field", "errors.no-internals")[:1],
    ),
    Break("no JSON", raw(one(ROLE), "{", "("), ("errors.envelope.json",)),
    Break("marked as text", headed(BAD, content_type="text/plain"), ("errors.envelope.json",)),
    Break("a bare error", edited(HOT, _flat), ("errors.envelope.keys",)),
    Break("no type", edited(HOT, lambda b: b["error"].pop("type")), ("errors.envelope.keys",)),
    Break(
        "an error that is text",
        edited(HOT, lambda b: b.update(error="temperature")),
        ("errors.envelope.keys",),
    ),
    Break("another code", edited(HOT, _error(code=422)), ("errors.envelope.code",)),
    Break("no words", edited("errors.bad[messages-empty]", _error(message="")), ("errors.envelope.words",)),
    Break("a type that is a number", edited(HOT, _error(type=400)), ("errors.envelope.words",)),
    Break(
        "the culprit unnamed", changed(one(HOT), _without_params), ("errors.names-culprit", "errors.param")
    ),
    Break("another culprit", edited(HOT, _error(param="top_p")), ("errors.param",)),
    Break(
        "a path",
        edited(HOT, _error(message="temperature: /usr/lib/python3/site.py")),
        ("errors.no-internals",),
    ),
    Break(
        "an address",
        edited(HOT, _error(message="temperature <object at 0x7f3a2b1c4d5e>")),
        ("errors.no-internals",),
    ),
    Break(
        "a traceback",
        edited(HOT, _error(message='temperature File "a.py", line 3')),
        ("errors.no-internals",),
    ),
    Break("the input repeated", edited(HOT, _error(message="temperature" + "x" * 9000)), ("errors.no-echo",)),
    Break(
        "a long prompt breaks the server", answered("errors.context-chat", 500), ("errors.context.refused",)
    ),
    Break(
        "too many tokens taken",
        answered("errors.context-tokens", 200, "{}"),
        ("errors.context.refused-tokens",),
    ),
    Break(
        "a stream opened for a long prompt",
        answered("errors.context-stream", 200, 'data: {"error": {"message": "This"}}\n\n'),
        ("errors.context.refused-stream",),
    ),
    Break(
        "another limit",
        raw("errors.context-chat", "4096", "3"),
        ("errors.context.names-limit", "errors.context.same-words"),
    ),
    Break(
        "no Allow",
        headed(every("errors.bad[chat-by"), content_type="application/json"),
        ("errors.routes.allow",),
    ),
    Break(
        "routes out of shape", raw("errors.bad[chat-by-get]", "detail", "reason"), ("errors.routes.envelope",)
    ),
    Break("an empty stream", streamed(STREAM, lambda e: e[-1:]), ("errors.stream.shown",)),
    Break(
        "another code in the stream", raw(one(STREAM), '"code": 400', '"code": 500'), ("errors.stream.code",)
    ),
    Break("an error without a kind", raw(one(STREAM), '"type": "', '"kind": "'), ("errors.stream.shape",)),
    Break("left open", having(STREAM, error="ReadTimeout: no end"), ("errors.stream.closed",)),
    Break(
        "text after the error",
        streamed(STREAM, lambda e: [e[0], (0.2, '{"choices": []}'), e[-1]]),
        ("errors.stream.nothing-else",),
    ),
]
