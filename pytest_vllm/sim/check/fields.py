"""Validation of request bodies against vLLM's schemas, with the error entries that pydantic gives.

`validate` returns the value as vLLM would see it (numbers in text become numbers, as pydantic's lax mode
does) and the list of errors; an error's `loc` already is the cleaned dotted path.
"""

from __future__ import annotations

import math
import re
from typing import Any

Entry = dict[str, Any]
_TRUE = (1, "1", "t", "true", "y", "yes", "on")
_FALSE = (0, "0", "f", "false", "n", "no", "off")
_NO_MODEL = "Input should be a valid dictionary or object to extract fields from"
#: Classes that pydantic knows as dataclasses; those that end in Param are dictionaries, all others models.
_DATACLASSES = ("RepetitionDetectionParams", "StructuredOutputsParams")
_MODELS = ("ChatCompletionToolsParam", "ChatCompletionNamedToolChoiceParam")
#: Members of unions that errors do not name.
_UNNAMED = ("ResponseFormat", "StructuralTagResponseFormat", "LegacyStructuralTagResponseFormat")
#: OpenAI's own classes take any iterable for content, vLLM's take lists.
_OPENAIS = re.compile(r"\bChatCompletion\w+MessageParam\.content$")
#: Calls in such messages are looked at when the messages are rendered.
_CALLING = "ChatCompletionAssistantMessageParam"
_CALLS = ("ChatCompletionMessageFunctionToolCallParam", "ChatCompletionMessageCustomToolCallParam")
_INT64 = 2**63 - 1


