"""Values that fit a JSON schema, filled in sensibly where the question says how."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.check.constraints import resolve
from pytest_vllm.sim.parsers.formats import dumps
from pytest_vllm.sim.persona.pattern import example_of
from pytest_vllm.sim.persona.talk import reply

if TYPE_CHECKING:
    from pytest_vllm.sim.persona.turn import Turn

_NAMES = ("Alice", "Bob", "Clara", "David")
_CITIES = (
    "Paris",
    "Oslo",
    "Tokyo",
    "Berlin",
    "Rome",
    "Madrid",
    "London",
    "Lisbon",
    "Vienna",
    "Cairo",
    "Bern",
)
_FORMATS = {
    "date": "2024-05-17",
    "date-time": "2024-05-17T10:30:00Z",
    "time": "10:30:00Z",
    "email": "alice@example.com",
    "uri": "https://example.com/page",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "hostname": "example.com",
    "duration": "PT15M",
}
MAX_DEPTH = 24


class Filler:
    """Fills schemas in for one turn."""

    def __init__(self, turn: Turn, root: Any) -> None:
        """`root` is where `$ref` looks."""
        self.turn, self.root = turn, root
        self.numbers = [float(text) for text in re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])", turn.asked)]

    def value(  # noqa: PLR0911 - one return per kind
        self, schema: Any, name: str = "", depth: int = 0
    ) -> Any:
        """A value that validates."""
        if schema is True or not isinstance(schema, dict) or not schema or depth > 2 * MAX_DEPTH:
            return self._text({}, name)
        if "$ref" in schema:
            return self.value(resolve(schema["$ref"], self.root), name, depth + 1)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._chosen(schema["enum"])
        for union in ("anyOf", "oneOf"):
            if schema.get(union):
                return self.value(self._simplest(schema[union], depth), name, depth + 1)
        if schema.get("allOf"):
            return self.value(
                _merged([*schema["allOf"], {k: v for k, v in schema.items() if k != "allOf"}]), name, depth
            )
        return self._typed(schema, name, depth)

    def _typed(self, schema: dict[str, Any], name: str, depth: int) -> Any:
        kind = schema.get("type") or (
            "object" if "properties" in schema else "array" if "items" in schema else "string"
        )
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), "null")
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, name, depth)
        if kind in ("integer", "number"):
            return self._number(schema, integer=kind == "integer")
        if kind == "boolean":
            return "not " not in self.turn.asked.lower()
        return None if kind == "null" else self._text(schema, name)

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = schema.get("properties", {})
        required = schema.get("required", [])
        wanted = [key for key in properties if key in required or depth < 3] + [
            key for key in required if key not in properties
        ]
        made = {
            key: self.value(properties.get(key, {}), key, depth + 1)
            for key in wanted
            if key in required or depth + 1 < MAX_DEPTH
        }
        names = schema.get("propertyNames", {}).get("pattern")
        if names and not made and schema.get("minProperties"):
            made[example_of(names)] = self.value(schema.get("additionalProperties"), "", depth + 1)
        number = 0
        extra = schema.get("additionalProperties")
        while len(made) < schema.get("minProperties", 0):
            number += 1
            made[f"key{number}"] = self.value(
                extra if isinstance(extra, dict) else {}, f"key{number}", depth + 1
            )
        return made

    def _array(self, schema: dict[str, Any], name: str, depth: int) -> list[Any]:
        fixed = schema.get("prefixItems") or []
        made = [self.value(item, name, depth + 1) for item in fixed]
        items = schema.get("items", {})
        least, most = schema.get("minItems", 0), schema.get("maxItems", 1 << 30)
        count = max(least, min(most, 2 if depth < 4 else 0))
        if items is False:
            count = len(made)
        while len(made) < count:
            value = self.value(items, name, depth + 1)
            if schema.get("uniqueItems") and value in made:
                value = self._another(items, made)
            made.append(value)
        return made[:most]

    def _another(self, items: Any, made: list[Any]) -> Any:
        for choice in items.get("enum", []) if isinstance(items, dict) else []:
            if choice not in made:
                return choice
        if isinstance(made[-1], int | float):
            return max(made) + 1
        return f"{made[-1]} {len(made) + 1}" if isinstance(made[-1], str) else made[-1]

    def _number(self, schema: dict[str, Any], *, integer: bool) -> float:
        low = schema.get(
            "minimum", schema.get("exclusiveMinimum", -(1 << 31)) + ("exclusiveMinimum" in schema)
        )
        high = schema.get("maximum", schema.get("exclusiveMaximum", 1 << 31) - ("exclusiveMaximum" in schema))
        step = schema.get("multipleOf")
        told = [
            number
            for number in self.numbers
            if low <= number <= high and (not integer or number == int(number))
        ]
        value = told.pop(0) if told else max(low, min(high, 42 if low <= 42 <= high else low))
        if told or value in self.numbers:
            self.numbers.remove(value)
        if step:
            value = max(low, value // step * step)
            value = value if value >= low else value + step
        return int(value) if integer or (value == int(value) and abs(value) < 1 << 53) else value

    def _chosen(self, choices: list[Any]) -> Any:
        asked = self.turn.asked.lower()
        for choice in choices:
            if re.search(rf"\b{re.escape(str(choice).lower())}\b", asked):
                return choice
        return choices[self.turn.variant % len(choices)]

    def _simplest(self, options: list[Any], depth: int) -> Any:
        if depth < MAX_DEPTH // 2:
            return next(
                (one for one in options if not (isinstance(one, dict) and one.get("type") == "null")),
                options[0],
            )
        simple = [
            one
            for one in options
            if isinstance(one, dict) and "$ref" not in one and one.get("type") != "object"
        ]
        return (simple or options)[0]

    def _text(self, schema: dict[str, Any], name: str) -> str:
        if "pattern" in schema:
            return example_of(schema["pattern"])
        if schema.get("format") in _FORMATS:
            return _FORMATS[schema["format"]]
        text = self._told(name) or _guess(name, self.turn)
        least, most = schema.get("minLength", 0), schema.get("maxLength", 1 << 30)
        while len(text) < least:
            text += " and so on"
        return text[:most]

    def _told(self, name: str) -> str:
        asked = self.turn.asked
        if re.search(r"city|location|place|town", name, re.IGNORECASE):
            found = [city for city in _CITIES if city.lower() in asked.lower()]
            if found:
                return found[0]
            place = re.search(r"\b(?:in|for|of|at) ([A-Z][a-zà-ÿ]+(?: [A-Z][a-z]+)?)", asked)
            if place:
                return place[1]
        if name:
            found_value = re.search(
                rf"\b{re.escape(name)}\b\s*(?:is|=|:|to)?\s*[\"'`]([^\"'`]+)[\"'`]", asked, re.IGNORECASE
            )
            if found_value:
                return found_value[1]
        if re.search(r"name", name, re.IGNORECASE):
            person = re.search(
                r"(?:named?|called|is) ([A-Z][a-z]+(?: [A-Z][a-z]+)?)|\b([A-Z][a-z]+ [A-Z][a-z]+)\b", asked
            )
            if person:
                return person[1] or person[2]
        return ""


def tagged(turn: Turn, wish: Any) -> str:
    """A text within a structural tag; formats other than `tag` leave the text free."""
    form = json.loads(wish) if isinstance(wish, str) else wish
    tag = form.get("format") or {}
    if tag.get("type") != "tag":
        return reply(turn)
    inner = tag.get("content") or {}
    schema = inner.get("json_schema", {})
    text = dumps(Filler(turn, schema).value(schema)) if inner.get("type") == "json_schema" else reply(turn)
    return f"{tag['begin']}{text}{tag['end']}"


def _guess(name: str, turn: Turn) -> str:
    lower = name.lower()
    if "name" in lower:
        return _NAMES[turn.variant % len(_NAMES)]
    if re.search(r"city|location|capital", lower):
        return _CITIES[turn.variant % len(_CITIES)]
    if "country" in lower:
        return "France"
    if "unit" in lower:
        return "celsius"
    if re.search(r"quer|text|question|message|content|code", lower):
        return turn.asked[:200] or "text"
    return f"example {lower}".strip() if lower else "example"


def _merged(parts: list[Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items() if isinstance(part, dict) else ():
            if key == "properties":
                merged[key] = {**merged.get(key, {}), **value}
            elif key == "required":
                merged[key] = [*merged.get(key, []), *value]
            else:
                merged[key] = value
    return merged
