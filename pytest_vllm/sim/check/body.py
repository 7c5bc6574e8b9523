"""From the bytes of a request to a validated body, refusing what vLLM's web layer refuses."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.check.fields import Entry, Fields
from pytest_vllm.sim.check.typed import classes, schema
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


def validated_as_any(names: tuple[str, ...], body: Any, version: Version) -> dict[str, Any]:
    """The body as the first of these pooling classes that takes it. Raises ApiError, as `validated` does."""
    known = classes(names, version)
    table = {**facts("schema")["schemas"], **{name: schema(name, version) for name in known}}
    seen, errors = Fields(table, {}).either(known, body)
    if errors:
        raise bad_request(errors)
    good: dict[str, Any] = seen
    return good


class BadFieldsError(ApiError):
    """A body whose fields are wrong: every error, as pydantic lists them."""

    def __init__(self, errors: list[Any]) -> None:
        """Name the first field that is wrong."""
        first = errors[0]
        param = _clean(first.get("loc")) if isinstance(first, dict) else None
        super().__init__("\n".join(_listed(errors)), 400, "Bad Request", param)
        self.errors = errors

    def told(self, version: Version) -> str:
        """Bounded from 0.30.0 on; earlier whole values are echoed, and all errors."""
        if version >= "0.30.0":
            return self.message
        return "\n".join([_counted(self.errors), *(f"  {_raw(error)}" for error in self.errors)])


def bad_request(errors: list[Any]) -> ApiError:
    """The refusal of a body whose fields are wrong."""
    return BadFieldsError(errors)


def _counted(errors: list[Any]) -> str:
    return f"{len(errors)} validation error{'s' * (len(errors) != 1)}:"


def _listed(errors: list[Any]) -> list[str]:
    lines = [_counted(errors)] + [f"  {_shown(error)}" for error in errors[:_REPORTED]]
    if len(errors) > _REPORTED:
        lines.append(f"  ...and {len(errors) - _REPORTED} more errors")
    return lines


def _raw(error: Any) -> str:
    if not isinstance(error, dict) or not isinstance(error.get("loc"), str):
        return str(error)
    steps = error["loc"].split(".")
    return str({**error, "loc": tuple(int(step) if step.isdigit() else step for step in steps)})


def _clean(loc: Any) -> Any:
    """A path without a step that vLLM takes for a word of pydantic's."""
    return ".".join(step for step in loc.split(".") if step != "arguments") if isinstance(loc, str) else loc


def _shown(error: Any) -> str:
    if isinstance(error, dict) and "input" in error:
        error = {**error, "loc": _clean(error.get("loc")), "input": _summary(error["input"])}
    text = str(error)
    return text[:_ENTRY_CHARS] + "...[truncated]" if len(text) > _ENTRY_CHARS else text


def _summary(value: Any) -> Any:
    if isinstance(value, list | dict):
        return f"<{type(value).__name__} of {len(value)} items>"
    if value is None or (isinstance(value, str) and len(value) <= _INPUT_CHARS):
        return value if value is not None else "None"
    text = str(value)
    return text[:_INPUT_CHARS] + "...[truncated]" if len(text) > _INPUT_CHARS else text
