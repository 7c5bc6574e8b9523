"""Variables in what is imported: `$NAME`, `${NAME:-default}`, `$(NAME)`; secrets are named, never read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.marks import (
    DOLLAR,
    secret_mark,
)
from pytest_vllm.profile.secrets import secret_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_vllm.profile.importers.origin import Origin

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_SHELL = re.compile(
    rf"\$(?:(?P<bare>{_NAME})|\{{(?P<name>{_NAME})(?P<op>:?[-?+])?(?P<word>(?:[^{{}}]|\{{[^{{}}]*\}})*)\}})"
)
_KUBERNETES = re.compile(rf"\$\((?P<bare>{_NAME})\)(?P<name>)(?P<op>)(?P<word>)")
_CALL = re.compile(r"\$\([^)]*\)|`[^`]*`")


@dataclass
class Variables:
    """What the names of a text stand for.

    Args:
        origin: what messages name.
        note: told of a value that was taken from outside: (line, words).
        values: set by the text itself, before the environment.
        outer: the environment; empty where the text's own program does not see it.
        kind: `shell`, `compose` ($$ is a dollar), `kubernetes` ($(NAME)), `unit` (a
            systemd unit, where no command is run) or `plain` (nothing is a name).
        lenient: an unset name is empty, with a note, rather than an error.
    """

    origin: Origin
    note: Callable[[int, str], None]
    values: dict[str, str] = field(default_factory=dict)
    outer: Mapping[str, str] = field(default_factory=dict)
    kind: str = "shell"
    lenient: bool = False

    def text(self, written: str, line: int, *, secret: bool = False, lenient: bool = False) -> str:
        """The text with its names replaced; a secret's name is kept between SECRET marks.

        Args:
            written: as it stands.
            line: where it stands.
            secret: whether the whole is one, so that a name in it is one as well.
            lenient: an unset name is empty here.
        """
        if self.kind == "plain":
            return written
        escape = {"compose": "$$", "kubernetes": "$$("}.get(self.kind)
        if escape:
            written = written.replace(escape, DOLLAR + escape[2:])
        if self.kind == "shell":
            written = self._calls(written, line)
        pattern = _KUBERNETES if self.kind == "kubernetes" else _SHELL
        lenient = lenient or self.lenient
        resolved = pattern.sub(lambda found: self._value(found, line, secret, lenient), written)
        return resolved.replace(DOLLAR, "$")

    def _value(self, found: re.Match[str], line: int, secret: bool, lenient: bool) -> str:
        name, operator, word = found["bare"] or found["name"], found["op"] or "", found["word"] or ""
        known = self.values.get(name, self.outer.get(name))
        if operator.endswith("+"):
            return self.text(word, line) if known else ""
        if secret or secret_name(name):
            return secret_mark(name, optional=operator.endswith("-") and not word and not known)
        empty = known is None or (operator.startswith(":") and not known)
        if not empty:
            if name in self.outer and name not in self.values:
                self.note(line, f"{found[0]} is taken from the environment: {known!r}")
            return known or ""
        if operator.endswith("-"):
            return self.text(word, line)
        if operator.endswith("?"):
            what = f"{name} has to be set: {word or 'it is required'}"
            raise self.origin.problem(line, what, _export(name))
        if self.kind == "kubernetes":
            return found[0]
        if not lenient:
            raise self.origin.problem(line, f"{found[0]} is not set", _export(name))
        self.note(line, f"{found[0]} is not set: it is left empty")
        return ""

    def _calls(self, written: str, line: int) -> str:
        def called(found: re.Match[str]) -> str:
            if found[0].strip("$()` ") == "pwd":
                return str(self.origin.folder)
            self.note(line, f"{found[0]} is run by the shell, not by an importer; it stays as it is")
            return found[0].replace("$", DOLLAR)

        return _CALL.sub(called, written)


def _export(name: str) -> str:
    return f"export {name}=… where pytest runs"
