"""Requests of the logprobs suite."""

from __future__ import annotations

from typing import Any

from pytest_vllm import Recording, Request, Server, exchange

QUESTION = "What is the capital of France?"
OPENING = "The quick brown fox jumps over"


#: Alone: in another batch a real server rounds otherwise, by tenths of a nat, and these two are compared.
@exchange("logprobs.chat", alone=True)
def logprobs_chat(server: Server) -> Request:
    """The plain question of the chat suite with three candidates for each token."""
    return server.chat(QUESTION, max_tokens=12, logprobs=True, top_logprobs=3)


@exchange("logprobs.chat-stream", alone=True)
def logprobs_chat_stream(server: Server) -> Request:
    """The same, streamed."""
    return server.chat(QUESTION, max_tokens=12, logprobs=True, top_logprobs=3, stream=True)


@exchange("logprobs.chat-no-top")
def logprobs_chat_no_top(server: Server) -> Request:
    """Log probabilities without candidates."""
    return server.chat("Hi", max_tokens=2, logprobs=True, top_logprobs=0)


@exchange("logprobs.completion")
def logprobs_completion(server: Server) -> Request:
    """A continuation with three candidates for each token."""
    return server.completion(OPENING, max_tokens=8, logprobs=3, return_token_ids=True)


@exchange("logprobs.tokenized")
def logprobs_tokenized(server: Server) -> Request:
    """The tokens of the continuation's prompt."""
    return server.post("/tokenize", {"prompt": OPENING}, expect=200 if server.can("tokenize") else None)


@exchange("logprobs.detokenized")
def logprobs_detokenized(server: Server, logprobs_completion: Recording) -> Request:
    """The text of prompt and continuation, read back from their token ids."""
    choice = logprobs_completion.ok["choices"][0]
    ids = (choice.get("prompt_token_ids") or []) + (choice.get("token_ids") or [])
    return server.post("/detokenize", {"tokens": ids}, expect=200 if server.can("tokenize") else None)


@exchange("logprobs.echo")
def logprobs_echo(server: Server) -> Request:
    """The prompt's own log probabilities."""
    return server.completion(OPENING, max_tokens=1, logprobs=1, echo=True)


@exchange("logprobs.sampled")
def logprobs_sampled(server: Server) -> Request:
    """Echo, log probabilities and narrow sampling together."""
    narrow: dict[str, Any] = {"temperature": 1.0, "top_k": 1, "top_p": 0.1}
    return server.completion(OPENING, max_tokens=2, logprobs=1, echo=True, **narrow)


@exchange("logprobs.prompt")
def logprobs_prompt(server: Server) -> Request:
    """The prompt's log probabilities, asked for in vLLM's own way."""
    return server.completion(OPENING, max_tokens=1, prompt_logprobs=1)


@exchange("logprobs.rescored")
def logprobs_rescored(server: Server, logprobs_completion: Recording) -> Request:
    """The prompt and its continuation, read again as one prompt."""
    choice = logprobs_completion.ok["choices"][0]
    ids = (choice.get("prompt_token_ids") or []) + (choice.get("token_ids") or [])
    return server.completion(ids or OPENING, max_tokens=1, logprobs=1, echo=True)
