"""Requests of the spelling suite: each leaves the model one text, whatever the model."""

from __future__ import annotations

from typing import Any

from pytest_vllm import Case, Recording, Request, Server, cases, exchange, only_if

from .texts import ABSENT, CODE, EACH, LATE, LONG, PROMPT, SCRIPTS, WITHIN, only

#: More tokens than any text has, in any vocabulary; seconds that the long one may take.
ROOM, PATIENCE = 240, 45.0
#: Some models think, however much they are asked not to.
THOUGHT = 760
#: How many lines of the long text are worth it.
FEW = 14
CHAT, COMPLETIONS = "chat", "completions"
#: Hotter than any text bears that nothing but a constraint holds together.
DRAWN: dict[str, Any] = {"temperature": 1.6, "n": 2}
SHOWN: dict[str, Any] = {"include_stop_str_in_output": True}
#: Near the end of the code, so that all of it but a word is shown; asked whole and streamed.
STOPPED: dict[str, Any] = {"stop": [ABSENT, LATE], **SHOWN}
STREAM: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
ALONG: dict[str, Any] = {"stream_options": {"include_usage": True, "continuous_usage_stats": True}}

spelt = cases(
    "spelt",
    [
        {"id": "code", "over": COMPLETIONS, "text": CODE, "more": {"return_token_ids": True}},
        {"id": "scripts", "over": COMPLETIONS, "text": SCRIPTS, "more": DRAWN},
        {"id": "code-chat", "over": CHAT, "text": CODE, "more": DRAWN},
        {"id": "scripts-chat", "over": CHAT, "text": SCRIPTS, "more": {}},
    ],
)
spelt_streamed = cases(
    "spelt_streamed",
    [
        {"id": "code", "over": COMPLETIONS, "text": CODE, "more": {"stop": [ABSENT, "zebra"], **ALONG}},
        {
            "id": "code-stopped",
            "over": COMPLETIONS,
            "text": CODE,
            "more": {"stop": [ABSENT, WITHIN], **SHOWN, **DRAWN},
        },
        {"id": "code-echoed", "over": COMPLETIONS, "text": CODE, "more": {"echo": True, **DRAWN}},
        {"id": "scripts", "over": COMPLETIONS, "text": SCRIPTS, "more": {"logprobs": 1}},
        {"id": "code-chat", "over": CHAT, "text": CODE, "more": {**STOPPED, **ALONG}},
        {"id": "scripts-chat", "over": CHAT, "text": SCRIPTS, "more": DRAWN},
    ],
)


@exchange("spelling.whole", spread=True)
def spelling_whole(server: Server, spelt: Case) -> Request:
    """A text that a constraint leaves as the only one."""
    return _asked(server, spelt)


@exchange("spelling.streamed", spread=True)
def spelling_streamed(server: Server, spelt_streamed: Case) -> Request:
    """The same in a stream."""
    return _asked(server, spelt_streamed, STREAM)


@exchange("spelling.exact")
def spelling_exact(server: Server, spelling_stopped: Recording) -> Request:
    """The same with as many tokens as it takes to the end of the stop string."""
    tokens = spelling_stopped.ok["usage"]["completion_tokens"]
    asked = {**spelling_stopped.request.json, "max_tokens": tokens}
    return server.post(spelling_stopped.request.path, asked, expect=None)


@exchange("spelling.stopped")
def spelling_stopped(server: Server) -> Request:
    """A text that is stopped within, and shows what stops it."""
    body: dict[str, Any] = {"max_tokens": ROOM, "temperature": 0, **STOPPED}
    return _ask(server, CHAT, CODE, body)


@exchange("spelling.long")
def spelling_long(server: Server, completions_default_length: Recording) -> Request:
    """A long text that is the only one, streamed: as many lines of it as this server writes in time."""
    per_token = completions_default_length.seconds / 16
    lines = LONG.splitlines(keepends=True)
    within = int(PATIENCE / per_token / EACH) if per_token else len(lines)
    longest = ((server.max_model_len or 4096) - 64) // EACH
    count = min(len(lines), within, longest)
    only_if(count >= FEW, f"{per_token:.2f} s a token: {count} lines are no long text")
    return _ask(server, COMPLETIONS, "".join(lines[:count]), {"max_tokens": count * EACH, **STREAM})


def _asked(server: Server, case: Case, more: dict[str, Any] | None = None) -> Request:
    wanted = {**(more or {}), **case["more"]}
    only_if("logprobs" not in wanted or server.can("logprobs"), "the server gives no log probabilities")
    asked = _ask(server, case["over"], case["text"], {"max_tokens": ROOM, **wanted})
    headers = {"X-Request-Id": f"gate-spelt-{case.id}-{'stream' if more else 'whole'}"}
    return Request(asked.method, asked.path, json=asked.json, headers=headers, expect=None)


def _ask(server: Server, over: str, text: str, body: dict[str, Any]) -> Request:
    only_if(server.at_least("0.11.0"), "constraints had other names before 0.11.0")
    if over == CHAT:
        only_if(server.can("chat"), "the server has no chat")
        asked = {**only(text.rstrip()), **body}  # what parses an answer may strip it
        if server.can("reasoning"):
            calm = {"chat_template_kwargs": {"enable_thinking": False}}
            asked |= {**calm, "max_tokens": body["max_tokens"] + THOUGHT}
        return server.chat("Write what you must.", expect=None, **asked)
    return server.completion(PROMPT, expect=None, **only(text), **body)
