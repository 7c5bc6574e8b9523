"""How the four routes write an answer: choices, ids and usage out of a body or out of events."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: How tokens are written where their ids were asked for instead.
BY_ID = "token_id:"
#: What stands for a part of a letter.
TORN = "\ufffd"
#: One token: its text, and the likeliest candidates at its place with their log probabilities.
Token = tuple[str, dict[str, float]]


@dataclass(frozen=True)
class Choice:
    """One of the texts of an answer.

    Args:
        text: reasoning and content.
        content: the content alone.
        calls: name and arguments of each call.
        finish: the finish reasons that it gives: one, in an answer that is right.
        tokens: its tokens, where log probabilities were asked for.
        ids: its token ids, where they were asked for.
        stops: what stopped it, where that is told: a string, a token id, or None for its own end.
    """

    text: str
    content: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    finish: tuple[str, ...] = ()
    tokens: tuple[Token, ...] = ()
    ids: tuple[int, ...] | None = None
    stops: tuple[Any, ...] = ()


def chat_or_completion(parts: Sequence[Any], streams: bool) -> dict[str, Any]:
    """Of OpenAI's chat and completions."""
    rows: dict[int, list[dict[str, Any]]] = {}
    for part in parts:
        for choice in part["choices"]:
            rows.setdefault(choice["index"], []).append(choice)
    usages = [part["usage"] for part in parts if part.get("usage")]
    return {
        "ids": tuple(part.get("id") for part in parts),
        "models": tuple(part.get("model") for part in parts),
        "created": tuple(part.get("created") for part in parts),
        "usage": _usage(usages[-1], "prompt_tokens", "completion_tokens") if usages else None,
        "choices": tuple(_choice(rows[index], "delta" if streams else "message") for index in sorted(rows)),
    }


def responses(parts: Sequence[Any], streams: bool) -> dict[str, Any]:
    """Of OpenAI's Responses; a stream's text is that of its deltas."""
    bodies = response_objects(parts, streams)
    last = bodies[-1]
    ended = [part["item"] for part in parts if part.get("type") == "response.output_item.done"]
    pieces = [part for part in parts if str(part.get("type", "")).endswith("text.delta")]
    spoken = "".join(part["delta"] for part in pieces) if streams else _spoken(last["output"])
    calls = [item for item in last["output"] if item["type"] == "function_call"]
    content = _spoken([item for item in last["output"] if item["type"] == "message"])
    why = (last.get("incomplete_details") or {}).get("reason")
    choice = Choice(
        spoken,
        content,
        tuple((c["name"], c["arguments"]) for c in calls),
        (why or last["status"],),
        tuple(_tokens({"content": listed_in(last)})),
    )
    pairs = zip((item.get("id") for item in ended), (i.get("id") for i in last["output"]), strict=False)
    return {
        "ids": tuple(body.get("id") for body in bodies),
        "models": tuple(body.get("model") for body in bodies),
        "created": tuple(body.get("created_at") for body in bodies),
        "usage": _usage(last["usage"], "input_tokens", "output_tokens") if last.get("usage") else None,
        "choices": (choice,),
        "items": tuple(pairs) if streams else (),
    }


def response_objects(parts: Sequence[Any], streams: bool) -> list[dict[str, Any]]:
    """The response, whole; of a stream as often as its events hold it, the last one at its end."""
    return [part["response"] for part in parts if part.get("response")] if streams else list(parts)


def listed_in(response: dict[str, Any]) -> list[dict[str, Any]]:
    """What a response lists for the tokens of its texts."""
    return [row for part in _parts(response["output"]) for row in part.get("logprobs") or ()]


