"""Reading text that comes in pieces: markers that may be cut, JSON values that are not finished."""

from __future__ import annotations


def held_back(text: str, markers: tuple[str, ...]) -> int:
    """How many characters at the end of `text` may be the beginning of a marker."""
    longest = 0
    for marker in markers:
        for size in range(min(len(marker) - 1, len(text)), longest, -1):
            if text.endswith(marker[:size]):
                longest = size
                break
    return longest


class JsonValue:
    """Follows a JSON value character by character; `take` returns what belongs to it."""

    def __init__(self) -> None:
        """Before the value."""
        self.depth = 0
        self.text = False
        self.escaped = False
        self.begun = False
        self.ended = False

    def take(self, piece: str) -> tuple[str, str]:
        """(the part of `piece` that belongs to the value, the rest after its end)."""
        for at, char in enumerate(piece):
            if self.text:
                self._inside_text(char)
            elif char == '"':
                self.text = self.begun = True
            elif char in "{[":
                self.depth += 1
                self.begun = True
            elif char in "}]":
                if self.depth == 0:
                    self.ended = True
                    return piece[:at], piece[at:]
                self.depth -= 1
            elif self.depth == 0 and self.begun and char in ", \n\r\t":
                self.ended = True
                return piece[:at], piece[at:]
            elif not char.isspace():
                self.begun = True
            if self.begun and self.depth == 0 and not self.text and char in '}]"':
                self.ended = True
                return piece[: at + 1], piece[at + 1 :]
        return piece, ""

    def _inside_text(self, char: str) -> None:
        if self.escaped:
            self.escaped = False
        elif char == "\\":
            self.escaped = True
        elif char == '"':
            self.text = False
