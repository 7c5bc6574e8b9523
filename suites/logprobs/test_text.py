"""Log probabilities and token ids belong to the text that came with them, streamed or not."""

from __future__ import annotations

from typing import Any

from pytest_vllm import MUST, Recording, Server, check, need, only_if

from .exchanges import OPENING

CHAT = "openai:chat/object#choices-logprobs"
STREAM = "openai:chat/streaming#choices-logprobs"
SPEC = "openai:completions/object#choices-logprobs"
VLLM = "vllm:serving/openai_compatible_server/#completions-api"
COMPLETIONS = ["completions", "logprobs"]
STREAMED = ["chat", "logprobs", "stream"]
IDS = ["completions", "tokenize"]
IDS_FROM = "0.10.2"
#: How far apart two readings of one token may lie, in nats: batches are computed in different orders.
NEAR = 0.25


@check("logprobs.chat.there", MUST, spec=CHAT, needs=["chat", "logprobs"])
def test_chat_there(logprobs_chat: Recording) -> None:
    """A chat answer holds the log probabilities that were asked for."""
    given = logprobs_chat.ok["choices"][0].get("logprobs")

    assert isinstance(given, dict), f"logprobs is {given!r}"
    assert given.get("content"), f"logprobs holds {given!r}"
    assert all(isinstance(entry, dict) and "token" in entry for entry in given["content"]), f"{given!r:.200}"


@check("logprobs.completion.there", MUST, spec=SPEC, needs=COMPLETIONS)
def test_completion_there(logprobs_completion: Recording) -> None:
    """A completion holds the log probabilities that were asked for."""
    given = logprobs_completion.ok["choices"][0].get("logprobs")

    assert isinstance(given, dict), f"logprobs is {given!r}"
    assert all(given.get(name) for name in ("tokens", "token_logprobs", "top_logprobs")), f"{given!r:.200}"


@check("logprobs.chat.joined", MUST, spec=CHAT, needs=["chat", "logprobs"])
def test_chat_joined(vllm_server: Server, logprobs_chat: Recording) -> None:
    """The tokens of a chat answer join to its text; special tokens are not part of it."""
    choice = logprobs_chat.ok["choices"][0]
    thinks = vllm_server.can("reasoning") and _thought(choice["message"])
    only_if(not thinks, "the model thinks first, and its reasoning is taken out of the text")
    text, tokens = choice["message"].get("content") or "", [e["token"] for e in _entries(choice)]
    need(text and not _thought(choice["message"]), "the answer is not plain text")
    need(not any("\ufffd" in token for token in tokens), "a token is a part of a character")
    joined = "".join(tokens)

    assert text.strip() in joined, f"tokens join to {joined!r}, the text is {text!r}"


@check("logprobs.stream.same-tokens", MUST, spec=STREAM, needs=STREAMED)
def test_stream_tokens(logprobs_chat: Recording, logprobs_chat_stream: Recording) -> None:
    """A streamed answer scores the tokens that the same answer in one piece scores."""
    whole, streamed = logprobs_chat.ok["choices"][0], _streamed(logprobs_chat_stream)
    need(
        _said(logprobs_chat_stream) == (whole["message"].get("content") or ""),
        "the answers say different things",
    )
    here, there = [e.get("token") for e in streamed], [e["token"] for e in _entries(whole)]

    assert here == there, f"streamed {here}, whole {there}"


@check("logprobs.stream.same-values", MUST, spec=STREAM, needs=STREAMED)
def test_stream_values(logprobs_chat: Recording, logprobs_chat_stream: Recording) -> None:
    """A streamed token has the log probabilities that it has in one piece."""
    whole, streamed = _entries(logprobs_chat.ok["choices"][0]), _streamed(logprobs_chat_stream)
    need(whole and streamed, "an answer has no log probabilities")
    need(
        [e.get("token") for e in streamed] == [e["token"] for e in whole],
        "the answers consist of different tokens",
    )
    far = [
        f"{one['token']!r}: streamed {_values(one)}, whole {_values(other)}"
        for one, other in zip(streamed, whole, strict=True)
        if not _near(one, other)
    ]

    assert not far, "; ".join(far[:3])


