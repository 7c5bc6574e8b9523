"""Expressions of just: what `{{ … }}` in a recipe becomes, for a shell that reads it next."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.marks import unrun

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm.profile.importers.origin import Origin

_TOKEN = re.compile(
    r"\s*(?:(?P<text>x?(?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|\"(?:\\.|[^\"\\])*\"|'[^']*'))"
    r"|(?P<command>```[\s\S]*?```|`[^`]*`)|(?P<name>[A-Za-z_][\w-]*)|(?P<sign>==|!=|=~|&&|\|\||[-+/(){},?:!]))"
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "\n": ""}
_DEEPEST = 20
#: Functions that say where the justfile lies.
_PLACES = ("justfile_directory", "invocation_directory", "source_directory", "justfile_dir", "invocation_dir")


class Values:
    """The variables of a justfile."""

    def __init__(self, origin: Origin) -> None:
        """Begin with nothing."""
        self.origin = origin
        self.given: dict[str, str] = {}

    def filled(self, text: str, own: Mapping[str, str]) -> str:
        """A line of a recipe with its expressions worked out; `own` are the parameters of the recipe."""
        found = re.sub(r"\{\{(?!\{)(.*?)\}\}", lambda one: self.value(one[1], own), text)
        return found.replace("{{{{", "{{")

    def value(self, written: str, own: Mapping[str, str] | None = None, deep: int = 0) -> str:
        """What an expression comes to, as a shell reads it; what only just would know is marked."""
        tokens = [(one.lastgroup or "", one[one.lastgroup or 0]) for one in _TOKEN.finditer(written)]
        left = _TOKEN.sub("", written).strip()
        reader = _Reader(self, tokens, own or {}, deep)
        found = reader.sum() if tokens and not left and deep < _DEEPEST else None
        return _mark(written) if found is None or reader.tokens else found


class _Reader:
    """One expression, from its first sign to its last."""

    def __init__(
        self, values: Values, tokens: list[tuple[str, str]], own: Mapping[str, str], deep: int
    ) -> None:
        self.values, self.tokens, self.own, self.deep = values, tokens, own, deep

    def sum(self) -> str | None:
        """`a + b`, `a / b`."""
        found = self._one()
        while found is not None and self._next("+", "/"):
            sign = self.tokens.pop(0)[1]
            more = self._one()
            between = "/" if sign == "/" and not found.endswith("/") else ""
            found = None if more is None else f"{found}{between}{more}"
        return found

    def _next(self, *signs: str) -> bool:
        return bool(self.tokens) and self.tokens[0][0] == "sign" and self.tokens[0][1] in signs

    def _one(self) -> str | None:
        kind, text = self.tokens.pop(0) if self.tokens else ("", "")
        found: str | None = None
        if kind == "text":
            found = _plain(text)
        elif kind == "command":
            found = f"$({text.strip('`').strip()})"
        elif (kind, text) == ("sign", "("):
            inner = self.sum()
            found = inner if self._takes(")") else None
        elif (kind, text) == ("name", "if"):
            found = self._branch()
        elif kind == "name":
            found = self._call(text) if self._next("(") else self._name(text)
        return found

    def _takes(self, sign: str) -> bool:
        taken = self._next(sign)
        if taken:
            self.tokens.pop(0)
        return taken

    def _name(self, name: str) -> str | None:
        if name in self.own:
            return self.own[name]
        if name in self.values.given:
            return self.values.value(self.values.given[name], {}, self.deep + 1)
        return None

    def _call(self, name: str) -> str | None:
        self.tokens.pop(0)
        given: list[str] = []
        while not self._takes(")"):
            one = self.sum()
            if one is None or not (self._takes(",") or self._next(")")):
                return None
            given.append(one)
        if name in ("env", "env_var", "env_var_or_default") and given and name != "env_var_or_default":
            return f"${{{given[0]}-{given[1]}}}" if len(given) > 1 else f"${{{given[0]}}}"
        if name == "env_var_or_default" and len(given) > 1:
            return f"${{{given[0]}-{given[1]}}}"
        if name in ("quote", "trim") and len(given) == 1:
            return given[0].strip() if name == "trim" else "'" + given[0].replace("'", "'\\''") + "'"
        return str(self.values.origin.folder) if name in _PLACES else None

    def _branch(self) -> str | None:
        """`if a == b { c } else { d }`, where both sides are known."""
        one = self.sum()
        sign = self.tokens.pop(0)[1] if self._next("==", "!=") else ""
        two = self.sum() if sign else None
        arms: list[str | None] = []
        while self._takes("{"):
            arms.append(self.sum())
            if not self._takes("}"):
                return None
            if self.tokens[:1] == [("name", "else")]:
                self.tokens.pop(0)
                if self.tokens[:1] == [("name", "if")]:
                    self.tokens.pop(0)
                    arms.append(self._branch())
                    break
        if one is None or two is None or len(arms) != 2 or "$" in one + two:
            return None
        return arms[0] if (one == two) == (sign == "==") else arms[1]


def _plain(text: str) -> str:
    """A text without its quotes."""
    text = text.removeprefix("x")
    for quote in ('"""', "'''", '"', "'"):
        if text.startswith(quote):
            inner = text[len(quote) : -len(quote)]
            if len(quote) > 1:
                inner = inner.removeprefix("\n")
            return (
                re.sub(r"\\([\s\S])", lambda one: _ESCAPES.get(one[1], one[0]), inner)
                if '"' in quote
                else inner
            )
    return text


def _mark(written: str) -> str:
    return unrun("{{" + re.sub(r"[^\w.-]+", "_", written.strip()) + "}}")
