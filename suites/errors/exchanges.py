"""Requests of the errors suite: what a server has to refuse, and what it has to survive."""

import json
from typing import Any

from pytest_vllm import Case, Recording, Request, Server, case_file, cases, exchange

BAD: list[dict[str, Any]] = json.loads(case_file("bad-requests").read_text("utf-8"))

bad_request = cases("bad_request", BAD)
odd_request = cases("odd_request", case_file("odd-requests"))
hostile_request = cases("hostile_request", case_file("hostile-requests"))

#: The good request that a case spoils, by route.
GOOD: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1},
    "/v1/completions": {"prompt": "Hi", "max_tokens": 1},
}
NESTED = "[" * 2000 + "]" * 2000
LENGTHS = {"%KILOBYTE%": 1000, "%LONG%": 20_000, "%MEGABYTE%": 1_000_000}


def spoiled(server: Server, case: Case) -> Request:
    """The request of a case: a good one with fields set and dropped, or raw text."""
    method = case.get("method", "POST")
    if "raw" in case.values:
        text = case["raw"].replace("%MODEL%", server.model).replace("%NESTED%", NESTED)
        headers = {"content-type": case.get("content-type", "application/json")}
        return Request(method, case["path"], content=text, headers=headers, expect=None)
    if method != "POST":
        return Request(method, case["path"], expect=None)
    given = {**GOOD.get(case["path"], {}), **{name: _filled(v) for name, v in case.get("set", {}).items()}}
    request = server.post(case["path"], given, expect=None)
    for name in case.get("drop", []):
        del request.json[name]
    return request


def _filled(value: Any) -> Any:
    return "x" * LENGTHS[value] if isinstance(value, str) and value in LENGTHS else value


@exchange("errors.bad")
def errors_bad(server: Server, bad_request: Case) -> Request:
    """A request that breaks one rule."""
    return spoiled(server, bad_request)


@exchange("errors.odd")
def errors_odd(server: Server, odd_request: Case) -> Request:
    """A request that a server may take or refuse, but must survive."""
    return spoiled(server, odd_request)


@exchange("errors.hostile")
def errors_hostile(server: Server, hostile_request: Case) -> Request:
    """A request that ended the engine of versions before `from`; those get a harmless refusal instead."""
    if server.version and server.at_least(hostile_request["from"]):
        return spoiled(server, hostile_request)
    return server.chat("Hi", n=-1, expect=None)


@exchange("errors.after-bad")
def errors_after_bad(server: Server, errors_bad: Recording) -> Request:
    """One token, asked for once a bad request was answered."""
    del errors_bad
    return server.completion("Hi", max_tokens=1)


@exchange("errors.after-odd")
def errors_after_odd(server: Server, errors_odd: Recording) -> Request:
    """One token, asked for once an odd request was answered."""
    del errors_odd
    return server.completion("Hi", max_tokens=1)


@exchange("errors.after-hostile")
def errors_after_hostile(server: Server, errors_hostile: Recording) -> Request:
    """One token, asked for once a hostile request was answered."""
    del errors_hostile
    return server.completion("Hi", max_tokens=1)


def too_long(server: Server) -> str:
    """A text of more tokens than the server's context holds: every number is at least one token."""
    return " ".join(str(number) for number in range((server.max_model_len or 262_144) + 50))


@exchange("errors.context-chat")
def errors_context_chat(server: Server) -> Request:
    """A chat prompt longer than the context."""
    return server.chat(too_long(server), max_tokens=1, expect=400)


@exchange("errors.context-stream")
def errors_context_stream(server: Server) -> Request:
    """A streamed chat prompt longer than the context."""
    return server.chat(too_long(server), max_tokens=1, stream=True, expect=400)


@exchange("errors.context-tokens")
def errors_context_tokens(server: Server) -> Request:
    """A prompt of token ids, one more than the context holds."""
    return server.completion([100] * ((server.max_model_len or 262_144) + 1), max_tokens=1, expect=400)


@exchange("errors.fan-out")
def errors_fan_out(server: Server) -> Request:
    """A million choices at once; less than none where the version knows no limit yet (CVE-2026-34756)."""
    count = 1_000_000 if server.version and server.at_least("0.19.0") else -1
    return server.chat("Hi", n=count, temperature=1, max_tokens=1, expect=400)


@exchange("errors.unknown-field")
def errors_unknown_field(server: Server) -> Request:
    """A chat request with a field that no API has."""
    return server.chat("Hi", max_tokens=1, pytest_vllm_unknown=True, expect=None)


@exchange("errors.stream-bad-regex")
def errors_stream_bad_regex(server: Server) -> Request:
    """A stream whose constraint cannot be compiled; before 0.30, where that is hostile, a bad temperature."""
    if server.version and server.at_least("0.30.0"):
        return server.chat("Hi", max_tokens=4, stream=True, structured_outputs={"regex": "("}, expect=None)
    return server.chat("Hi", max_tokens=4, stream=True, temperature=-1, expect=None)


@exchange("errors.whole-bad-regex")
def errors_whole_bad_regex(server: Server, errors_stream_bad_regex: Recording) -> Request:
    """The same request, not streamed."""
    body = {**errors_stream_bad_regex.request.json, "stream": False}
    return server.post("/v1/chat/completions", body, expect=400)
