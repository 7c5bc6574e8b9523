"""Requests of the chat suite: short, greedy unless the fact under test is about sampling."""

from __future__ import annotations

from typing import Any

from pytest_vllm import Case, Recording, Request, Server, cases, exchange, text_of

QUESTION = "What is the capital of France?"
ORDER = "Answer in one word, and in capital letters."
TURNS = ("My dog is called Bello.", "Good to know.", "How is my dog called?")

#: A conversation with a rule at its begin and one within it, and a turn of two parts.
PARTS = [{"type": "text", "text": TURNS[0]}, {"type": "text", "text": "It is small and brown."}]
RULED: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": PARTS},
    {"role": "assistant", "content": TURNS[1]},
    {"role": "system", "content": ORDER},
    {"role": "user", "content": TURNS[2]},
]

#: White space and the commonest letters: any text of a few words holds one of them.
COMMON = [" ", "e", "a", "i"]

LIMITS = [{"id": name, "max": limit} for name, limit in (("one", 1), ("two", 2), ("five", 5), ("forty", 40))]
exact_tokens = cases("exact_tokens", LIMITS)


@exchange("chat.plain")
def chat_plain(server: Server) -> Request:
    """A short greedy answer."""
    return server.chat(QUESTION, max_tokens=12)


@exchange("chat.repeat")
def chat_repeat(server: Server, chat_plain: Recording) -> Request:  # noqa: ARG001 - comes after it
    """The same question once more."""
    return server.chat(QUESTION, max_tokens=12)


@exchange("chat.parts")
def chat_parts(server: Server) -> Request:
    """The same question as a list of content parts."""
    part = {"type": "text", "text": QUESTION}
    return server.chat([{"role": "user", "content": [part]}], max_tokens=1)


@exchange("chat.turns")
def chat_turns(server: Server) -> Request:
    """A conversation of three turns."""
    roles = ("user", "assistant", "user")
    return server.chat([{"role": r, "content": t} for r, t in zip(roles, TURNS, strict=True)], max_tokens=1)


@exchange("chat.system-short")
def chat_system_short(server: Server) -> Request:
    """A short system message; some templates know none and refuse it."""
    return _system(server, "Be brief.")


@exchange("chat.system-long")
def chat_system_long(server: Server) -> Request:
    """The same system message with more words."""
    return _system(server, "Be brief. Answer in one short sentence, and name nothing that was not asked for.")


@exchange("chat.late-rule")
def chat_late_rule(server: Server) -> Request:
    """A second rule in the middle of a conversation, as agents give them; some templates refuse that."""
    return server.chat(RULED, max_tokens=1, expect=None)


@exchange("chat.empty-user")
def chat_empty_user(server: Server) -> Request:
    """A user message without a word."""
    return server.chat("", expect=None, max_tokens=1)


@exchange("chat.request-id")
def chat_request_id(server: Server) -> Request:
    """A request that brings its own id."""
    return _with_id(server.chat("Hi", max_tokens=1), "gate-chat-7f3a")


@exchange("chat.exact-tokens")
def chat_exact_tokens(server: Server, exact_tokens: Case) -> Request:
    """An answer that must not end by itself."""
    return server.chat("Reply with exactly: OK", max_tokens=exact_tokens["max"], ignore_eos=True)


def seeded(server: Server) -> Request:
    """Tokens that are drawn at a high temperature with a seed."""
    hot: dict[str, Any] = {"temperature": 2.0, "top_p": 1.0, "top_k": -1, "seed": 17}
    scores = {"logprobs": True} if server.can("logprobs") else {}
    return server.chat("Tell me a story.", max_tokens=6, ignore_eos=True, **scores, **hot)


@exchange("chat.seed-first", alone=True)
def chat_seed_first(server: Server) -> Request:
    """A seeded answer."""
    return seeded(server)


@exchange("chat.seed-again", alone=True)
def chat_seed_again(server: Server, chat_seed_first: Recording) -> Request:
    """The same seed again."""
    del chat_seed_first
    return seeded(server)


@exchange("chat.max-completion-tokens")
def chat_max_completion_tokens(server: Server) -> Request:
    """OpenAI's newer limit beside a larger one of the older name."""
    return server.chat("Count to ten.", max_completion_tokens=3, max_tokens=8, ignore_eos=True)


@exchange("chat.min-tokens")
def chat_min_tokens(server: Server) -> Request:
    """An answer that may not be shorter than its limit."""
    return server.chat("Say OK.", max_tokens=10, min_tokens=10)


@exchange("chat.stop")
def chat_stop(server: Server) -> Request:
    """The plain question with stop strings that every text holds."""
    return server.chat(QUESTION, max_tokens=12, stop=COMMON)


@exchange("chat.n")
def chat_n(server: Server) -> Request:
    """Three choices at a temperature where no two are alike."""
    hot: dict[str, Any] = {"temperature": 2.0, "top_p": 1.0, "top_k": -1}
    return server.chat("Tell me a story.", n=3, max_tokens=6, ignore_eos=True, **hot)


@exchange("chat.bad-words")
def chat_bad_words(server: Server, chat_plain: Recording) -> Request:
    """The plain question, its answer's first word forbidden."""
    return server.chat(QUESTION, max_tokens=4, bad_words=[first_word(chat_plain) or "the"])


@exchange("chat.client-defaults")
def chat_client_defaults(server: Server) -> Request:
    """Every sampling parameter that chat clients send, at the value they send it."""
    common: dict[str, Any] = {
        "temperature": 0.7,
        "top_p": 0.8,
        "top_k": 20,
        "min_p": 0,
        "n": 1,
        "user": "gate",
    }
    penalties: dict[str, Any] = {"frequency_penalty": 0, "presence_penalty": 0, "repetition_penalty": 1.0}
    unset: dict[str, Any] = {
        "stop": None,
        "seed": None,
        "logprobs": False,
        "response_format": {"type": "text"},
    }
    return server.chat("Hi", max_tokens=2, stream=False, **common, **penalties, **unset)


def first_word(answer: Recording) -> str:
    """The first word of an answer; empty when there is none."""
    words = text_of(answer.ok["choices"][0]).split()
    return words[0] if words and words[0].isalpha() and words[0].isascii() else ""


def _system(server: Server, rule: str) -> Request:
    messages = [{"role": "system", "content": rule}, {"role": "user", "content": QUESTION}]
    return server.chat(messages, expect=None, max_tokens=1)


def _with_id(request: Request, value: str) -> Request:
    headers = {**request.headers, "X-Request-Id": value}
    return Request(request.method, request.path, json=request.json, headers=headers)


@exchange("chat.developer")
def chat_developer(server: Server) -> Request:
    """The question after a developer's message."""
    messages = [{"role": "developer", "content": ORDER}, {"role": "user", "content": QUESTION}]
    return server.chat(messages, max_tokens=1, expect=None)


@exchange("chat.developer.longer")
def chat_developer_longer(server: Server) -> Request:
    """The question after a developer's message that says the same twice."""
    messages = [{"role": "developer", "content": f"{ORDER} {ORDER}"}, {"role": "user", "content": QUESTION}]
    return server.chat(messages, max_tokens=1, expect=None)
