"""Structured-output wishes of a request, checked as the engine checks them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.errors import ApiError, Invalid

if TYPE_CHECKING:
    from pytest_vllm.sim.settings import Settings

KINDS = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")
TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")
MAX_NESTING = 64
UNIMPLEMENTED = ("contains", "uniqueItems")
#: Formats of text that one of the grammar libraries knows.
FORMATS = frozenset({
    "email", "date", "time", "date-time", "duration", "ipv4", "ipv6", "hostname", "uuid", "uri",
    "uri-reference", "uri-template", "json-pointer", "relative-json-pointer",
})  # fmt: skip


def constraint_of(body: dict[str, Any], settings: Settings) -> dict[str, Any] | None:
    """{kind: value} with one of `KINDS`, None when the answer is free. Raises ApiError for a broken wish."""
    wanted = _structured(body)
    if settings.version < "0.12.0":
        wanted = wanted or _guided(body)
    form = body.get("response_format") or {}
    if wanted and form.get("type") in ("json_object", "json_schema"):
        raise _several({**wanted, "json_object": True})
    if form.get("type") == "json_object":
        wanted = {"json_object": True}
    elif form.get("type") == "json_schema":
        wanted = {"json": (form.get("json_schema") or {}).get("schema")}
        if wanted["json"] is None:
            raise _none_given()
    elif form.get("type") == "structural_tag":
        wanted = {"structural_tag": form}
        config = settings.args.get("structured_outputs_config") or {}
        if config.get("backend") == "guidance" and "triggers" not in form:  # the older form alone
            raise Invalid("'triggers'")
    if wanted is not None:
        _check(wanted)
        if settings.version >= "0.32.0":
            _implemented(wanted.get("json"))
    return wanted


def _structured(body: dict[str, Any]) -> dict[str, Any] | None:
    given = body.get("structured_outputs")
    if given is None:
        return None
    wanted = {kind: given[kind] for kind in KINDS if given.get(kind) is not None}
    if not wanted:
        raise _none_given()
    if len(wanted) > 1:
        raise _several(wanted)
    return wanted


def _several(wanted: dict[str, Any]) -> Invalid:
    text = "You can only use one kind of structured outputs constraint but multiple are specified"
    return Invalid(f"{text}: {_shown(wanted)}")


def _guided(body: dict[str, Any]) -> dict[str, Any] | None:
    for kind in ("json", "regex", "choice", "grammar"):
        value = body.get(f"guided_{kind}")
        if value is not None:
            return {kind: value}
    return None


def _none_given() -> Invalid:
    text = "You must use one kind of structured outputs constraint but none are specified"
    return Invalid(f"{text}: {_shown({})}")


def _shown(wanted: dict[str, Any]) -> dict[str, Any]:
    """The parameters as Python shows their dataclass."""
    shown: dict[str, Any] = dict.fromkeys(["json", "regex", "choice", "grammar", "json_object"])
    shown |= {"disable_any_whitespace": False, "disable_additional_properties": False}
    shown |= dict.fromkeys(["whitespace_pattern", "structural_tag", "_backend"])
    return shown | {"_backend_was_auto": False} | wanted


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _check(wanted: dict[str, Any]) -> None:
    kind, value = next(iter(wanted.items()))
    if kind == "structural_tag" and isinstance(value, str) and not _is_object(value):
        raise Invalid("Invalid structured_outputs structural_tag specification.", "structured_outputs")
    if kind == "choice" and not value:
        raise Invalid(f"Choice '{value}' cannot be an empty list")
    if kind == "grammar":
        if not value.strip():
            raise Invalid("structured_outputs.grammar cannot be an empty string")
        if not re.search(r"^\s*\w[\w-]*\s*(::=|:)", value, re.MULTILINE):
            raise ApiError("Invalid grammar specification.")
    if kind == "json_object" and value is False:
        raise Invalid(
            "structured_outputs.json_object must be True if set; "
            "omit structured_outputs to disable structured outputs"
        )
    if kind == "regex":
        try:
            re.compile(value)
        except re.error as error:
            raise ApiError(f"Failed to convert the regex from string to grammar: {error}") from None
    if kind == "json":
        wanted["json"] = _schema(value)


def _schema(value: Any) -> Any:
    if isinstance(value, str):
        if not value.strip():
            raise Invalid("structured_outputs.json cannot be an empty string")
        try:
            value = json.loads(value)
        except ValueError:
            raise ApiError("Invalid JSON grammar specification.") from None
    if _depth(value) > MAX_NESTING:
        text = (
            f"The JSON schema is nested too deeply: objects and arrays may nest at most {MAX_NESTING} levels"
        )
        raise Invalid(text)
    _walk(value, value)
    return value


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0) if isinstance(value, dict | list) else 0


def _walk(node: Any, root: Any) -> None:
    if isinstance(node, list):
        for part in node:
            _walk(part, root)
    if not isinstance(node, dict):
        return
    kinds = node.get("type")
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if isinstance(kind, str) and kind not in TYPES:
            raise ApiError(f"Failed to convert the JSON schema to a grammar: Unsupported type {kind!r}")
    reference = node.get("$ref")
    if isinstance(reference, str) and resolve(reference, root) is None:
        raise ApiError(f"Failed to convert the JSON schema to a grammar: Cannot find field in {reference}")
    for key, value in node.items():
        if key not in ("enum", "const", "default", "examples"):
            _walk(value, root)


def _implemented(node: Any) -> None:
    """Refuse what neither grammar library of 0.32.0 knows."""
    if isinstance(node, dict):
        kinds = node.get("type")
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if "array" in kinds:
            for key in UNIMPLEMENTED:
                if node.get(key):
                    raise ApiError(f'Grammar error: Unimplemented keys: ["{key}"]')
        if "string" in kinds and isinstance(form := node.get("format"), str) and form not in FORMATS:
            raise ApiError(f"Grammar error: Unknown format: {form}")
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for part in parts:
        _implemented(part)


def resolve(reference: str, root: Any) -> Any:
    """The part of a schema that `#/…` names; None when there is none."""
    node = root
    for step in reference.lstrip("#/").split("/") if reference != "#" else []:
        node = node.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
    return node
