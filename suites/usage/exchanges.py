"""Requests of the usage suite: the plain question of the chat suite over the other endpoints."""

from __future__ import annotations

from pytest_vllm import Request, Server, exchange

QUESTION = "What is the capital of France?"


@exchange("usage.messages")
def usage_messages(server: Server) -> Request:
    """The question over Anthropic's Messages."""
    asked = [{"role": "user", "content": QUESTION}]
    return server.post("/v1/messages", {"messages": asked, "max_tokens": 1, "temperature": 0})


@exchange("usage.responses")
def usage_responses(server: Server) -> Request:
    """The question over OpenAI's Responses."""
    return server.post("/v1/responses", {"input": QUESTION, "max_output_tokens": 1, "temperature": 0})
