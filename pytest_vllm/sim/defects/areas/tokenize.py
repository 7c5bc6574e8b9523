"""Defects of the tokenizer routes and of the chat template."""

from __future__ import annotations

import unicodedata
from typing import Any

from pytest_vllm.sim.defects.choose import asks, failure, in_body, refused
from pytest_vllm.sim.defects.make import spoil

TOKENIZE, DETOKENIZE = ("/tokenize",), ("/detokenize",)


def _text(change: Any) -> Any:
    def changed(body: dict[str, Any], asked: dict[str, Any]) -> None:
        del asked
        if isinstance(body.get("prompt"), str):
            body["prompt"] = change(body["prompt"])

    return changed


def _tokens(change: Any) -> Any:
    def changed(body: dict[str, Any], asked: dict[str, Any]) -> None:
        if "tokens" in body:
            body["tokens"] = change(body["tokens"], asked)
            body["count"] = len(body["tokens"])

    return changed


def _strings(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    body["token_strs"] = None
    body["tokens"] = body["tokens"][::-1]


def _again(tokens: list[int], asked: dict[str, Any]) -> list[int]:
    return [tokens[0], *tokens] if asked.get("messages") else tokens


def _mixed(tokens: list[int], asked: dict[str, Any]) -> list[int]:
    return tokens if asked.get("add_special_tokens") is False else [tokens[-1], *tokens[:-1]]


def _beginning(tokens: list[int], asked: dict[str, Any]) -> list[int]:
    return [1, *tokens] if asked.get("add_special_tokens") is False else tokens


def _composed(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


in_body(
    "tokenize.spaces-lost",
    "Spaces vanish: words run together.",
    DETOKENIZE,
    _text(lambda t: t.replace(" ", "")),
    faults=["TOKEN-002", "TOKEN-003", "TOKEN-004"],
    catches=["tokenize.round-trip"],
)
in_body(
    "tokenize.folded",
    "Text comes back in compatibility form.",
    DETOKENIZE,
    _text(_composed),
    catches=["tokenize.round-trip-exact"],
)
in_body(
    "tokenize.ascii",
    "Letters beyond ASCII are lost.",
    DETOKENIZE,
    _text(lambda t: t.encode("ascii", "ignore").decode()),
    catches=["tokenize.round-trip"],
)
in_body(
    "tokenize.words-twice",
    "The rendered prompt holds everything twice.",
    DETOKENIZE,
    _text(lambda t: t + t),
    catches=["tokenize.chat.verbatim"],
)
in_body(
    "tokenize.history-reversed",
    "Rendered turns stand in reverse order.",
    DETOKENIZE,
    _text(lambda t: "\n".join(reversed(t.split("\n")))),
    catches=["tokenize.chat.history"],
)
in_body(
    "tokenize.cut-behind",
    "The rendered prompt has an end mark too many.",
    DETOKENIZE,
    _text(lambda t: f"{t.rstrip()}<|im_end|>"),
    catches=["tokenize.chat.continued"],
)
in_body(
    "tokenize.ids-text",
    "Tokens are numbers written as text.",
    TOKENIZE,
    _tokens(lambda t, _: [str(i) for i in t]),
    catches=["tokenize.ids"],
)
in_body(
    "tokenize.beginning-twice",
    "A rendered conversation begins twice.",
    TOKENIZE,
    _tokens(_again),
    area="usage",
    catches=["tokenize.one-beginning"],
)
in_body(
    "tokenize.order-mixed",
    "With special tokens the others are out of order.",
    TOKENIZE,
    _tokens(_mixed),
    catches=["tokenize.special-tokens"],
)
in_body(
    "tokenize.strings-missing",
    "Token strings never come, and the tokens are in reverse order.",
    TOKENIZE,
    _strings,
    asks("return_token_strs"),
    catches=["tokenize.special-tokens", "tokenize.strings"],
)
spoil(
    "tokenize.count-off",
    "`count` is the number of characters.",
    TOKENIZE,
    "count",
    lambda n: n * 4,
    catches=["tokenize.count"],
)
spoil(
    "tokenize.length-other",
    "`max_model_len` is another model's.",
    TOKENIZE,
    "max_model_len",
    131072,
    area="models",
    catches=["models.entry.context-length-agrees"],
)
in_body(
    "tokenize.specials-always",
    "Special tokens come whether wanted or not.",
    TOKENIZE,
    _tokens(_beginning),
    catches=["tokenize.special-tokens"],
)
refused(
    "tokenize.crashes",
    "A text is tokenized into a server error.",
    TOKENIZE,
    500,
    failure("Internal Server Error"),
    asks("prompt"),
    catches=["tokenize.answered"],
)
refused(
    "tokenize.chat-crashes",
    "A conversation is tokenized into a server error.",
    TOKENIZE,
    500,
    failure("'NoneType' object is not iterable"),
    asks("messages"),
    catches=["tokenize.chat.answered"],
)


def _system_lost(body: dict[str, Any], asked: dict[str, Any]) -> None:
    del asked
    if isinstance(body.get("prompt"), str):
        body["prompt"] = body["prompt"].replace(
            "Answer in one short sentence.", "You are a helpful assistant."
        )


in_body(
    "tokenize.system-lost",
    "A system message is replaced by the template's own.",
    DETOKENIZE,
    _system_lost,
    catches=["tokenize.chat.system"],
)
