"""The bones of every kind of answer: what a client reads first, and what no whole answer lacks.

The schemas say all that the APIs allow, and allow answers that nobody can use: a chat completion of no
choices. The bones say less, are read a hundred times faster, and so are asked of every answer of a run.

A template is a type, a tuple of templates of which one fits, `[template]` for a list that holds something,
`AnyLength` for one that may be empty, a dict for an object. A field whose name ends in `?` may be null, or be
missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

NUMBER = (int, float)
TYPE_NAMES = {dict: "an object", list: "a list", str: "a text", bool: "a truth value", type(None): "null"}


@dataclass(frozen=True)
class AnyLength:
    """A list that may be empty, of entries that fit a template."""

    of: Any


@dataclass(frozen=True)
class Holding:
    """A map whose names are free and whose values fit a template."""

    of: Any


_COUNTS = {"prompt_tokens": int, "completion_tokens": int, "total_tokens": int}
_PROMPT_COUNTS = {"prompt_tokens": int, "total_tokens": int}
_BYTES = AnyLength(int)
_TOKEN = {"token": str, "logprob": NUMBER, "bytes?": _BYTES}
_TOKENS = {"content?": AnyLength({**_TOKEN, "top_logprobs?": AnyLength(_TOKEN)})}
_CALL = {"id?": str, "type?": str, "function": {"name": str, "arguments": str}}
_CALL_PIECE = {"index": int, "id?": str, "type?": str, "function?": {"name?": str, "arguments?": str}}
_TEXTS = {"role?": str, "content?": str, "reasoning?": str, "reasoning_content?": str, "refusal?": str}
_LIST_LOGPROBS = {
    "text_offset": AnyLength(int),
    "tokens": AnyLength(str),
    "token_logprobs": AnyLength((*NUMBER, type(None))),
    "top_logprobs": AnyLength((dict, type(None))),
}
_PROMPT_LOGPROBS = AnyLength((Holding({"logprob": NUMBER, "rank?": int, "decoded_token?": str}), type(None)))
_IDS = AnyLength(int)
_PART = {"type": str, "text?": str, "annotations?": list, "logprobs?": list}
_RESPONSE = {
    "id": str,
    "object": str,
    "status": str,
    "model": str,
    "output": AnyLength(
        {
            "type": str,
            "id?": str,
            "status?": str,
            "content?": AnyLength(_PART),
            "name?": str,
            "call_id?": str,
            "arguments?": str,
            "summary?": AnyLength(dict),
        }
    ),
    "tools?": AnyLength(dict),
    "usage?": {"input_tokens": int, "output_tokens": int, "total_tokens": int},
    "incomplete_details?": dict,
    "error?": dict,
}
_BLOCK = {"type": str, "text?": str, "thinking?": str, "id?": str, "name?": str, "input?": dict}
_VECTOR = {"index": int, "embedding": (list, str)}

#: (method, path) -> template of the JSON body of an answer with status 200.
BODIES: dict[tuple[str, str], Any] = {
    ("POST", "/v1/chat/completions"): {
        "id": str,
        "object": str,
        "model": str,
        "created": int,
        "choices": [
            {
                "index": int,
                "finish_reason": str,
                "message": {**_TEXTS, "tool_calls?": AnyLength(_CALL)},
                "logprobs?": _TOKENS,
                "token_ids?": _IDS,
            }
        ],
        "usage": _COUNTS,
        "prompt_logprobs?": _PROMPT_LOGPROBS,
        "prompt_token_ids?": _IDS,
    },
    ("POST", "/v1/completions"): {
        "id": str,
        "object": str,
        "model": str,
        "created": int,
        "choices": [
            {
                "index": int,
                "finish_reason": str,
                "text": str,
                "logprobs?": _LIST_LOGPROBS,
                "prompt_logprobs?": _PROMPT_LOGPROBS,
                "token_ids?": _IDS,
                "prompt_token_ids?": _IDS,
            }
        ],
        "usage": _COUNTS,
    },
    ("POST", "/v1/responses"): _RESPONSE,
    ("GET", "/v1/responses"): _RESPONSE,
    ("POST", "/v1/messages"): {
        "id": str,
        "type": str,
        "role": str,
        "model": str,
        "content": AnyLength(_BLOCK),
        "stop_reason": str,
        "stop_sequence?": str,
        "usage": {"input_tokens": int, "output_tokens": int},
    },
    ("POST", "/v1/messages/count_tokens"): {"input_tokens": int},
    ("GET", "/v1/models"): {"object": str, "data": [{"id": str, "max_model_len?": int, "root?": str}]},
    ("GET", "/version"): {"version": str},
    ("POST", "/tokenize"): {
        "count": int,
        "max_model_len": int,
        "tokens": AnyLength(int),
        "token_strs?": AnyLength(str),
    },
    ("POST", "/detokenize"): {"prompt": str},
    ("POST", "/v1/embeddings"): {"object": str, "model": str, "data": [_VECTOR], "usage": _PROMPT_COUNTS},
    ("POST", "/pooling"): {"data": [{"index": int, "data": (list, str)}]},
    ("POST", "/classify"): {"data": [{"index": int, "label?": str, "probs": [NUMBER]}]},
    ("POST", "/v1/score"): {"data": [{"index": int, "score": NUMBER}]},
    ("POST", "/v1/rerank"): {"results": [{"index": int, "relevance_score": NUMBER}]},
}
for _alias, _path in {"/score": "/v1/score", "/rerank": "/v1/rerank", "/v2/rerank": "/v1/rerank"}.items():
    BODIES["POST", _alias] = BODIES["POST", _path]

#: Path -> template of one event of its stream, `[DONE]` left out.
EVENTS: dict[str, Any] = {
    "/v1/chat/completions": {
        "id": str,
        "object": str,
        "model": str,
        "created": int,
        "choices": AnyLength(
            {
                "index": int,
                "delta": {**_TEXTS, "tool_calls?": AnyLength(_CALL_PIECE)},
                "finish_reason?": str,
                "logprobs?": _TOKENS,
                "token_ids?": _IDS,
            }
        ),
        "usage?": _COUNTS,
        "prompt_token_ids?": _IDS,
    },
    "/v1/completions": {
        "id": str,
        "object": str,
        "model": str,
        "created": int,
        "choices": AnyLength(
            {
                "index": int,
                "text": str,
                "finish_reason?": str,
                "logprobs?": _LIST_LOGPROBS,
                "token_ids?": _IDS,
                "prompt_token_ids?": _IDS,
            }
        ),
        "usage?": _COUNTS,
    },
    "/v1/responses": {
        "type": str,
        "sequence_number": int,
        "response?": _RESPONSE,
        "item?": _RESPONSE["output"].of,  # type: ignore[attr-defined]
        "part?": _PART,
        "delta?": str,
        "text?": str,
        "arguments?": str,
        "output_index?": int,
        "content_index?": int,
        "item_id?": str,
        "logprobs?": list,
    },
    "/v1/messages": {
        "type": str,
        "index?": int,
        "message?": {**BODIES["POST", "/v1/messages"], "stop_reason": (str, type(None))},
        "content_block?": _BLOCK,
        "delta?": {
            "type?": str,
            "text?": str,
            "partial_json?": str,
            "thinking?": str,
            "stop_reason?": str,
            "stop_sequence?": str,
        },
        "usage?": {"output_tokens": int, "input_tokens?": int},
    },
}
#: A refusal, as vLLM and its web framework write them: one of the three.
REFUSALS: tuple[Any, ...] = (
    {"error": {"message": str, "type": str, "code?": (int, str), "param?": str}},
    {"detail": (str, list, dict)},
    {"message": str, "type?": str, "code?": (int, str)},
)


def misfits(template: Any, value: Any, path: str = "") -> Iterator[str]:
    """Where a JSON value is not what a template says, each in words with its path; lazily.

    Args:
        template: see this module.
        value: a decoded JSON value.
        path: where the value stands, such as `choices[0].message`; empty for the body itself.
    """
    if isinstance(template, dict):
        yield from _of_object(template, value, path)
    elif isinstance(template, list | AnyLength):
        yield from _of_list(template, value, path)
    elif isinstance(template, Holding):
        if not isinstance(value, dict):
            yield _wrong(path, value, "an object")
            return
        for name, inner in value.items():
            yield from misfits(template.of, inner, f"{path}.{name}")
    elif isinstance(template, tuple):
        found = [next(misfits(one, value, path), "") for one in template]
        if all(found):
            yield found[0]
    elif not isinstance(value, template) or (isinstance(value, bool) and template is not bool):
        yield _wrong(path, value, TYPE_NAMES.get(template, "a number"))


def _of_object(template: dict[str, Any], value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield _wrong(path, value, "an object")
        return
    for name, inner in template.items():
        field = name.removesuffix("?")
        where = f"{path}.{field}".lstrip(".")
        if field in value and not (value[field] is None and field != name):
            yield from misfits(inner, value[field], where)
        elif field == name:
            yield f"{where} is missing"


def _of_list(template: list[Any] | AnyLength, value: Any, path: str) -> Iterator[str]:
    if not isinstance(value, list):
        yield _wrong(path, value, "a list")
    elif not value and isinstance(template, list):
        yield f"{path or 'the body'} is empty"
    inner = template.of if isinstance(template, AnyLength) else template[0]
    for index, entry in enumerate(value if isinstance(value, list) else ()):
        yield from misfits(inner, entry, f"{path}[{index}]")


def _wrong(path: str, value: Any, due: str) -> str:
    given = TYPE_NAMES.get(type(value), "a number")
    text = "" if value is None or isinstance(value, dict | list) else f" ({str(value)[:40]!r})"
    return f"{path or 'the body'} is {given}{text}, not {due}"
