"""Writes fixes into a profile's text and leaves everything else of it as it stands, comments too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tomlkit
from tomlkit.container import Container
from tomlkit.items import Array, InlineTable, Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_vllm.preflight.rule import Finding, Fix


def fixed(text: str, findings: Iterable[Finding], *, prefix: tuple[str, ...] = ()) -> tuple[str, list[Fix]]:
    """The text with every fix applied that goes together, and which those are.

    Args:
        text: a profile, or the pyproject.toml that holds it.
        findings: the first fix of a key wins, errors come first.
        prefix: the tables in front of the profile's own.
    """
    document = tomlkit.parse(text)
    done: list[Fix] = []
    touched: set[str] = set()
    for found in findings:
        fix = found.fix
        if fix is None or _table_of(fix.key) & touched or fix.key in touched:
            continue
        if _apply(document, (*prefix, *fix.key.split(".")), fix):
            touched.add(fix.key)
            done.append(fix)
    return tomlkit.dumps(document), done


def _table_of(key: str) -> set[str]:
    """The keys whose change would clash with this one: its parents."""
    parts = key.split(".")
    return {".".join(parts[:count]) for count in range(3, len(parts))}


def _apply(document: Any, path: tuple[str, ...], fix: Fix) -> bool:
    holder: Any = document
    for part in path[:-1]:
        name = _name(holder, part)
        if name is None:
            if fix.action != "set":
                return False
            holder[part] = tomlkit.table()
            name = part
        holder = holder[name]
        if not isinstance(holder, Table | InlineTable | Container | dict):
            return False
    name = _name(holder, path[-1])
    if fix.action == "set":
        old = holder.get(name) if name else None
        new = tomlkit.item(_inline(fix.value))
        if old is not None and hasattr(old, "trivia") and not isinstance(old, Array):
            new.trivia.comment_ws, new.trivia.comment = old.trivia.comment_ws, old.trivia.comment
        holder[name or path[-1]] = new
        return True
    if name is None:
        return False
    value = holder[name]
    if fix.action == "rename":
        holder[fix.to] = value
    del holder[name]
    return True


def _name(holder: Any, part: str) -> str | None:
    """A key as it is spelled there, with hyphens or underscores."""
    for name in (part, part.replace("-", "_"), part.replace("_", "-")):
        if name in holder:
            return name
    return None


def _inline(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    table = tomlkit.inline_table()
    table.update(value)
    return table
