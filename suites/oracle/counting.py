"""What `/tokenize` is asked about a prompt, so that its answer must be what the prompt is billed."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from .answers import CHAT, COMPLETIONS, MESSAGES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm import Server

#: Fields of a chat request that shape its prompt and that `/tokenize` takes too.
SHARED = (
    "add_generation_prompt",
    "continue_final_message",
    "add_special_tokens",
    "chat_template",
    "chat_template_kwargs",
    "tools",
)
#: Fields that shape or cut a prompt and that `/tokenize` does not have.
FOREIGN = ("documents", "reasoning_effort", "truncate_prompt_tokens", "prompt_embeds", "prompt_token_ids")
#: Kinds of content parts whose tokens depend on what they show.
SHOWN = ('"image_url"', '"input_audio"', '"audio_url"', '"video_url"', '"image_embeds"', '"image"')
#: What may stand in a prompt and be read otherwise than words: marks of templates, parts, several scripts.
ODD = ("<|", "<think>", "<tool_call>", "\\u0000", "\\ud8", '"type": "text"', "tool_calls", "tool_call_id")
LATIN, LONG = 0x17F, 2048
#: Fields of a Messages request that its counting route has not.
UNCOUNTED = ("max_tokens", "temperature", "top_p", "top_k", "stream", "stop_sequences", "metadata")


def questions(path: str, asked: Mapping[str, Any], server: Server) -> list[dict[str, Any]] | str:
    """The bodies for the counting route whose counts add up to the prompt; or why there are none."""
    if any(asked.get(name) is not None for name in FOREIGN):
        return f"{next(n for n in FOREIGN if asked.get(n) is not None)} shapes it, and cannot be tokenized"
    if path == CHAT:
        return _chat(asked, server)
    if path == COMPLETIONS:
        return _completion(asked)
    if path == MESSAGES:
        return [{name: value for name, value in asked.items() if name not in UNCOUNTED}]
    return "the route renders its input itself"


def _chat(asked: Mapping[str, Any], server: Server) -> list[dict[str, Any]] | str:
    if any(kind in json.dumps(asked["messages"]) for kind in SHOWN):
        return "a picture or sound takes as many tokens as it shows"
    if not server.templated:
        return "this model's conversations are not rendered by a chat template"
    if server.args.get("default-chat-template-kwargs") and not server.at_least("0.27.0"):
        return "whether the server's own options of the template reach its tokenizer is not known here"
    body = {name: asked[name] for name in ("model", "messages", *SHARED) if asked.get(name) is not None}
    if body.get("tools") and asked.get("tool_choice") == "none":
        if server.args.get("exclude-tools-when-tool-choice-none"):
            del body["tools"]
        elif not server.at_least("0.10.0"):
            return "tools that may not be called stand in the prompt or not, by version"
        elif not server.flags_known:
            return "tools that may not be called stand in the prompt or not, by a flag that is not known here"
    if server.at_least("0.16.0"):
        body["messages"] = [_renamed(message) for message in asked["messages"]]
    return [body]


def _renamed(message: Any) -> Any:
    """A message whose reasoning has the name of today: chat knows the old one too, `/tokenize` does not."""
    if not isinstance(message, dict) or not message.get("reasoning_content") or message.get("reasoning"):
        return message
    rest = {name: value for name, value in message.items() if name != "reasoning_content"}
    return {**rest, "reasoning": message["reasoning_content"]}


def _completion(asked: Mapping[str, Any]) -> list[dict[str, Any]] | str:
    prompts = texts_of(asked.get("prompt"))
    if prompts is None:
        return "its prompt is neither text nor token ids"
    extra = {"add_special_tokens": False} if asked.get("add_special_tokens") is False else {}
    model = {"model": asked["model"]} if "model" in asked else {}
    return [{**model, "prompt": text, **extra} for text in prompts if isinstance(text, str)]


def texts_of(prompt: Any) -> Sequence[str | list[int]] | None:
    """The prompts of a completion request, each a text or token ids; None for anything else."""
    if isinstance(prompt, str):
        return [prompt]
    if not isinstance(prompt, list) or not prompt:
        return None
    if all(type(one) is int for one in prompt):
        return [prompt]
    fits = all(
        isinstance(one, str) or (isinstance(one, list) and all(type(id_) is int for id_ in one))
        for one in prompt
    )
    return prompt if fits else None


def given_ids(asked: Mapping[str, Any]) -> int:
    """How many tokens of a completion's prompts were given as ids."""
    return sum(len(one) for one in texts_of(asked.get("prompt")) or () if isinstance(one, list))


def kind_of(path: str, body: Mapping[str, Any]) -> tuple[object, ...]:
    """What may make a prompt be counted otherwise; prompts of one kind differ in their words alone."""
    messages = [one for one in body.get("messages") or () if isinstance(one, dict)]
    shapes = {(one.get("role"), type(one.get("content")).__name__, *sorted(one)) for one in messages}
    odd = {kind for text in (json.dumps(body),) for kind in ODD if kind in text}
    beyond = {character for character in json.dumps(body, ensure_ascii=False) if ord(character) > LATIN}
    return (
        path,
        frozenset(body),
        body.get("model"),
        frozenset(shapes),
        frozenset(pairwise(str(one.get("role")) for one in messages)),
        len(messages).bit_length(),
        len(body.get("tools") or ()).bit_length(),
        len(json.dumps(body)).bit_length() if len(json.dumps(body)) > LONG else 0,
        frozenset(odd),
        frozenset(ord(one) >> 8 for one in beyond),
    )
