"""From the bytes of a request to a validated body, refusing what vLLM's web layer refuses."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.check.fields import Entry, Fields
from pytest_vllm.sim.errors import ApiError, Detail
from pytest_vllm.sim.versions import Version, facts

if TYPE_CHECKING:
    from pytest_vllm.sim.http.request import Request

_UNREADABLE = "There was an error parsing the body"
_MEDIA = "Unsupported Media Type: Only 'application/json' is allowed"
_REPORTED = 10
_INPUT_CHARS, _ENTRY_CHARS = 200, 1000
MAX_DEPTH = 900


@cache
def fields_of(version: str) -> Fields:
    """The request schemas of a version: fields that were added later are unknown to it."""
    table, at = facts("schema"), Version(version)
    absent = {
        name: {field for field, added in known.items() if not added.startswith("<=") and at < added}
        for name, known in table["added"].items()
    }
    return Fields(table["schemas"], absent)


def read_json(request: Request) -> Any:
    """The body as JSON. Raises what the web layer raises for a wrong media type or broken JSON."""
    media = request.headers.get("content-type", "").lower().split(";")[0].strip()
    if media != "application/json":
        raise bad_request([_MEDIA])
    if not request.body:
        raise bad_request([{"type": "missing", "loc": "body", "msg": "Field required", "input": None}])
    try:
        text = request.body.decode()
    except UnicodeDecodeError:
        raise Detail(400, _UNREADABLE) from None
    try:
        body = json.loads(text)
    except json.JSONDecodeError as error:
        entry: Entry = {
            "type": "json_invalid",
            "loc": f"body.{error.pos}",
            "msg": "JSON decode error",
            "input": {},
        }
        raise bad_request([{**entry, "ctx": {"error": error.msg}}]) from None
    except (RecursionError, ValueError):
        raise Detail(400, _UNREADABLE) from None
    if body is None:
        raise bad_request([{"type": "missing", "loc": "body", "msg": "Field required", "input": None}])
    return body


def validated(name: str, body: Any, version: Version, *others: str) -> dict[str, Any]:
    """The body as class `name`, or one of `others`, sees it. Raises ApiError listing every wrong field."""
    seen, errors = fields_of(version.text).either((name, *others), body)
    if errors:
        raise bad_request(errors)
    good: dict[str, Any] = seen
    return good


def bad_request(errors: list[Any]) -> ApiError:
    """The refusal of a body whose fields are wrong."""
    count = len(errors)
    label = "error" if count == 1 else "errors"
    lines = [f"{count} validation {label}:"] + [f"  {_shown(error)}" for error in errors[:_REPORTED]]
    if count > _REPORTED:
        lines.append(f"  ...and {count - _REPORTED} more {label}")
    first = errors[0]
    param = first.get("loc") if isinstance(first, dict) else None
    return ApiError("\n".join(lines), 400, "Bad Request", param)


def _shown(error: Any) -> str:
    if isinstance(error, dict) and "input" in error:
        error = {**error, "input": _summary(error["input"])}
    text = str(error)
    return text[:_ENTRY_CHARS] + "...[truncated]" if len(text) > _ENTRY_CHARS else text


def _summary(value: Any) -> Any:
    if isinstance(value, list | dict):
        return f"<{type(value).__name__} of {len(value)} items>"
    if value is None or (isinstance(value, str) and len(value) <= _INPUT_CHARS):
        return value if value is not None else "None"
    text = str(value)
    return text[:_INPUT_CHARS] + "...[truncated]" if len(text) > _INPUT_CHARS else text
