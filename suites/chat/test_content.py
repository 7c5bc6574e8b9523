"""What a chat answer holds, and what it must not hold."""

from __future__ import annotations

import re

from pytest_vllm import MUST, Recording, Recordings, Server, check, listed, need, only_if, text_of

SPEC = "openai:chat/object"
CHAT = ["chat"]

#: How special tokens are written: `<|im_start|>`, `<bos>`. Thinking marks are a suite of their own.
SPECIAL = re.compile(r"<(?!/?think)[^<>\s]{1,40}>")


@check("chat.content.text", MUST, spec=SPEC, needs=CHAT)
def test_content(chat_plain: Recording) -> None:
    """The content is text or null, and no tool is called where none was offered."""
    message = chat_plain.ok["choices"][0]["message"]

    assert isinstance(message.get("content"), str | None), f"content is {message['content']!r}"
    assert not message.get("tool_calls"), f"tool_calls: {message['tool_calls']}"


@check("chat.content.role", MUST, spec=SPEC, needs=CHAT, exchanges=["chat."])
def test_role(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """The assistant speaks in every answer, or whom the operator named."""
    answered = [one for one in vllm_recordings.of("chat.") if one.status == 200]
    roles = [(one.key, c["message"].get("role")) for one in answered for c in one.json["choices"]]
    need(roles, "no chat was answered")
    right = vllm_server.role or roles[0][1] or "assistant"
    wrong = [f"{key}: {role!r}" for key, role in roles if role != right]

    assert not wrong, f"not {right!r}: {listed(wrong)}"


@check("chat.logprobs.unasked", MUST, spec="openai:chat/create#logprobs", needs=CHAT)
def test_logprobs_unasked(chat_plain: Recording) -> None:
    """No log probabilities are sent that were not asked for."""
    logprobs = chat_plain.ok["choices"][0].get("logprobs")

    assert logprobs is None, f"logprobs: {str(logprobs)[:120]}"


@check("chat.content.special-tokens", MUST, spec=SPEC, needs=["chat", "tokenize"], exchanges=["chat."])
def test_special_tokens(
    vllm_server: Server, vllm_recordings: Recordings, tokenize_chat_back: Recording
) -> None:
    """No special token of the chat template stands in an answer."""
    marks = set(SPECIAL.findall(tokenize_chat_back.ok["prompt"]))
    only_if(marks, "the chat template uses no special tokens")
    choices = [
        (one.key, c)
        for one in vllm_recordings.of("chat.")
        if one.status == 200 and not vllm_server.shows_marks(one.request.path, one.request.json)
        for c in one.json["choices"]
    ]
    leaks = {key: text for key, choice in choices if marks & set(SPECIAL.findall(text := text_of(choice)))}

    assert not leaks, f"of {sorted(marks)}: {leaks}"
