"""Variables of make: what `$(NAME)` in a recipe becomes, for a shell that reads it next."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_vllm.profile.importers.origin import Origin

_DEEPEST = 20
_REFERENCE = re.compile(r"\$(?:\$|[({]|.|\Z)", re.DOTALL)
_CLOSES = {"(": ")", "{": "}"}
#: Makes a shell name of what only the environment or a shell knows.
_SHELL_NAME = re.compile(r"[A-Za-z_]\w*")
#: Programs whose output people take `$(…)` for in a recipe.
_COMMANDS = frozenset({"pwd", "whoami", "hostname", "nproc", "date", "uname", "id"})
_FUNCTIONS = ("if", "or", "and", "strip", "shell", "info", "warning", "notdir", "addprefix")
DRY = "give what make runs: make -n TARGET | pytest --vllm-from=-"


class Variables:
    """The variables of one Makefile. `said` is what a note has to say, by line."""

    def __init__(self, origin: Origin) -> None:
        """Begin with nothing but the environment."""
        self.origin = origin
        self.given: dict[str, str] = {}
        self.said: list[tuple[int, str]] = []

    def assign(self, name: str, how: str, text: str, at: int) -> None:
        """`NAME = text`, and `:=`, `?=`, `+=`; the environment wins over `?=` alone."""
        text = re.sub(r"\s*\\\n\s*", " ", text)
        if how == "?" and (name in self.given or name in self.origin.environ):
            return
        if how == "+":
            text = f"{self.given.get(name, '')} {text}".strip()
        elif how.startswith(":"):
            text = self._filled(text, at, "", 0, quotes=False)
        self.given[name] = text

    def known(self, text: str, at: int) -> str:
        """A text filled in, where a condition asks. Raises ImportProblem where only a shell knows it."""
        found = self._filled(text, at, "", 0, quotes=False)
        found = re.sub(r"\$\{(\w+)\}", lambda one: self.origin.environ.get(one[1], ""), found)
        if "$(" in found:
            raise self.origin.problem(at, f"a condition hangs on {found}, which only a shell knows", DRY)
        return found

    def expanded(self, text: str, at: int, target: str) -> str:
        """A line of a recipe as make hands it to the shell; `${NAME}` is what the environment has to say."""
        return self._filled(text, at, target, 0, quotes=True)

    def quoted(self, name: str, at: int) -> str:
        """The value of a variable between double quotes of a shell."""
        text = self._filled(f"$({name})", at, "", 0, quotes=False)
        return '"' + re.sub(r'(["`\\])', r"\\\1", text) + '"'

    def _filled(self, text: str, at: int, target: str, depth: int, *, quotes: bool) -> str:
        if depth > _DEEPEST:
            raise self.origin.problem(at, "a variable of make that holds itself", DRY)
        found: list[str] = []
        place, single, double = 0, False, False
        while (one := _REFERENCE.search(text, place)) is not None:
            before = text[place : one.start()]
            single, double = _quotes(before, single, double)
            found.append(before)
            sign = one[0][1:]
            place = one.end()
            if sign == "$":
                value = "$"
            elif sign in _CLOSES:
                inner, place = self._inner(text, place, sign, at)
                value = self._value(inner, at, target, depth)
            else:
                value = self._value(sign, at, target, depth)
            if quotes and single and re.match(r"\$[({]", value) and sign != "$":
                value = f"'\"{value}\"'"
            found.append(value)
        return "".join([*found, text[place:]])

    def _inner(self, text: str, place: int, opened: str, at: int) -> tuple[str, int]:
        """What stands in `$(…)`, and where it ends."""
        level = 1
        for end in range(place, len(text)):
            level += (text[end] == opened) - (text[end] == _CLOSES[opened])
            if not level:
                return text[place:end], end + 1
        raise self.origin.problem(at, f"`${opened}{text[place : place + 40]}` is not closed", DRY)

    def _value(self, inner: str, at: int, target: str, depth: int) -> str:
        """The value of a reference: a variable, a function, or what a shell has to say."""
        word, _, rest = inner.strip().partition(" ")
        if rest and word in _FUNCTIONS:
            return self._function(word, rest, at, target, depth)
        if not re.fullmatch(r"[\w.@<^?*%-]+", inner):
            plain = re.sub(r"[^\w./:*%=, -]", "", inner)
            return f"$({plain})"  # as good as a command: not worked out
        if inner in self.given:
            return self._filled(self.given[inner], at, target, depth + 1, quotes=False)
        if inner in _COMMANDS:
            what = f"$({inner}) is a variable of make, which nothing sets: it is empty"
            fix = f"write $$({inner}) for the shell, or $(CURDIR) for the folder"
            raise self.origin.problem(at, what, fix)
        folder = str(self.origin.folder)
        own = {"CURDIR": folder, "PWD": folder, "@": target, "MAKE": "make", "SHELL": "/bin/sh"}
        return own.get(inner, f"${{{inner}}}" if _SHELL_NAME.fullmatch(inner) else "")

    def _function(self, word: str, rest: str, at: int, target: str, depth: int) -> str:
        parts = [self._filled(one.strip(), at, target, depth + 1, quotes=False) for one in _arguments(rest)]
        if word == "shell":
            return f"$({','.join(parts)})"
        if word in ("if", "or", "and"):
            return self._decided(word, parts, at)
        if word == "notdir":
            return " ".join(one.rpartition("/")[2] for one in parts[0].split())
        if word == "addprefix":
            return " ".join(f"{parts[0]}{one}" for one in parts[-1].split())
        return " ".join(parts[0].split()) if word == "strip" else ""

    def _decided(self, word: str, parts: list[str], at: int) -> str:
        known = [self.known(one, at) for one in (parts[:1] if word == "if" else parts)]
        if word == "if":
            rest = [*parts[1:3], "", ""]
            return rest[0] if known[0] else rest[1]
        if word == "or":
            return next((one for one, text in zip(parts, known, strict=True) if text), "")
        return parts[-1] if all(known) else ""


def _arguments(text: str) -> list[str]:
    """The arguments of a function, at commas that no bracket holds."""
    found, level = [""], 0
    for one in text:
        level += (one in "({") - (one in ")}")
        if one == "," and not level:
            found.append("")
        else:
            found[-1] += one
    return found


def _quotes(text: str, single: bool, double: bool) -> tuple[bool, bool]:
    """Whether a shell's single or double quotes stand open behind a text."""
    escaped = False
    for one in text:
        if escaped:
            escaped = False
        elif one == "\\" and not single:
            escaped = True
        elif one == "'" and not double:
            single = not single
        elif one == '"' and not single:
            double = not double
    return single, double
