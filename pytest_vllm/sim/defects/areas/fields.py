"""Defects of fields that few clients set: refused, ignored, or with effects on what they are not about."""

from __future__ import annotations

from typing import Any

from pytest_vllm.sim.defects.choose import asks, failure, in_body, in_choices, refused
from pytest_vllm.sim.defects.make import ignores
from pytest_vllm.sim.defects.registry import add
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, MESSAGES, RESPONSES, only
from pytest_vllm.sim.errors import Invalid

refused(
    "fields.session-refused",
    "A request that names its session is refused.",
    (CHAT, COMPLETIONS),
    400,
    failure("Unsupported field", 400),
    asks("session_id"),
    catches=["fields.chat", "fields.completion"],
)
refused(
    "fields.cache-key-crashes",
    "A key for the prompt cache ends in a server error.",
    (RESPONSES,),
    500,
    failure("unexpected keyword argument prompt_cache_key"),
    asks("prompt_cache_key"),
    catches=["fields.response"],
)
refused(
    "fields.adaptive-crashes",
    "Messages that leave the thinking to the model end in a server error.",
    (MESSAGES,),
    500,
    failure("unknown kind of thinking"),
    lambda asked: (asked.get("thinking") or {}).get("type") == "adaptive",
    catches=["fields.message"],
)


def _no_drafts(body: Any, path: str) -> Any:
    del path
    if isinstance(body, dict) and "$schema" in str(body.get("tools")):
        raise Invalid("Invalid schema: unknown keyword")
    return body


add(
    "fields.agent-tools-refused",
    "Schemas of tools that name their draft are refused.",
    {"body": only((CHAT, RESPONSES, MESSAGES), _no_drafts)},
    catches=["fields.agent"],
)


def _marked(prompt: list[int], body: dict[str, Any]) -> list[int]:
    return [*prompt, prompt[-1]] if body.get("watermarking") is False and prompt else prompt


add(
    "fields.watermark-in-prompt",
    "A field for the output adds a token to the prompt.",
    {"prompt": _marked},
    catches=["fields.prompt-kept"],
)


def _begun(prompt: list[int], body: dict[str, Any]) -> list[int]:
    return [prompt[0], *prompt] if body.get("add_special_tokens") and "messages" in body else prompt


add(
    "fields.special-twice",
    "Special tokens that a template has written are added once more.",
    {"prompt": _begun},
    catches=["fields.rendering"],
)


def _without_object(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    body.pop("output", None)


in_body(
    "fields.user-without-output",
    "A response for a named user has no output.",
    (RESPONSES,),
    _without_object,
    asks("user"),
    catches=["fields.shape"],
)


def _one_id_less(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    if choice.get("token_ids"):
        choice["token_ids"].pop()


in_choices(
    "fields.last-id-missing",
    "The ids of a chat answer lack the last token.",
    (CHAT,),
    _one_id_less,
    asks("return_token_ids"),
    catches=["fields.token-ids"],
)


def _one_row_less(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    if body.get("prompt_logprobs"):
        body["prompt_logprobs"].pop()


in_body(
    "fields.prompt-row-missing",
    "The log probabilities of a chat prompt lack the last token.",
    (CHAT,),
    _one_row_less,
    asks("prompt_logprobs"),
    catches=["fields.prompt-logprobs"],
)


def _one_beam(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    for choice in body["choices"]:
        choice["message"] = body["choices"][0]["message"]


in_body(
    "fields.beams-equal",
    "Both beams of a search for a chat answer say the same.",
    (CHAT,),
    _one_beam,
    asks("use_beam_search"),
    catches=["fields.beams"],
)

#: Defect -> (what is ignored, where, the check that sees it).
IGNORED = {
    "cut-side": ("truncation_side", COMPLETIONS, "cut-prompt"),
    "cut-side-chat": ("truncation_side", CHAT, "cut-chat"),
    "prompt-text": ("return_prompt_text", CHAT, "prompt-text"),
    "echo": ("echo", CHAT, "echo"),
    "request-id": ("request_id", CHAT, "request-id"),
    "logprob-ids": ("logprob_token_ids", CHAT, "logprob-token-ids"),
    "stop-included": ("include_stop_str_in_output", CHAT, "stop-included"),
    "repetition": ("repetition_detection", CHAT, "repetition"),
    "repetition-completion": ("repetition_detection", COMPLETIONS, "repetition-completion"),
    "interval": ("stream_interval", CHAT, "stream-interval"),
    "interval-completion": ("stream_interval", COMPLETIONS, "stream-interval-completion"),
    "include": ("include", RESPONSES, "response-logprobs"),
    "response-choice": ("structured_outputs", RESPONSES, "response-choice"),
    "output-config": ("output_config", MESSAGES, "message-format"),
}

for _name, (_field, _path, _check) in IGNORED.items():
    ignores(
        f"fields.{_name}-ignored",
        f"`{_field}` is ignored on {_path}.",
        [_field],
        (_path,),
        catches=[f"fields.{_check}"],
    )
