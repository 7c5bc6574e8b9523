"""JSON values on one line: cut where they are long, and as leaves with their paths."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.report.text import count, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG_STRING, SHOWN_STRING, SHOWN_ITEMS, SHOWN_TOOLS = 80, 72, 4, 3


def outline(value: Any) -> str:
    """A JSON value on one line, long strings and lists cut: `{"model": "m", "tools": [1 tool: x]}`."""
    if isinstance(value, dict):
        pairs = [f"{_quoted(str(key))}: {_field(key, item)}" for key, item in value.items()]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        shown = [outline(item) for item in value[:SHOWN_ITEMS]]
        more = [f"… {len(value) - SHOWN_ITEMS} more"] if len(value) > SHOWN_ITEMS else []
        return "[" + ", ".join([*shown, *more]) + "]"
    if isinstance(value, str) and len(value) > LONG_STRING:
        return f'{_quoted(value[:SHOWN_STRING])[:-1]}…" ({len(value):,} characters)'
    return _quoted(value)


def _field(key: object, value: Any) -> str:
    if key != "tools" or not isinstance(value, list) or not value:
        return outline(value)
    names = [str(_inside(tool, "function", "name") or _inside(tool, "name") or "?") for tool in value]
    more = ", …" if len(names) > SHOWN_TOOLS else ""
    return f"[{count(len(names), 'tool')}: {printable(', '.join(names[:SHOWN_TOOLS]))}{more}]"


def _inside(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _quoted(value: Any) -> str:
    return printable(json.dumps(value, ensure_ascii=False))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every scalar of a JSON value with its path: `choices[0].delta.content`. Empty containers count."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            name = printable(str(key))
            yield from leaves(item, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and value:
        for place, item in enumerate(value):
            yield from leaves(item, f"{path}[{place}]")
    else:
        yield path, value
