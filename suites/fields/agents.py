"""What coding agents set on every request, after their public sources as of 2026-11: shapes, not texts."""

from __future__ import annotations

from typing import Any

RULE = "You are a coding agent. Use the tools to read and change files."
ASK = "Say in one word whether you are ready."
#: An agent leaves room for tens of thousands of tokens; an answer of a few shows as much here.
TOKENS = 16

_SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "The file."},
        "limit": {"type": ["integer", "null"], "minimum": 0},
        "edits": {"type": "array", "items": {"type": "object", "properties": {"old": {"type": "string"}}}},
    },
    "required": ["path"],
    "additionalProperties": False,
}
_NAMES = ("read_file", "edit_file", "run_command")

CODEX: dict[str, Any] = {
    "instructions": RULE,
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment/>"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ASK}]},
    ],
    "tools": [
        {"type": "function", "name": name, "description": name, "strict": False, "parameters": _SCHEMA}
        for name in _NAMES
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "store": False,
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "0b6f3a1e-6c1d-4b7e-9d8c-2f1a5e7c9b40",
    "text": {"verbosity": "medium"},
    "max_output_tokens": TOKENS,
}
CLAUDE_CODE: dict[str, Any] = {
    "system": [{"type": "text", "text": RULE, "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "<environment/>"},
                {"type": "text", "text": ASK, "cache_control": {"type": "ephemeral"}},
            ],
        }
    ],
    "tools": [{"name": name, "description": name, "input_schema": _SCHEMA} for name in _NAMES],
    "metadata": {"user_id": "user_0b6f_account__session_6c1d"},
    "thinking": {"type": "adaptive"},
    "temperature": 1,
    "stream": True,
    "max_tokens": TOKENS,
}
OPENCODE: dict[str, Any] = {
    "messages": [{"role": "system", "content": RULE}, {"role": "user", "content": ASK}],
    "tools": [
        {"type": "function", "function": {"name": name, "description": name, "parameters": _SCHEMA}}
        for name in _NAMES
    ],
    "tool_choice": "auto",
    "temperature": 0,
    "top_p": 1,
    "stream": True,
    "stream_options": {"include_usage": True},
    "max_tokens": TOKENS,
}
AGENTS: list[dict[str, Any]] = [
    {
        "id": "codex",
        "path": "/v1/responses",
        "set": CODEX,
        "headers": {"User-Agent": "codex_cli_rs/0.60", "Originator": "codex_cli_rs", "Session_id": "0b6f"},
        "ends": ["response.completed", "response.incomplete"],
    },
    {
        "id": "claude-code",
        "path": "/v1/messages?beta=true",
        "set": CLAUDE_CODE,
        "headers": {
            "User-Agent": "claude-cli/2.0 (external, cli)",
            "Anthropic-Version": "2023-06-01",
            "Anthropic-Beta": "claude-code-20250219,interleaved-thinking-2025-05-14",
            "X-App": "cli",
            "X-Stainless-Lang": "js",
        },
        "ends": ["message_stop"],
    },
    {
        "id": "opencode",
        "path": "/v1/chat/completions",
        "set": OPENCODE,
        "headers": {"User-Agent": "opencode/1.0 ai-sdk/openai-compatible/1.0"},
        "ends": ["[DONE]"],
    },
]
