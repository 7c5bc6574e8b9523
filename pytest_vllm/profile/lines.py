"""Where in a TOML text each key stands. The parser of the standard library does not tell.

Only for texts that the parser accepts; it follows quotes, comments, brackets and headers and understands
nothing else.
"""

from __future__ import annotations

import re

Path = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SPACE = re.compile(r"[ \t]*")
_FILLER = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_PLAIN = re.compile(r"[^,\]\}\n#]*")


def lines(text: str) -> dict[Path, int]:
    """Every key's path and line; entries of lists count from 0."""
    return _Scanner(text).run()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.found: dict[Path, int] = {}
        self.lists: dict[Path, int] = {}

    def run(self) -> dict[Path, int]:
        table: Path = ()
        while self._skip(_FILLER) < len(self.text):
            if self._peek("[["):
                table = self._header(2)
                self.lists[table] = self.lists.get(table, -1) + 1
                table = (*table, self.lists[table])
                self.found[table] = self._line()
            elif self._peek("["):
                table = self._header(1)
                self.found.setdefault(table, self._line())
            else:
                self._pair(table)
        return self.found

    def _header(self, brackets: int) -> Path:
        self.at += brackets
        path: Path = ()
        for name in self._key():
            if path in self.lists:
                path = (*path, self.lists[path])
            path = (*path, name)
        self.at += brackets
        return path

    def _pair(self, table: Path) -> None:
        start = self._line()
        path = table
        for name in self._key():
            path = (*path, name)
            self.found.setdefault(path, start)
        self._skip(_SPACE)
        self.at += 1
        self._value(path)

    def _key(self) -> list[str]:
        names = []
        while True:
            self._skip(_SPACE)
            names.append(self._name())
            self._skip(_SPACE)
            if not self._peek("."):
                return names
            self.at += 1

    def _name(self) -> str:
        if self._peek('"') or self._peek("'"):
            start = self.at
            self._string()
            return self.text[start + 1 : self.at - 1]
        start = self.at
        return self.text[start : self._skip(_BARE)]

    def _value(self, path: Path) -> None:
        self._skip(_SPACE)
        if self._peek('"') or self._peek("'"):
            self._string()
        elif self._peek("["):
            self._list(path)
        elif self._peek("{"):
            self._inline(path)
        else:
            self._skip(_PLAIN)

    def _list(self, path: Path) -> None:
        self.at += 1
        index = 0
        self._skip(_FILLER)
        while not self._peek("]"):
            self.found[(*path, index)] = self._line()
            self._value((*path, index))
            index += 1
            self._comma()
        self.at += 1

    def _inline(self, path: Path) -> None:
        self.at += 1
        self._skip(_FILLER)
        while not self._peek("}"):
            self._pair(path)
            self._comma()
        self.at += 1

    def _comma(self) -> None:
        self._skip(_FILLER)
        if self._peek(","):
            self.at += 1
            self._skip(_FILLER)

    def _string(self) -> None:
        quote = self.text[self.at]
        fence = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self.at += len(fence)
        while not self.text.startswith(fence, self.at):
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += len(fence)
        while len(fence) == 3 and self._peek(quote):
            self.at += 1

    def _peek(self, token: str) -> bool:
        return self.text.startswith(token, self.at)

    def _skip(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.at

    def _line(self) -> int:
        return self.text.count("\n", 0, self.at) + 1