@check("logprobs.prompt.named", MUST, spec=VLLM, needs=COMPLETIONS)
def test_prompt_named(logprobs_prompt: Recording, logprobs_echo: Recording) -> None:
    """`prompt_logprobs` names the prompt's own tokens, each with its rank."""
    entries = logprobs_prompt.ok["choices"][0].get("prompt_logprobs") or []
    tokens = logprobs_echo.ok["choices"][0]["logprobs"]["tokens"]
    need(len(entries) > 1 and len(tokens) >= len(entries), "there are no prompt log probabilities")
    rows = [(list(one.values()), token) for one, token in zip(entries, tokens, strict=False) if one]
    unnamed = [token for row, token in rows if token not in [each.get("decoded_token") for each in row]]
    unranked = [each for row, _ in rows for each in row if not _rank(each.get("rank"))]

    assert not unnamed, f"no entry is the prompt's token {unnamed[0]!r}"
    assert not unranked, f"without a rank: {unranked[0]}"


@check("completions.token-ids.counted", MUST, spec=VLLM, needs=IDS)
def test_ids_counted(vllm_server: Server, logprobs_completion: Recording) -> None:
    """`return_token_ids` gives as many ids as `usage` counts."""
    only_if(vllm_server.at_least(IDS_FROM), f"vLLM returns token ids from {IDS_FROM} on")
    body = logprobs_completion.ok
    choice, usage = body["choices"][0], body["usage"]
    given = [len(choice.get(name) or ()) for name in ("prompt_token_ids", "token_ids")]

    assert given == [usage["prompt_tokens"], usage["completion_tokens"]], f"{given} ids, usage {usage}"


@check("completions.token-ids.prompt", MUST, spec=VLLM, needs=IDS)
def test_ids_of_prompt(
    vllm_server: Server, logprobs_completion: Recording, logprobs_tokenized: Recording
) -> None:
    """The prompt's ids are those that `/tokenize` gives."""
    only_if(vllm_server.at_least(IDS_FROM), f"vLLM returns token ids from {IDS_FROM} on")
    given = logprobs_completion.ok["choices"][0].get("prompt_token_ids")
    need(given, "no ids were given")

    assert given == logprobs_tokenized.ok["tokens"], f"{given}, /tokenize {logprobs_tokenized.ok['tokens']}"


@check("completions.token-ids.text", MUST, spec=VLLM, needs=IDS)
def test_ids_of_text(
    vllm_server: Server, logprobs_completion: Recording, logprobs_detokenized: Recording
) -> None:
    """The answer's ids are its text, as `/detokenize` reads them."""
    only_if(vllm_server.at_least(IDS_FROM), f"vLLM returns token ids from {IDS_FROM} on")
    text, read = logprobs_completion.ok["choices"][0]["text"], logprobs_detokenized.ok["prompt"]
    need("\ufffd" not in text + read, "the text is cut inside a character")

    assert read.removeprefix(OPENING).strip() == text.strip(), f"ids read {read!r}, the text is {text!r}"


def _entries(choice: dict[str, Any]) -> list[dict[str, Any]]:
    held = choice.get("logprobs")
    found = held.get("content") if isinstance(held, dict) else None
    return [entry for entry in found or () if isinstance(entry, dict)]


def _streamed(stream: Recording) -> list[dict[str, Any]]:
    return [e for delta in stream.deltas for choice in delta.get("choices", ()) for e in _entries(choice)]


def _said(stream: Recording) -> str:
    parts = [choice.get("delta") or {} for delta in stream.deltas for choice in delta.get("choices", ())]
    return "".join(part.get("content") or "" for part in parts)


def _thought(message: dict[str, Any]) -> object:
    return message.get("reasoning") or message.get("reasoning_content")


def _values(entry: dict[str, Any]) -> list[Any]:
    return [entry.get("logprob"), *(top.get("logprob") for top in entry.get("top_logprobs") or ())]


def _near(one: dict[str, Any], other: dict[str, Any]) -> bool:
    here, there = _values(one), _values(other)
    same = len(here) == len(there) and all(isinstance(v, int | float) for v in here)
    names = [sorted(str(top.get("token")) for top in e.get("top_logprobs") or ()) for e in (one, other)]
    alike = len(set(names[0]) & set(names[1])) >= len(names[1]) - 1  # the last candidates may be a near tie
    return same and alike and all(abs(a - b) < NEAR for a, b in zip(here, there, strict=True))


def _rank(value: object) -> bool:
    return isinstance(value, int) and value >= 1
