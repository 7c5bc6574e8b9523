"""Texts that match a regular expression or a grammar: the simplest ones."""

from __future__ import annotations

import re
from re import _constants as kinds  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

_CATEGORIES = {"CATEGORY_DIGIT": "7", "CATEGORY_WORD": "a", "CATEGORY_SPACE": " "}
_PREFERRED = "aA7 bcdefghijklmnopqrstuvwxyzBCDEFGHIJKLMNOPQRSTUVWXYZ0123456895_-.,:;!?@#/()"
_RULE = re.compile(r"^\s*([\w-]+)\s*(?:::=|:)\s*(.*(?:\n(?!\s*[\w-]+\s*(?:::=|:)).*)*)", re.MULTILINE)
_PART = re.compile(
    r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|/(?:[^/\\]|\\.)+/|\[(?:[^\]\\]|\\.)*\]|[\w-]+|[()|*+?]|\{\d+(?:,\d*)?\}"
)


def example_of(pattern: str) -> str:
    """A text that the pattern matches in full."""
    return _sequence(parser.parse(pattern), {})


def _sequence(items: Any, groups: dict[int, str]) -> str:
    return "".join(_item(kind, value, groups) for kind, value in items)


def _item(kind: Any, value: Any, groups: dict[int, str]) -> str:  # noqa: C901, PLR0911 - one return per kind
    if kind is kinds.LITERAL:
        return chr(value)
    if kind is kinds.NOT_LITERAL:
        return next(char for char in _PREFERRED if ord(char) != value)
    if kind is kinds.ANY:
        return "a"
    if kind is kinds.IN:
        return _member(value)
    if kind is kinds.BRANCH:
        return _sequence(value[1][0], groups)
    if kind is kinds.SUBPATTERN:
        text = _sequence(value[3], groups)
        if value[0] is not None:
            groups[value[0]] = text
        return text
    if kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT):
        low, high, inner = value
        count = low if low or high == 0 else min(high, 1)
        return "".join(_sequence(inner, groups) for _ in range(count))
    if kind is kinds.GROUPREF:
        return groups.get(value, "")
    if kind is kinds.ATOMIC_GROUP:
        return _sequence(value, groups)
    return ""


def _member(options: list[Any]) -> str:
    if options[0][0] is kinds.NEGATE:
        return next(
            (char for char in _PREFERRED if not any(_fits(char, option) for option in options[1:])), "~"
        )
    kind, value = options[0]
    if kind is kinds.RANGE:
        return chr(value[0])
    if kind is kinds.CATEGORY:
        name = str(value)
        return _CATEGORIES.get(name) or ("a" if "NOT_DIGIT" in name or "NOT_SPACE" in name else "!")
    return chr(value)


def _fits(char: str, option: Any) -> bool:
    kind, value = option
    if kind is kinds.LITERAL:
        return bool(ord(char) == value)
    if kind is kinds.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    name = str(value)
    shown = {"DIGIT": char.isdigit(), "WORD": char.isalnum() or char == "_", "SPACE": char.isspace()}
    hit = shown.get(name.rsplit("_", 1)[-1], False)
    return bool(hit != ("_NOT_" in name))


def example_of_grammar(grammar: str) -> str:
    """A text that an EBNF or Lark grammar derives: first alternatives, fewest repetitions."""
    rules = dict(_RULE.findall(grammar))
    start = "root" if "root" in rules else "start" if "start" in rules else next(iter(rules), "")
    return _Derivation(rules).rule(start, 0)


class _Derivation:
    def __init__(self, rules: dict[str, str]) -> None:
        self.rules = {
            name: _PART.findall(body.split("//")[0] if body.lstrip().startswith("//") else body)
            for name, body in rules.items()
        }

    def rule(self, name: str, depth: int) -> str:
        """The text of a rule."""
        if depth > 40 or name not in self.rules:
            return ""
        return self._alternatives(list(self.rules[name]), depth)

    def _alternatives(self, parts: list[str], depth: int) -> str:
        options: list[list[str]] = [[]]
        level = 0
        for part in parts:
            level += (part == "(") - (part == ")")
            if part == "|" and level == 0:
                options.append([])
            else:
                options[-1].append(part)
        if depth > 20:
            options.sort(key=len)
        return self._concatenation(options[0], depth)

    def _concatenation(self, parts: list[str], depth: int) -> str:
        text, at = "", 0
        while at < len(parts):
            part, end = parts[at], at + 1
            if part == "(":
                level = 1
                while level and end < len(parts):
                    level += (parts[end] == "(") - (parts[end] == ")")
                    end += 1
                one = self._alternatives(parts[at + 1 : end - 1], depth + 1)
            else:
                one = self._atom(part, depth)
            repeat = parts[end] if end < len(parts) else ""
            if repeat in ("*", "?"):
                one, end = "", end + 1
            elif repeat == "+":
                end += 1
            elif repeat.startswith("{"):
                one, end = one * int(re.findall(r"\d+", repeat)[0]), end + 1
            text += one
            at = end
        return text

    def _atom(self, part: str, depth: int) -> str:
        if part[0] in "\"'":
            return part[1:-1].encode().decode("unicode_escape")
        if part[0] == "/":
            return example_of(part[1:-1])
        return example_of(part) if part[0] == "[" else self.rule(part, depth + 1)
