"""Requests that are as unlike each other as can be, each with an answer that is known, or is to be as alone.

Most are determined whatever the model: one token is forced, one text is all that a constraint leaves. What is
lost or swapped between the rows of a batch then shows without any comparison of numbers.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm import only_if

from ..oracle.neutral import UNPENALISED  # noqa: TID252 - suites lie together

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm import Request, Server

    Fields = Callable[[int, int], dict[str, Any]]

#: A model that thinks has done so.
BEGUN = "<think>\n</think>\n"
#: Enough for any of the constraints, in tokens, and for those of one word: what may be longest is sent first.
ROOM, SMALL = 32, 11
STREAM: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
LISTED: dict[str, Any] = {"logprobs": 4, "ignore_eos": True}
#: Tokens of a long prompt, and what part of the context it may be.
LONG, PART = 1800, 0.5
SEEDED = ["Red is", "Two and two are", "At sea there", "My dog likes"]

#: What is asked beside the prompt, by kind, given the tokens of two words. Of several values the last counts.
MASKS: dict[str, Fields] = {
    "bias": lambda first, second: {
        "logit_bias": {str(second): -1, str(first): 100},
        "max_tokens": 6,
        **STREAM,
    },
    "against-first": lambda first, second: {
        "allowed_token_ids": [first, second],
        "logit_bias": {str(first): -100},
        "max_tokens": 5,
    },
    "against-second": lambda first, second: {
        "allowed_token_ids": [first, second],
        "logit_bias": {str(second): -100},
        "max_tokens": 5,
    },
    "words": lambda first, second: {
        "allowed_token_ids": [first, second],
        "logit_bias": {str(first): 20},
        "bad_words": ["zebra", " hello", "hello"],
        "max_tokens": 7,
    },
}
ENDS: dict[str, Fields] = {
    "least": lambda first, _: {
        "logit_bias": {str(first): 100},
        "stop_token_ids": [first],
        "min_tokens": 4,
        "max_tokens": 9,
    },
    "least-several": lambda first, _: {
        "logit_bias": {str(first): 100},
        "stop_token_ids": [first],
        "min_tokens": 3,
        "temperature": 1.0,
        "n": 2,
        "max_tokens": 8,
    },
    "stop-id": lambda first, second: {
        "logit_bias": {str(second): 100},
        "stop_token_ids": [first, second],
        "max_tokens": 8,
        **STREAM,
    },
    "stop": lambda _, __: {
        "structured_outputs": {"regex": "alpha beta gamma delta"},
        "stop": ["zebra", "quagga", "okapi", "gamma"],
        "max_tokens": ROOM,
        **STREAM,
    },
}
FORMS: dict[str, Fields] = {
    "choice": lambda _, __: {"structured_outputs": {"choice": ["pelican"]}, "max_tokens": SMALL},
    "regex": lambda _, __: {
        "structured_outputs": {"regex": "stork 17"},
        "temperature": 1.0,
        "n": 2,
        "max_tokens": ROOM,
    },
    "json": lambda _, __: {
        "structured_outputs": {"json": {"enum": ["crane"]}},
        "max_tokens": SMALL,
        **STREAM,
    },
}
PENALTIES: dict[str, Fields] = {
    "frequency": lambda first, second: {
        "allowed_token_ids": [first, second],
        "frequency_penalty": 2.0,
        "logprobs": 1,
        "max_tokens": 10,
    },
    "repetition": lambda first, second: {
        "allowed_token_ids": [first, second],
        "repetition_penalty": 2.0,
        "presence_penalty": 2.0,
        "logprobs": 1,
        "max_tokens": 10,
    },
}
NARROWED: dict[str, Fields] = {
    "top-k": lambda _, __: {"temperature": 2.0, "top_k": 1, "top_p": 1.0, **LISTED, "max_tokens": 6},
    "min-p": lambda _, __: {"temperature": 2.0, "min_p": 1.0, "top_k": -1, **LISTED, "max_tokens": 7},
}
SCORED: dict[str, Fields] = {
    "greedy": lambda _, __: {**LISTED, "max_tokens": 8},
    "prompt": lambda _, __: {"prompt_logprobs": 2, "logprobs": 1, "echo": True, "max_tokens": 1},
    "chat": lambda _, __: {"logprobs": True, "top_logprobs": 4, "prompt_logprobs": 3, "max_tokens": 8},
    "long": lambda _, __: {**LISTED, "max_tokens": 6},
}
DRAWN: dict[str, Fields] = {
    "seeds": lambda _, __: {
        "temperature": 1.0,
        "seed": 31,
        "logprobs": 1,
        "ignore_eos": True,
        "max_tokens": 3,
    },
}
KINDS = MASKS | ENDS | FORMS | PENALTIES | NARROWED | SCORED | DRAWN
#: The whole text that is right, where there is one.
TEXTS = {
    "stop": ("alpha beta ",),
    "choice": ("pelican",),
    "regex": ("stork 17", "stork 17"),
    "json": ('"crane"',),
}
#: Tokens of an answer, where its limit does not say how many.
TOKENS = {"least": 5, "least-several": 8, "stop-id": 1}
#: What is asked over chat, where no thinking comes before the answer: all else is over completions.
OVER_CHAT = ("least",)
#: What stands in the crowd with a long prompt; all others are in the one of short prompts. What has a seed
#: is kept from long prompts: a seeded prompt that is read in two steps ends the engine of vLLM on a CPU.
BESIDE_LONG = ("long", "greedy", "chat", "prompt", "bias", "choice")


def asked(server: Server, kind: str, colours: list[int], first: int, second: int) -> Request:
    """The request of a kind.

    Args:
        server: what can be asked of it.
        kind: one of `KINDS`.
        colours: tokens to make long prompts of.
        first: the token of a word.
        second: the token of another word.
    """
    _able(server, kind)
    body = {**UNPENALISED, **KINDS[kind](first, second)}
    if kind == "chat" or (kind in OVER_CHAT and server.can("chat") and not server.can("reasoning")):
        return server.chat("Which birds live at the sea?", expect=None, **body)
    prompt: Any = f"{BEGUN}The {kind} of herons is seen by the sea, where"
    if kind == "long":
        length = int(min(LONG, PART * (server.max_model_len or LONG)))
        prompt = (colours * (length // len(colours) + 1))[:length]
    if kind == "seeds":
        prompt = SEEDED
    return server.completion(prompt, expect=None, **body)


def _able(server: Server, kind: str) -> None:
    """Raise NotRun where the server is not meant to do this."""
    body = KINDS[kind](0, 1)
    only_if("logprobs" not in body or server.can("logprobs"), "the server gives no log probabilities")
    only_if("stream" not in body or server.can("stream"), "the server does not stream")
    bound = "structured_outputs" in body
    only_if(not bound or server.can("structured-output"), "the server keeps no constraints")
    only_if(not bound or server.at_least("0.11.0"), "constraints had other names before 0.11.0")
    only_if(
        "min_tokens" not in body or not server.drafts, "where tokens are drafted the least number is not kept"
    )
    only_if(kind != "chat" or server.can("chat"), "the server has no chat")


def exact(kind: str, texts: list[str]) -> bool:
    """Whether the texts of an answer are what only this kind of request can get."""
    if kind in TEXTS:
        return tuple(texts) == TEXTS[kind] or (kind == "json" and _crane(texts))
    words = [text.split() for text in texts]
    return kind not in MASKS or all(found and len(set(found)) == 1 for found in words)


def _crane(texts: list[str]) -> bool:
    try:
        return [json.loads(text) for text in texts] == ["crane"]
    except ValueError:
        return False