def messages(parts: Sequence[Any], streams: bool) -> dict[str, Any]:
    """Of Anthropic's Messages."""
    if not streams:
        body, usage = parts[0], parts[0]["usage"]
        blocks, why = body["content"], body["stop_reason"]
        text = "".join(block.get("thinking") or block.get("text") or "" for block in blocks)
        calls = tuple((b["name"], _spelt(b["input"])) for b in blocks if b["type"] == "tool_use")
    else:
        body = next(part["message"] for part in parts if part["type"] == "message_start")
        ends = [part for part in parts if part["type"] == "message_delta"]
        usage, why = {**body["usage"], **(ends[-1].get("usage") or {})}, ends[-1]["delta"]["stop_reason"]
        deltas = [part["delta"] for part in parts if part["type"] == "content_block_delta"]
        text = "".join(delta.get("thinking") or delta.get("text") or "" for delta in deltas)
        calls = _streamed_calls(parts)
    cached = (usage.get("cache_read_input_tokens") or 0) + (usage.get("cache_creation_input_tokens") or 0)
    return {
        "ids": (body.get("id"),),
        "models": (body.get("model"),),
        "usage": (usage["input_tokens"] + cached, usage["output_tokens"], None),
        "choices": (Choice(text, text, calls, (why,)),),
    }


def _streamed_calls(parts: Sequence[Any]) -> tuple[tuple[str, str], ...]:
    """Name and arguments of each call in a stream of Messages."""
    made: dict[int, list[str]] = {}
    for part in parts:
        block, delta = part.get("content_block") or {}, part.get("delta") or {}
        if block.get("type") == "tool_use":
            made[part["index"]] = [block["name"], ""]
        elif part["type"] == "content_block_delta" and part["index"] in made:
            made[part["index"]][1] += delta.get("partial_json") or ""
    return tuple((name, _spelt(json.loads(arguments or "{}"))) for name, arguments in made.values())


def _spelt(arguments: Any) -> str:
    return json.dumps(arguments, sort_keys=True)


READERS: dict[str, Callable[[Sequence[Any], bool], dict[str, Any]]] = {
    "/v1/chat/completions": chat_or_completion,
    "/v1/completions": chat_or_completion,
    "/v1/responses": responses,
    "/v1/messages": messages,
}


def _choice(rows: Sequence[dict[str, Any]], said: str) -> Choice:
    """One choice out of its pieces; a whole answer is one piece."""
    words = [row.get(said, row) for row in rows]
    thought = "".join(w.get("reasoning") or w.get("reasoning_content") or "" for w in words)
    content = "".join(w.get("content") or w.get("text") or "" for w in words)
    calls: dict[int, list[str]] = {}
    for word in words:
        for place, call in enumerate(word.get("tool_calls") or ()):
            made = calls.setdefault(call.get("index", place), ["", ""])
            function = call.get("function") or {}
            made[0] += function.get("name") or ""
            made[1] += function.get("arguments") or ""
    ids = [row["token_ids"] for row in rows if row.get("token_ids") is not None]
    return Choice(
        thought + content,
        content,
        tuple((name, arguments) for name, arguments in calls.values()),
        tuple(row["finish_reason"] for row in rows if row.get("finish_reason")),
        tuple(token for row in rows if row.get("logprobs") for token in _tokens(row["logprobs"])),
        tuple(id_ for some in ids for id_ in some) if ids else None,
        tuple(row["stop_reason"] for row in rows if row.get("finish_reason") and "stop_reason" in row),
    )


def _tokens(logprobs: dict[str, Any]) -> list[Token]:
    if "tokens" in logprobs:
        tops = logprobs.get("top_logprobs") or [None] * len(logprobs["tokens"])
        return [(token, top or {}) for token, top in zip(logprobs["tokens"], tops, strict=True)]
    return [
        (entry["token"], {top["token"]: top["logprob"] for top in entry.get("top_logprobs") or ()})
        for entry in logprobs.get("content") or ()
    ]


def _spoken(items: Sequence[dict[str, Any]]) -> str:
    return "".join(part["text"] for part in _parts(items))


def _parts(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [part for item in items for part in item.get("content") or () if "text" in part]


def _usage(usage: dict[str, Any], prompt: str, completion: str) -> tuple[int, int, int | None]:
    return usage[prompt], usage[completion], usage.get("total_tokens")