class Fields:
    """The schemas of one version: `known` maps class names to schema nodes."""

    def __init__(self, known: dict[str, Any], absent: dict[str, set[str]]) -> None:
        """Take the schemas and, per class, the fields that this version does not have yet."""
        self.known, self.absent = known, absent

    def validate(self, name: str, body: Any) -> tuple[Any, list[Entry]]:
        """A whole request body of class `name`."""
        if not isinstance(body, dict):
            return body, [_entry("model_attributes_type", ["body"], _NO_MODEL, body)]
        return self._object(self.known[name], body, ["body"], self.absent.get(name, set()))

    def either(self, names: tuple[str, ...], body: Any) -> tuple[Any, list[Entry]]:
        """A body that may be of several classes: the errors of all of them when it is of none."""
        errors: list[Entry] = []
        for name in names:
            seen, found = self.validate(name, body)
            if not found:
                return seen, []
            errors += [entry for entry in found if not (entry["loc"] == "body" and entry in errors)]
        return body, errors

    def called(self, value: Any, number: int) -> list[Entry]:
        """What is wrong with a tool call of an assistant's message; its place in the list of calls counts."""
        return self._union([{"$ref": name} for name in _CALLS], value, ["body", str(number)])[1]

    def _node(  # noqa: PLR0911 - one return per kind
        self, node: Any, value: Any, loc: list[str]
    ) -> tuple[Any, list[Entry]]:
        if "$ref" in node:
            name = node["$ref"]
            if not isinstance(value, dict) and self.known[name].get("type") == "object":
                return value, [_no_object(name.rsplit("__", 1)[-1], value, loc)]
            if name == _CALLING and isinstance(calls := value.get("tool_calls"), list):
                seen, errors = self._node(self.known[name], {**value, "tool_calls": []}, loc)
                return {**seen, "tool_calls": calls}, errors
            return self._node(self.known[name], value, loc)
        if "anyOf" in node:
            return self._union(node["anyOf"], value, loc)
        if "enum" in node or "const" in node:
            return _literal(node.get("enum", [node.get("const")]), value, loc)
        kind = node.get("type")
        if kind == "object":
            if not isinstance(value, dict):
                return value, [_no_object("" if node.get("model") else "Param", value, loc)]
            if "tags" in node and value.get("type") not in node["tags"]:
                return value, [_tag(value, node["tags"], loc)]
            return self._object(node, value, loc, set())
        if kind == "array":
            return self._array(node, value, loc)
        return SCALARS.get(kind, _anything)(node, value, loc)

    def _object(self, node: Any, value: Any, loc: list[str], absent: set[str]) -> tuple[Any, list[Entry]]:
        errors: list[Entry] = []
        seen = dict(value)
        required = node.get("required", ())
        unknown = set(required) - node.get("properties", {}).keys() - value.keys()
        errors += [_entry("missing", [*loc, name], "Field required", value) for name in sorted(unknown)]
        for name, field in node.get("properties", {}).items():
            if name in absent:
                continue
            if name in value:
                seen[name], found = self._node(field, value[name], [*loc, name])
                errors += found
            elif name in required:
                errors.append(_entry("missing", [*loc, name], "Field required", value))
        extra = node.get("additionalProperties")
        if isinstance(extra, dict) and extra:
            for name in value.keys() - node.get("properties", {}).keys():
                seen[name], found = self._node(extra, value[name], [*loc, name])
                errors += found
        return seen, errors

    def _array(self, node: Any, value: Any, loc: list[str]) -> tuple[Any, list[Entry]]:
        if not isinstance(value, list):
            if _OPENAIS.search(".".join(loc)):
                return value, [_entry("iterable_type", loc, "Input should be iterable", value)]
            return value, [_entry("list_type", loc, "Input should be a valid list", value)]
        errors: list[Entry] = []
        size = len(value)
        if size > node.get("maxItems", size):
            limit = node["maxItems"]
            text = f"List should have at most {limit} item{'s' * (limit != 1)} after validation, not {size}"
            return value, [_sized("too_long", loc, text, value, {"max_length": limit})]
        if size < node.get("minItems", 0):
            limit = node["minItems"]
            text = f"List should have at least {limit} item{'s' * (limit != 1)} after validation, not {size}"
            return value, [_sized("too_short", loc, text, value, {"min_length": limit})]
        items = node.get("items")
        if not items:
            return value, []
        seen = []
        for number, item in enumerate(value):
            good, found = self._node(items, item, [*loc, str(number)])
            seen.append(good)
            errors += found
        return seen, errors

    def _union(self, members: list[Any], value: Any, loc: list[str]) -> tuple[Any, list[Entry]]:
        if value is None and any(member.get("type") == "null" for member in members):
            return None, []
        errors: list[Entry] = []
        members = [member for member in members if member.get("type") != "null"]
        exact = [member for member in members if _exact(member, value)]
        for member in exact + [member for member in members if member not in exact]:
            good, found = self._node(member, value, loc)
            if not found:
                return good, []
        for member in members:
            tag = member["$ref"].rsplit("__", 1)[-1] if "$ref" in member and len(members) > 1 else ""
            errors += self._node(member, value, [*loc, tag] if tag and tag not in _UNNAMED else loc)[1]
        return value, errors


def _exact(node: Any, value: Any) -> bool:
    kinds = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}
    return type(value) is kinds.get(node.get("type", ""))


def _no_object(name: str, value: Any, loc: list[str]) -> Entry:
    if name in _DATACLASSES:
        text = f"Input should be a dictionary or an instance of {name}"
        return {**_entry("dataclass_type", loc, text, value), "ctx": {"class_name": name}}
    if name.endswith("Param") and name not in _MODELS:
        return _entry("dict_type", loc, "Input should be a valid dictionary", value)
    return _entry("model_attributes_type", loc, _NO_MODEL, value)


def _tag(value: dict[str, Any], tags: list[str], loc: list[str]) -> Entry:
    how, key = {"discriminator": "'type'"}, "'type'"
    if "type" not in value:
        text = f"Unable to extract tag using discriminator {key}"
        return {**_entry("union_tag_not_found", loc, text, value), "ctx": how}
    expected = ", ".join(map(repr, tags))
    text = (
        f"Input tag '{value['type']}' found using {key} does not match any of the expected tags: {expected}"
    )
    more = {**how, "tag": str(value["type"]), "expected_tags": expected}
    return {**_entry("union_tag_invalid", loc, text, value), "ctx": more}


def _sized(kind: str, loc: list[str], message: str, value: Any, limit: dict[str, int]) -> Entry:
    size = {"field_type": "List", **limit, "actual_length": len(value)}
    return {**_entry(kind, loc, message, value), "ctx": size}


