"""The JSON Schema of profiles, for editors: every key with its text, every flag of vLLM with its versions."""

from __future__ import annotations

import ast
import inspect
import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts import flag_status, flags, versions
from pytest_vllm.facts.capabilities import CAPABILITIES
from pytest_vllm.profile.errors import model_at
from pytest_vllm.profile.limits import COMPARED
from pytest_vllm.profile.model import GIVEN, Profile

if TYPE_CHECKING:
    from pydantic import BaseModel

SCHEMA = "profile.schema.json"

_TYPES: dict[str, dict[str, Any]] = {
    "bool": {"type": "boolean"},
    "int": {"type": ["integer", "string"]},
    "float": {"type": ["number", "string"]},
    "list": {"type": ["array", "string"]},
}


def schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a profile file."""
    found: dict[str, Any] = Profile.model_json_schema(by_alias=True)
    definitions = {name: _described(name, body) for name, body in found.pop("$defs").items()}
    top = _without_nulls(_with_texts(found, Profile))
    for name in GIVEN:
        del top["properties"][name]
    top["properties"]["extends"] = {
        "type": "string",
        "description": "A profile whose tables this one's are merged over; lists are replaced. One level.",
    }
    definitions["ServerPart"]["properties"]["args"] = flag_schema()
    definitions["ExpectPart"]["properties"]["capabilities"]["items"] = {"enum": list(CAPABILITIES)}
    definitions["Limits"]["properties"]["regression"]["propertyNames"] = {"enum": list(COMPARED)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A pytest-vllm profile",
        **{key: value for key, value in top.items() if key != "title"},
        "$defs": definitions,
    }


def schema_text() -> str:
    """The schema as it is committed."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


def flag_schema() -> dict[str, Any]:
    """`[server.args]`: the flags of every version, with the versions that have them."""
    known: dict[str, Any] = {}
    for version in versions():
        known |= flags(version)
    properties = {name: {**_typed(known[name].type), "description": _life(name)} for name in sorted(known)}
    return {
        "type": "object",
        "description": "Exactly vLLM's flags without dashes: true is a bare flag, a table is JSON.",
        "properties": properties,
        "additionalProperties": True,
    }


def _typed(kind: str) -> dict[str, Any]:
    return _TYPES.get(kind, {"type": ["string", "object", "array"]} if kind.startswith("json") else {})


def _life(name: str) -> str:
    status = flag_status(name)
    parts = [f"since vLLM {status.added}" if status.added != versions()[0] else "in every version"]
    if status.deprecated_since:
        parts.append(f"deprecated since {status.deprecated_since}")
    if status.removed:
        parts.append(f"removed in {status.removed}")
    if status.replaced_by:
        parts.append(f"instead: {status.replaced_by}")
    return "; ".join(parts) + (f". {status.note}" if status.note else "")


def _described(name: str, body: dict[str, Any]) -> dict[str, Any]:
    models = {model.__name__: model for model in _models(Profile)}
    model = models.get(name)
    cleaned: dict[str, Any] = _without_nulls(_with_texts(body, model) if model else body)
    return cleaned


def _models(model: type[BaseModel]) -> list[type[BaseModel]]:
    found = [model]
    for name, field in model.model_fields.items():
        inner = model_at(model, (field.alias or name,))
        if inner is not None:
            found += _models(inner)
    return found


def _with_texts(body: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """The text under each field of the class, as its description."""
    texts = {key: text for base in reversed(model.__mro__) for key, text in _texts(base).items()}
    for name, field in model.model_fields.items():
        shown = body.get("properties", {}).get(field.alias or name)
        if shown is not None and name in texts:
            shown["description"] = texts[name]
    return body


def _texts(owner: type) -> dict[str, str]:
    if not owner.__module__.startswith(__package__ or ""):
        return {}
    (node,) = ast.parse(inspect.getsource(owner)).body
    if not isinstance(node, ast.ClassDef):
        return {}
    texts = {}
    for field, text in zip(node.body, node.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
        ):
            value = text.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                texts[field.target.id] = inspect.cleandoc(value.value)
    return texts


def _without_nulls(value: Any) -> Any:
    """TOML has no null: optional values are simply left out."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if not isinstance(value, dict):
        return value
    cleaned = {
        key: _without_nulls(item) for key, item in value.items() if not (key == "default" and item is None)
    }
    choices = [item for item in cleaned.get("anyOf", []) if item != {"type": "null"}]
    if "anyOf" in cleaned:
        cleaned.pop("anyOf")
        cleaned |= choices[0] if len(choices) == 1 else {"anyOf": choices}
    return {key: item for key, item in cleaned.items() if key != "title" or isinstance(item, dict)}
