"""Request schemas of pooling routes, made from the facts about their fields: each version has its own."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts.timeline import at, read
from pytest_vllm.sim.versions import facts

if TYPE_CHECKING:
    from pytest_vllm.sim.versions import Version

Node = dict[str, Any]
_SCALARS = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_ENUMS = {
    "EncodingFormat": ["float", "base64", "bytes", "bytes_only"],
    "EmbedDType": ["float32", "float16", "bfloat16", "fp8_e4m3", "fp8_e5m2"],
    "Endianness": ["native", "big", "little"],
    "CohereEmbeddingType": ["float", "binary", "ubinary", "base64"],
    "CohereTruncate": ["NONE", "START", "END"],
    "AudioResponseFormat": ["json", "text", "srt", "verbose_json", "vtt"],
    "TranscriptionResponseFormat": ["json", "text", "srt", "verbose_json", "vtt", "diarized_json"],
    "PoolingTask": ["embed", "classify", "token_embed", "token_classify", "plugin", "embed&token_classify"],
}
_PARTS: Node = {"type": "object", "properties": {"content": {"type": "array"}}, "required": ["content"]}
_TEXT: Node = {"anyOf": [{"type": "string"}, _PARTS]}
_NAMES: dict[str, Node] = {
    "ScoreMultiModalParam": _PARTS,
    "ScoreInput": _TEXT,
    "ScoreInputs": {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]},
}
#: Fields without a default; the facts also call some so that a parent class gives one.
_NEEDED = (
    "input", "messages", "query", "documents", "queries", "items", "text_1", "text_2", "data_1", "data_2",
)  # fmt: skip
_BOUNDS: dict[str, Node] = {
    "truncate_prompt_tokens": {"minimum": -1},
    "top_n": {"minimum": 0},
    "priority": {"minimum": -(2**63), "maximum": 2**63 - 1},
    "cache_salt": {"minLength": 1, "maxLength": 1024},
}


def classes(names: tuple[str, ...], version: Version) -> tuple[str, ...]:
    """Those of the classes that a version has."""
    return tuple(name for name in names if schema(name, version)["properties"])


def schema(name: str, version: Version) -> Node:
    """The schema of a request class as a version has it; no properties where it has none of that name."""
    return _schema(name, version.text)


@cache
def _schema(name: str, text: str) -> Node:
    from pytest_vllm.sim.versions import Version  # noqa: PLC0415 - the cache wants plain text

    version = Version(text)
    properties: Node = {}
    for key, entry in read("fields")["entries"].items():
        owner, _, field = key.partition(".")
        if owner == name and version.within([entry.get("added", "0.1"), entry.get("removed", "")]):
            properties[field] = _limited(field, node_of(at(entry["type"], _sampled(version))))
    needed = [field for field in properties if field in _NEEDED]
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": True}


def _sampled(version: Version) -> str:
    import pytest_vllm.facts  # noqa: PLC0415 - as above

    return pytest_vllm.facts.nearest(version.text)


def _limited(field: str, node: Node) -> Node:
    bounds = _BOUNDS.get(field)
    if not bounds:
        return node
    if "anyOf" in node:
        return {
            "anyOf": [part if part.get("type") == "null" else {**part, **bounds} for part in node["anyOf"]]
        }
    return {**node, **bounds}


def node_of(kind: str) -> Node:  # noqa: PLR0911 - one return per way to write a type
    """A schema node of a type as the facts write it, such as `list[int]|str|None`."""
    parts = members(kind)
    if len(parts) > 1:
        return {"anyOf": [node_of(member) for member in parts]}
    if kind == "None":
        return {"type": "null"}
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    if kind in _ENUMS:
        return {"type": "string", "enum": _ENUMS[kind]}
    if kind.startswith("{"):
        return {"type": "string", "enum": kind.strip("{}").split(",")}
    if kind == "list[ChatCompletionMessageParam]":
        known: Node = facts("schema")["schemas"]["TokenizeChatRequest"]["properties"]["messages"]
        return known
    if found := re.fullmatch(r"(?:list|Sequence)\[(.*)\]", kind):
        return {"type": "array", "items": node_of(found[1])}
    if kind.startswith("dict["):
        return {"type": "object", "additionalProperties": True}
    return _NAMES.get(kind, {})


def members(kind: str) -> list[str]:
    """The members of a union; bars within brackets do not count."""
    parts, depth = [""], 0
    for char in kind:
        depth += (char in "[{") - (char in "]}")
        if char == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return parts
