"""Endpoints agree on how long a prompt is."""

from __future__ import annotations

from pytest_vllm import MUST, Recording, Recordings, check, unexpected

RESPONSES = ["chat", "responses"]
OVER_MESSAGES, OVER_RESPONSES = "usage.messages", "usage.responses"


@check("usage.tokenize-agrees", MUST, spec="fault:vllm-project/vllm/issues/6699", needs=["chat", "tokenize"])
def test_tokenize(chat_plain: Recording, tokenize_chat: Recording) -> None:
    """A chat prompt is billed as long as `/tokenize` counts it."""
    used, counted = chat_plain.ok["usage"]["prompt_tokens"], tokenize_chat.ok["count"]

    assert used == counted, f"{used} prompt tokens, /tokenize counts {counted}"


@check("usage.messages-agrees", MUST, spec="anthropic:messages#usage", needs=["chat", "messages"])
def test_messages(chat_plain: Recording, usage_messages: Recording) -> None:
    """The same question is as long over Messages as over chat."""
    used, usage = chat_plain.ok["usage"]["prompt_tokens"], usage_messages.ok["usage"]
    cached = (usage.get("cache_read_input_tokens") or 0) + (usage.get("cache_creation_input_tokens") or 0)
    told = usage["input_tokens"] + cached

    assert told == used, f"{told} input tokens over Messages, {used} over chat"


@check("usage.responses-agrees", MUST, spec="fault:vllm-project/vllm/issues/38187", needs=RESPONSES)
def test_responses(chat_plain: Recording, usage_responses: Recording) -> None:
    """The same question is as long over Responses as over chat."""
    used, told = chat_plain.ok["usage"]["prompt_tokens"], usage_responses.ok["usage"]["input_tokens"]

    assert told == used, f"{told} input tokens over Responses, {used} over chat"


@check(
    "usage.messages.answered", MUST, spec="anthropic:messages", needs=["messages"], exchanges=[OVER_MESSAGES]
)
def test_messages_answered(vllm_recordings: Recordings) -> None:
    """A plain question over Messages is answered."""
    wrong = unexpected(vllm_recordings.of("usage.messages"))

    assert not wrong, "; ".join(wrong)


@check(
    "usage.responses.answered", MUST, spec="openai:responses", needs=["responses"], exchanges=[OVER_RESPONSES]
)
def test_responses_answered(vllm_recordings: Recordings) -> None:
    """A plain question over Responses is answered."""
    wrong = unexpected(vllm_recordings.of("usage.responses"))

    assert not wrong, "; ".join(wrong)
