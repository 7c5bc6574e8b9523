"""What a model wrote in a call as text between tags, and which type its tool gives that."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema

#: How formats write a call (its name, the rest) and a parameter of it (key, value).
FORMATS = tuple(
    (re.compile(call, re.DOTALL), re.compile(parameter, re.DOTALL))
    for call, parameter in (
        (r"<function=([^>\n]+)>(.*?)</function>", r"<parameter=([^>\n]+)>(.*?)</parameter>"),
        (
            r'invoke name="([^"\n]+)">(.*?)</[^<>]*invoke>',
            r'parameter name="([^"\n]+)"[^>]*>(.*?)</[^<>]*parameter>',
        ),
        (
            r"tool_call>\s*([\w.-]+)(.*?)</[^<>]*tool_call>",
            r"arg_key>(.*?)</[^<>]*arg_key>\s*<[^<>]*arg_value>(.*?)</[^<>]*arg_value>",
        ),
        (
            r'call tool="([^"\n]+)"[^|]*\|sep\|>(.*?)<\|close\|>call',
            r'argument key="([^"\n]+)"[^|]*\|sep\|>(.*?)<\|close\|>argument',
        ),
    )
)
#: Where a schema keeps what its parts refer to.
DEFINED = ("$defs", "definitions")

Call = tuple[str, dict[str, str]]


def tagged(raw: str) -> list[Call]:
    """The calls that a text holds, name and texts by parameter; none where its format is another one."""
    for call, parameter in FORMATS:
        found = [(name.strip(), dict(parameter.findall(inner))) for name, inner in call.findall(raw)]
        if any(texts for _, texts in found):
            return found
    return []


def valid(value: Any, schema: Any) -> bool:
    """Whether a value fits a schema; one that cannot be used says nothing of any."""
    try:
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        return bool(kind(schema).is_valid(value))
    except Exception:  # noqa: BLE001 - whatever is wrong with a schema, it is not the value's
        return False


def misread(said: Any, text: str, parameters: dict[str, Any], key: str) -> str:
    """How a value is of another type than its text has to be; empty where it is not, or may be of several.

    A text fits its schema as it stands or as the JSON that it is: where it fits as one of the two alone, that
    is what was meant.
    """
    schema = (parameters.get("properties") or {}).get(key)
    if not isinstance(schema, dict):
        return ""
    whole = {**{name: parameters[name] for name in DEFINED if name in parameters}, **schema}
    as_text = any(valid(one, whole) for one in (text, text.strip("\n"), text.strip()))
    read, written = _json(text)
    as_json = read and not isinstance(written, str) and valid(written, whole)
    if as_text == as_json:
        return ""
    right = isinstance(said, str) if as_text else _same(said, written)
    told = json.dumps(said, ensure_ascii=False)[:80]
    return "" if right else f"{key} {told}, written was {text.strip()[:80]}"


def _json(text: str) -> tuple[bool, Any]:
    try:
        return True, json.loads(text)
    except ValueError:
        return False, None


def _same(said: Any, written: Any) -> bool:
    return bool(said == written and isinstance(said, bool) == isinstance(written, bool))
