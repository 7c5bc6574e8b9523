"""The templates of a grammar, and the few ways in which models write values.

Templates are those of `string.Template`.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from dataclasses import dataclass, fields
from string import Template
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

#: How values are written. json: as JSON. text: texts as they are, all else as JSON. cdata: the same, in
#: CDATA where XML needs it. python: as literals of Python. literal: texts as literals of Python, all else as
#: JSON. marked: as JSON without quotes around keys, texts between marks of their own. elements: as XML, lists
#: as a row of items.
VALUES = ("json", "text", "cdata", "python", "literal", "marked", "elements")
_TYPES = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}


@dataclass(frozen=True)
class Markup:
    """Templates.

    Args:
        glue: between text and calls.
        content: around the text before calls, `$content`; `after`: the same for what comes after them.
        always: whether that stands before calls even without a text.
        around: around all calls together, `$calls`.
        between: between two calls.
        call: a call: `$name`, `$arguments`, `$number` from `first` on.
        bare: a call without arguments; empty: as any other.
        argument: an argument: `$key`, `$value`, `$type` and `$text` (true for a text); empty: all arguments
            are one JSON object.
        separator: between two arguments.
        values: one of VALUES.
        mark: what stands before and after a text of `marked` values.
        first: the number of the first call.
        thought: reasoning and what follows: `$thinking`, `$content`.
        silent: an answer without reasoning: `$content`.
    """

    glue: str = "\n"
    content: str = "$content"
    after: str = "$content"
    always: bool = False
    around: str = "$calls"
    between: str = ""
    call: str = ""
    bare: str = ""
    argument: str = ""
    separator: str = ""
    values: str = "json"
    mark: str = '"'
    first: int = 0
    thought: str = "$thinking$content"
    silent: str = "$content"

    def calls(self, given: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
        """Calls as the model writes them, from names and arguments; empty without calls."""
        if not given:
            return ""
        written = [
            Template(self.call if arguments or not self.bare else self.bare).substitute(
                name=name, number=number, arguments=self._arguments(arguments)
            )
            for number, (name, arguments) in enumerate(given, self.first)
        ]
        return Template(self.around).substitute(calls=self.between.join(written))

    def _arguments(self, arguments: Mapping[str, Any]) -> str:
        if not self.argument:
            return as_json(arguments)
        return self.separator.join(self._argument(key, value) for key, value in arguments.items())

    def _argument(self, key: str, value: Any) -> str:
        text = "true" if isinstance(value, str) else "false"
        kind = "null" if value is None else _TYPES[type(value)]
        return Template(self.argument).substitute(key=key, value=self._value(value), type=kind, text=text)

    def _value(self, value: Any) -> str:
        if self.values == "python" or (self.values == "literal" and isinstance(value, str)):
            return repr(value)
        if self.values == "marked":
            return self._marked(value)
        if self.values == "elements" and isinstance(value, dict):
            return "".join(self._argument(key, one) for key, one in value.items())
        if self.values == "elements" and isinstance(value, list):
            return "".join(self._argument("item", one) for one in value)
        if self.values == "cdata" and isinstance(value, str) and set(value) & set("<&"):
            return f"<![CDATA[{value}]]>"
        return value if self.values != "json" and isinstance(value, str) else as_json(value)

    def _marked(self, value: Any) -> str:
        if isinstance(value, str):
            return f"{self.mark}{value}{self.mark}"
        if isinstance(value, dict):
            return "{" + ",".join(f"{key}:{self._marked(one)}" for key, one in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ",".join(map(self._marked, value)) + "]"
        return as_json(value)


def as_json(value: Any) -> str:
    """A value as models write it: characters as they are, a blank after commas and colons."""
    return json.dumps(value, ensure_ascii=False)


_WRITTEN = tuple(one.name for one in fields(Markup))
_KEYS: dict[str, tuple[str, ...]] = {
    "": ("family", "sources", "markers", "special", "kwargs", "beside", "promises", "write", "cannot"),
    "write": _WRITTEN,
    "cannot": ("reason",),
    "promises": ("before", "after", "parallel", "bare", "types", "finish", "strips"),
}


def read(path: Path, kind: str) -> dict[str, Any]:
    """A grammar's file, its keys known to be right. Raises ValueError that names file and nearest key."""
    data = tomllib.loads(path.read_text("utf-8"))
    _known(path, "", data)
    for table in ("write", "cannot", "promises"):
        _known(path, table, data.get(table, {}))
    missing = [key for key in ("family", "sources") if not data.get(key)]
    if missing:
        raise ValueError(f"{path.name}: {' and '.join(missing)} not given: who writes so, and who says it")
    if (
        "cannot" not in data
        and "call" not in data.get("write", {})
        and "thought" not in data.get("write", {})
    ):
        wanted = "call" if kind == "tool" else "thought"
        raise ValueError(f"{path.name}: neither [write] {wanted} nor [cannot] reason is given")
    return data


def markup_of(written: Mapping[str, Any]) -> Markup:
    """The templates of a `[write]` table. Raises ValueError for values of a kind that nobody knows."""
    markup = Markup(**written)
    if markup.values not in VALUES:
        near = _near(markup.values, VALUES)
        raise ValueError(f"values = {markup.values!r} is none of {', '.join(VALUES)}{near}")
    return markup


def _known(path: Path, table: str, data: Mapping[str, Any]) -> None:
    for key in data:
        if key not in _KEYS[table]:
            where = f"[{table}] " if table else ""
            raise ValueError(f"{path.name}: nobody knows the key {where}{key}{_near(key, _KEYS[table])}")


def _near(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
