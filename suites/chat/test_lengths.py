"""How long a chat answer is, and why it ended."""

from __future__ import annotations

from pytest_vllm import MUST, Case, Recording, check

CREATE = "openai:chat/create"
VLLM = "vllm:serving/openai_compatible_server/#chat-api"
CHAT = ["chat"]


@check("chat.finish.known", MUST, spec="openai:chat/object#choices", needs=CHAT)
def test_finish_known(chat_plain: Recording) -> None:
    """A plain answer ends with `stop` or `length`."""
    reason = chat_plain.ok["choices"][0]["finish_reason"]

    assert reason in ("stop", "length"), f"finish_reason is {reason!r}"


@check("chat.finish.agrees", MUST, spec="openai:chat/object#choices", needs=CHAT)
def test_finish_agrees(chat_plain: Recording) -> None:
    """`length` means that the token limit was reached, and nothing else does."""
    reason = chat_plain.ok["choices"][0]["finish_reason"]
    used, limit = chat_plain.ok["usage"]["completion_tokens"], chat_plain.request.json["max_tokens"]

    assert used <= limit, f"{used} tokens, max_tokens is {limit}"
    assert reason != "length" or used == limit, f"length after {used} of {limit} tokens"


@check("chat.max-tokens.exact", MUST, spec=f"{CREATE}#max_tokens", needs=CHAT)
def test_exact_tokens(exact_tokens: Case, chat_exact_tokens: Recording) -> None:
    """With `ignore_eos`, exactly `max_tokens` tokens are generated."""
    used = chat_exact_tokens.ok["usage"]["completion_tokens"]

    assert used == exact_tokens["max"], f"{used} tokens, max_tokens is {exact_tokens['max']}"


@check("chat.max-tokens.finish", MUST, spec=f"{CREATE}#max_tokens", needs=CHAT)
def test_exact_finish(exact_tokens: Case, chat_exact_tokens: Recording) -> None:  # noqa: ARG001 - picks the case
    """An answer cut by its token limit ends with `length`."""
    reason = chat_exact_tokens.ok["choices"][0]["finish_reason"]

    assert reason == "length", f"finish_reason is {reason!r}"


@check("chat.max-completion-tokens", MUST, spec=f"{CREATE}#max_completion_tokens", needs=CHAT)
def test_max_completion_tokens(chat_max_completion_tokens: Recording) -> None:
    """`max_completion_tokens` limits the answer, also beside a larger `max_tokens`."""
    used = chat_max_completion_tokens.ok["usage"]["completion_tokens"]

    assert used == 3, f"{used} tokens, max_completion_tokens is 3, max_tokens 8"


@check("chat.min-tokens", MUST, spec=VLLM, needs=CHAT)
def test_min_tokens(chat_min_tokens: Recording) -> None:
    """An answer is at least `min_tokens` long."""
    used = chat_min_tokens.ok["usage"]["completion_tokens"]

    assert used == 10, f"{used} tokens, min_tokens and max_tokens are 10"
