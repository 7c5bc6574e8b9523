"""Places in a JSON value: `choices[0].message` names one, `choices[].message` names all of a kind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def concrete(steps: Iterable[str | int]) -> str:
    """`["choices", 0, "index"]` -> `choices[0].index`."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return path.removeprefix(".")


def pattern(path: str) -> str:
    """`choices[0].index` -> `choices[].index`."""
    return re.sub(r"\[\d+\]", "[]", path)


def nodes(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Every value at the places that a pattern names, with its own path; the value itself for ""."""
    yield from _walk(value, re.findall(r"\[\]|[^.\[\]]+", place), "")


def parent(value: Any, path: str) -> Any:
    """The object that holds the last name of a concrete path; None when there is none."""
    found = value
    for step in re.findall(r"\[\d+\]|[^.\[\]]+", path)[:-1]:
        found = _step(found, step)
    return found


def at(value: Any, path: str) -> Any:
    """The value at a concrete path; None when there is none."""
    found = value
    for step in re.findall(r"\[\d+\]|[^.\[\]]+", path):
        found = _step(found, step)
    return found


def _step(value: Any, step: str) -> Any:
    if step.startswith("["):
        index = int(step[1:-1])
        return value[index] if isinstance(value, list) and index < len(value) else None
    return value.get(step) if isinstance(value, dict) else None


def _walk(value: Any, steps: list[str], path: str) -> Iterator[tuple[str, Any]]:
    if not steps:
        yield path, value
    elif steps[0] == "[]":
        for index, item in enumerate(value if isinstance(value, list) else []):
            yield from _walk(item, steps[1:], f"{path}[{index}]")
    elif isinstance(value, dict) and steps[0] in value:
        yield from _walk(value[steps[0]], steps[1:], f"{path}.{steps[0]}".lstrip("."))
