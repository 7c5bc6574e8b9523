"""Requests of the usage suite: the plain question of the chat suite over the other endpoints."""

from __future__ import annotations

from typing import Any

from pytest_vllm import Case, Request, Server, cases, exchange

QUESTION = "What is the capital of France?"
RULE = "Answer in one short sentence, and in English."
RULED: list[dict[str, Any]] = [
    {"id": "chat", "path": "/v1/chat/completions", "limit": "max_tokens"},
    {"id": "responses", "path": "/v1/responses", "limit": "max_output_tokens", "rule": "instructions"},
    {"id": "messages", "path": "/v1/messages", "limit": "max_tokens", "rule": "system"},
]
ruled_route = cases("ruled_route", RULED)


@exchange("usage.messages")
def usage_messages(server: Server) -> Request:
    """The question over Anthropic's Messages."""
    asked = [{"role": "user", "content": QUESTION}]
    return server.post("/v1/messages", {"messages": asked, "max_tokens": 1, "temperature": 0})


@exchange("usage.responses")
def usage_responses(server: Server) -> Request:
    """The question over OpenAI's Responses."""
    return server.post("/v1/responses", {"input": QUESTION, "max_output_tokens": 1, "temperature": 0})


@exchange("usage.ruled")
def usage_ruled(server: Server, ruled_route: Case) -> Request:
    """The question with a rule above it, over each route; some templates refuse it."""
    asked = [{"role": "user", "content": QUESTION}]
    rule, path = ruled_route.get("rule"), ruled_route["path"]
    above = {rule: RULE} if rule else {}
    turns = asked if rule else [{"role": "system", "content": RULE}, *asked]
    said = {"input": turns} if path.endswith("responses") else {"messages": turns}
    body = {**said, **above, ruled_route["limit"]: 1, "temperature": 0}
    return server.post(path, body, expect=None)
