"""The tools that scripted models call: every type of JSON is in their schemas, only a city is required."""

from __future__ import annotations

import json
from typing import Any

from pytest_vllm import case_file

WEATHER, PING, NOTE = "get_weather", "ping", "note"
UNKNOWN = "fly_home"

_SCHEMAS: dict[str, dict[str, Any]] = json.loads(case_file("scripted-tools").read_text("utf-8"))


def schema_of(name: str) -> dict[str, Any]:
    """The parameters of a tool."""
    return _SCHEMAS[name]


def offered(*, strict: bool = False) -> list[dict[str, Any]]:
    """All tools as chat completions take them."""
    flags = {"strict": True} if strict else {}
    return [
        {"type": "function", "function": {"name": name, "description": name, "parameters": schema, **flags}}
        for name, schema in _SCHEMAS.items()
    ]


def offered_to_responses() -> list[dict[str, Any]]:
    """All tools as the Responses API takes them."""
    return [{"type": "function", "name": name, "parameters": schema} for name, schema in _SCHEMAS.items()]


def offered_to_messages() -> list[dict[str, Any]]:
    """All tools as Anthropic's Messages take them."""
    return [{"name": name, "input_schema": schema} for name, schema in _SCHEMAS.items()]


def named(name: str) -> dict[str, Any]:
    """The tool choice that forces one function."""
    return {"type": "function", "function": {"name": name}}