def _literal(allowed: list[Any], value: Any, loc: list[str]) -> tuple[Any, list[Entry]]:
    if any(value == choice and type(value) is type(choice) for choice in allowed):
        return value, []
    names = [repr(choice) for choice in allowed]
    expected = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    entry = _entry("literal_error", loc, f"Input should be {expected}", value)
    return value, [{**entry, "ctx": {"expected": expected}}]


def _string(node: Any, value: Any, loc: list[str]) -> tuple[Any, list[Entry]]:
    if not isinstance(value, str):
        return value, [_entry("string_type", loc, "Input should be a valid string", value)]
    if len(value) < node.get("minLength", 0):
        limit = node["minLength"]
        text = f"String should have at least {limit} character{'s' * (limit != 1)}"
        return value, [{**_entry("string_too_short", loc, text, value), "ctx": {"min_length": limit}}]
    if len(value) > node.get("maxLength", len(value)):
        limit = node["maxLength"]
        text = f"String should have at most {limit} characters"
        return value, [{**_entry("string_too_long", loc, text, value), "ctx": {"max_length": limit}}]
    return value, []


def _integer(  # noqa: PLR0911 - one return per kind
    node: Any, value: Any, loc: list[str]
) -> tuple[Any, list[Entry]]:
    if isinstance(value, str):
        try:
            return _bounds(node, int(value), loc)
        except ValueError:
            text = "Input should be a valid integer, unable to parse string as an integer"
            return value, [_entry("int_parsing", loc, text, value)]
    if isinstance(value, float):
        if math.isfinite(value) and value == int(value):
            return _bounds(node, int(value), loc)
        if not math.isfinite(value):
            return value, [_entry("finite_number", loc, "Input should be a finite number", value)]
        text = "Input should be a valid integer, got a number with a fractional part"
        return value, [_entry("int_from_float", loc, text, value)]
    if not isinstance(value, int):
        return value, [_entry("int_type", loc, "Input should be a valid integer", value)]
    return _bounds(node, int(value), loc)


def _number(node: Any, value: Any, loc: list[str]) -> tuple[Any, list[Entry]]:
    if isinstance(value, str):
        try:
            return _bounds(node, float(value), loc)
        except ValueError:
            text = "Input should be a valid number, unable to parse string as a number"
            return value, [_entry("float_parsing", loc, text, value)]
    if not isinstance(value, int | float):
        return value, [_entry("float_type", loc, "Input should be a valid number", value)]
    return _bounds(node, float(value), loc)


def _boolean(node: Any, value: Any, loc: list[str]) -> tuple[Any, list[Entry]]:
    del node
    given = value.lower() if isinstance(value, str) else value
    if isinstance(given, bool | str | int) or given in (0.0, 1.0):
        if given in _TRUE:
            return True, []
        if given in _FALSE:
            return False, []
        text = "Input should be a valid boolean, unable to interpret input"
        return value, [_entry("bool_parsing", loc, text, value)]
    return value, [_entry("bool_type", loc, "Input should be a valid boolean", value)]


def _bounds(node: Any, value: float, loc: list[str]) -> tuple[Any, list[Entry]]:
    low, high = node.get("minimum"), node.get("maximum")
    whole = node.get("type") == "integer"
    if whole and high is not None:
        high = min(int(high), _INT64)  # a schema in JSON rounds it up
    if low is not None and value < low:
        limit = int(low) if whole else float(low)
        text = f"Input should be greater than or equal to {int(low)}"
        return value, [{**_entry("greater_than_equal", loc, text, value), "ctx": {"ge": limit}}]
    if high is not None and value > high:
        limit = high if whole else float(high)
        text = f"Input should be less than or equal to {int(high)}"
        return value, [{**_entry("less_than_equal", loc, text, value), "ctx": {"le": limit}}]
    return value, []


def _anything(node: Any, value: Any, loc: list[str]) -> tuple[Any, list[Entry]]:
    del node, loc
    return value, []


SCALARS = {"string": _string, "integer": _integer, "number": _number, "boolean": _boolean}


def _entry(kind: str, loc: list[str], message: str, value: Any) -> Entry:
    return {"type": kind, "loc": ".".join(loc), "msg": message, "input": value}
