"""Simple ways to break one field of a JSON value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _is(*kinds: type) -> Callable[[Any], bool]:
    def fits(value: Any) -> bool:
        return isinstance(value, kinds) and (bool not in kinds) == (not isinstance(value, bool))

    return fits


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) > 1


def _several(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1


def _filled(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


#: Name -> the values that it applies to.
ALTERATIONS: dict[str, Callable[[Any], bool]] = {
    "dropped": lambda _: True,
    "null": lambda value: value is not None,
    "retyped": lambda value: value is not None,
    "emptied": lambda value: isinstance(value, str | list | dict) and bool(value),
    "off-by-one": _is(int, float),
    "negative": _is(int, float),
    "flipped": _is(bool),
    "cut": _text,
    "doubled": _text,
    "last-gone": _filled,
    "last-twice": _filled,
    "turned-round": _several,
}

_NEW: dict[str, Callable[[Any], Any]] = {
    "null": lambda _: None,
    "retyped": lambda value: (
        [value]
        if isinstance(value, dict)
        else {}
        if isinstance(value, list)
        else (str(value) if not isinstance(value, str) else 7)
    ),
    "emptied": lambda value: type(value)(),
    "off-by-one": lambda value: value + 1,
    "negative": lambda value: -1 - value,
    "flipped": lambda value: not value,
    "cut": lambda value: value[:-1],
    "doubled": lambda value: value + value,
    "last-gone": lambda value: value[:-1],
    "last-twice": lambda value: [*value, value[-1]],
    "turned-round": lambda value: value[::-1],
}


#: Maps whose keys are tokens, or a person's own names: any key is written `*`.
_BY_TOKEN = ("logprobs.top_logprobs[]", "prompt_logprobs[]", "properties")


def paths_of(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every field below a value, positions in lists left out, with what it holds."""
    if isinstance(value, dict):
        any_key = path.endswith(_BY_TOKEN)
        for key, inner in value.items():
            name = "*" if any_key else key
            here = f"{path}.{name}" if path else name
            yield here, inner
            yield from paths_of(inner, here)
    elif isinstance(value, list):
        for inner in value:
            yield from paths_of(inner, f"{path}[]")


def altered(value: Any, path: str, change: str) -> bool:
    """Break every field of that path in place; whether there was one that the change applies to."""
    touched = False
    for holder, name in _holders(value, path.replace("[]", ".[]").split(".")):
        held = holder[name]
        if not ALTERATIONS[change](held):
            continue
        touched = True
        if change == "dropped":
            del holder[name]
        else:
            holder[name] = _NEW[change](held)
    return touched


def _holders(value: Any, steps: list[str]) -> Iterator[tuple[dict[str, Any], str]]:
    step, rest = steps[0], steps[1:]
    if step == "[]":
        for inner in value if isinstance(value, list) else ():
            yield from _holders(inner, rest)
    elif isinstance(value, dict):
        for name in list(value) if step == "*" else [step] * (step in value):
            if rest:
                yield from _holders(value[name], rest)
            else:
                yield value, name
