"""The shape of a JSON value: which paths there are, of which types; what a model says is left out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Path -> what stands there: types, and the values that a server chooses, not a model.
Shape = dict[str, str]

#: Fields whose values belong to the protocol.
WORDS = frozenset({
    "object", "type", "role", "status", "code", "owned_by", "param", "message", "detail", "finish_reason",
    "service_tier",
})  # fmt: skip
#: Fields that hold one entry per token, by its text.
BY_TOKEN = re.compile(r"(top_logprobs|prompt_logprobs)\[\]$")
#: Where one model goes on, another is done: which it was is not the server's doing.
ENDED = frozenset({"stop", "length", "end_turn", "max_tokens", "completed", "incomplete"})
#: Why a Messages answer ended; beside these only null, and in OpenAI's answers the stop string.
REASONS = frozenset({"tool_use", "stop_sequence", "refusal", "pause_turn"})
#: Counts of tokens, sizes of a vocabulary and ids, in refusals.
COUNTED = re.compile(
    r"\b\d+(?= (?:prompt |input |output |total )?(?:input )?tokens)|(?<=at least )\d+"
    r"|(?<=input_tokens, value=)\d+|(?<=input_text, value=)\d+|(?<=Vocabulary size: )\d+|(?<=resp_)[0-9a-f]+"
)


def shape_of(value: Any) -> Shape:
    """Every path of a value. Entries of a list are one path, `[]`; several types there are joined by `|`."""
    found: dict[str, set[str]] = {}
    for path, what in _walk(value, ""):
        found.setdefault(path, set()).add(what)
    return {path: "|".join(sorted(found[path])) for path in sorted(found)}


def _walk(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        yield path, "object"
        folded = BY_TOKEN.search(path)
        for key, inner in value.items():
            yield from _walk(inner, f"{path}.*" if folded else f"{path}.{key}")
    elif isinstance(value, list):
        yield path, "list"
        for inner in value:
            yield from _walk(inner, f"{path}[]")
    else:
        yield path, _leaf(value, path.rpartition(".")[2])


def _leaf(value: Any, field: str) -> str:
    if isinstance(value, str) and (field in WORDS or (field == "stop_reason" and value in REASONS | ENDED)):
        return "ended" if value in ENDED else f"'{COUNTED.sub('N', value)}'"
    return "null" if value is None else type(value).__name__
