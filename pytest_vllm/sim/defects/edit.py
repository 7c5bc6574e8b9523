"""Changing parts of JSON answers in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.sim.api.events import Event


def change(node: Any, path: str, value: Any, missing: Any = None) -> None:
    """Set, drop (`value` is `missing`) or compute (`value` is a function) what a dotted path names.

    `*` is every member of a list. Parts that are not there are left alone.
    """
    step, _, rest = path.partition(".")
    keys = _keys(node, step)
    for key in keys:
        if rest:
            change(node[key], rest, value, missing)
        elif value is missing:
            del node[key]
        else:
            node[key] = value(node[key]) if callable(value) else value


def _keys(node: Any, step: str) -> list[Any]:
    if isinstance(node, list):
        return (
            list(range(len(node)))
            if step == "*"
            else [int(step)]
            if step.isdigit() and int(step) < len(node)
            else []
        )
    if isinstance(node, dict):
        return [key for key in node if step in ("*", key)]
    return []


def choices(events: list[Event]) -> Iterator[tuple[Event, dict[str, Any]]]:
    """(event, choice) for every choice in chat or completion events."""
    for event in events:
        if isinstance(event.data, dict):
            for choice in event.data.get("choices") or ():
                yield event, choice


def content(events: list[Event]) -> Iterator[tuple[Event, dict[str, Any]]]:
    """(event, choice) for choices that carry text, in a chat delta or a completion."""
    for event, choice in choices(events):
        if choice.get("text") or choice.get("delta", {}).get("content"):
            yield event, choice


def set_text(choice: dict[str, Any], text: str) -> None:
    """Replace the text of a chat or completion choice, whole or streamed."""
    for holder, key in (
        (choice.get("delta"), "content"),
        (choice.get("message"), "content"),
        (choice, "text"),
    ):
        if isinstance(holder, dict) and key in holder:
            holder[key] = text
            return


def text_of(choice: dict[str, Any]) -> str:
    """The text of a chat or completion choice, whole or streamed."""
    for holder, key in (
        (choice.get("delta"), "content"),
        (choice.get("message"), "content"),
        (choice, "text"),
    ):
        if isinstance(holder, dict) and key in holder:
            return holder[key] or ""
    return ""
