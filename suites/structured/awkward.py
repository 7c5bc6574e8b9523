"""Constraints that are hard to compile, each with the version from which a server must survive it."""

from __future__ import annotations

from functools import reduce
from typing import Any


def _schema(schema: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}}


def _boxed(inner: Any, _: int) -> dict[str, Any]:
    return {"type": "array", "items": inner, "minItems": 1, "maxItems": 1}


BOOLEAN: dict[str, Any] = {"type": "boolean"}
_NEXT = {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}
_NODE = {"type": "object", "properties": {"next": _NEXT}, "required": ["next"], "additionalProperties": False}
_KEYS = {f"key{n}": BOOLEAN for n in range(100)}
_TAG = {
    "type": "structural_tag",
    "format": {
        "type": "tag",
        "begin": "<answer>",
        "content": {"type": "json_schema", "json_schema": {"enum": ["left", "right"]}},
        "end": "</answer>",
    },
}

AWKWARD: list[dict[str, Any]] = [
    {"id": "schema-empty", "from": "0.30.0", "params": _schema({})},
    {"id": "nested-100", "from": "0.30.0", "params": _schema(reduce(_boxed, range(100), BOOLEAN))},
    {"id": "enum-2000", "from": "0.11.0", "params": _schema({"enum": [f"value {n}" for n in range(2000)]})},
    {"id": "enum-mixed", "from": "0.11.0", "params": _schema({"enum": [1, "1", None, True, [1], {"a": 1}]})},
    {
        "id": "keys-100",
        "from": "0.11.0",
        "params": _schema({"type": "object", "properties": _KEYS, "required": list(_KEYS)}),
    },
    {
        "id": "reference-to-ancestor",
        "from": "0.30.0",
        "params": _schema({"$defs": {"node": _NODE}, "$ref": "#/$defs/node"}),
    },
    {
        "id": "pattern-lookahead",
        "from": "0.30.0",
        "params": _schema({"type": "string", "pattern": "^(?=a)[a-c]{3}$"}),
    },
    {"id": "nothing-fits", "from": "0.30.0", "params": _schema({"not": {}})},
    {
        "id": "format-unknown",
        "from": "0.30.0",
        "params": _schema({"type": "string", "format": "banana", "maxLength": 5}),
    },
    {
        "id": "repetition-10000",
        "from": "0.30.0",
        "params": {"structured_outputs": {"regex": "[a-z]{1,10000}"}},
    },
    {"id": "structural-tag", "from": "0.12.0", "params": {"response_format": _TAG}},
]
