"""The tools that requests of this suite offer.

Their schemas leave a model no choice: every value is a constant or one of a few. A server that constrains
calls by their schema (`tool_choice` required or named) then writes known arguments, whatever its weights.
"""

from __future__ import annotations

from typing import Any

Tool = dict[str, Any]

STORE = "store_value"
PING = "ping"
WEATHER = "get_weather"
NOTE = "write_note"
ODD = "keep_values"
OSLO, PARIS = "weather_in_oslo", "weather_in_paris"

#: Characters that a long argument consists of: words, so that it takes many tokens.
LONG = " ".join(f"line {number}: the quick brown fox jumps over the lazy dog;" for number in range(1, 13))


def tool(name: str, properties: dict[str, Any], description: str = "") -> Tool:
    """A function whose properties are all required, and no others allowed."""
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    function = {"name": name, "description": description or name.replace("_", " "), "parameters": parameters}
    return {"type": "function", "function": {**function, "strict": True}}


def constant(value: str) -> dict[str, Any]:
    """The schema of one text."""
    return {"type": "string", "const": value}


def exactly(value: Any) -> dict[str, Any]:
    """The schema of one value: a text, a number, a flag, or an object of such."""
    if isinstance(value, dict):
        properties = {name: exactly(one) for name, one in value.items()}
        closed = {"required": list(value), "additionalProperties": False}
        return {"type": "object", "properties": properties, **closed}
    kinds = {str: "string", bool: "boolean", int: "integer", float: "number"}
    return {"type": kinds[type(value)], "const": value}


#: What a schema refers to, as pydantic writes the classes of a program.
PERIOD: dict[str, Any] = {
    "type": "object",
    "properties": {"kind": {"enum": ["week", "month"]}, "days": {"type": "integer"}},
    "required": ["kind", "days"],
}


def store(schema: dict[str, Any]) -> Tool:
    """A tool that takes one value of a schema."""
    made = tool(STORE, {"value": schema}, "Stores a value.")
    if "$ref" in schema:
        made["function"]["parameters"]["$defs"] = {"period": PERIOD}
    return made


ping = tool(PING, {}, "Tells whether the service is up. Takes no parameters.")
weather = tool(
    WEATHER,
    {"city": constant("Oslo"), "unit": constant("celsius"), "days": {"type": "integer", "const": 3}},
    "Tells the weather of a city.",
)
oslo = tool(OSLO, {"city": constant("Oslo")}, "Tells the weather in Oslo.")
paris = tool(PARIS, {"city": constant("Paris")}, "Tells the weather in Paris.")
note = tool(NOTE, {"text": constant(LONG)}, "Writes a note.")

WEATHER_ARGUMENTS = {"city": "Oslo", "unit": "celsius", "days": 3}
#: Brackets, quotes and backslashes within texts, other scripts, numbers and flags, and more behind each.
ODD_ARGUMENTS: dict[str, Any] = {
    "code": 'if (a[0]) { b("}"); } else { c = {}; }',
    "path": 'C:\\new\\u0041 "quoted" \\',
    "city": "Żółć 東京 👍🏽",
    "count": 42,
    "share": -1.5,
    "open": True,
    "nested": {"key": "}]", "deeper": {"text": "{"}},
    "last": "]}",
}
odd = tool(ODD, {name: exactly(value) for name, value in ODD_ARGUMENTS.items()}, "Keeps values.")


def named(name: str) -> dict[str, Any]:
    """The tool choice that forces one function."""
    return {"type": "function", "function": {"name": name}}


def many(count: int) -> list[Tool]:
    """That many tools, the last of which is the weather's."""
    others = [
        tool(f"sensor_{number}", {"level": {"type": "integer", "enum": [number]}})
        for number in range(count - 1)
    ]
    return [*others, weather]


def schemas(tools: list[Tool]) -> dict[str, Any]:
    """Parameters by function name, for tools that are well formed."""
    functions = [one.get("function") or {} for one in tools]
    return {one["name"]: one.get("parameters") or {} for one in functions if "name" in one}
