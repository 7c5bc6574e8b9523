"""An account of what a text consists of: every piece is used, noted, or listed as left over.

Readers enter the pieces before they read anything, and take each one as they come to it. What nobody took
is in `left()` and becomes a note, so that a key or a word that no reader knows cannot vanish.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from pytest_vllm.profile.importers.draft import Draft


@dataclass(frozen=True)
class Piece:
    """A part of a text that has to be accounted for.

    Args:
        key: what identifies it in its text.
        line: where it begins.
        shown: how a note names it.
    """

    key: Hashable
    line: int
    shown: str


class Ledger:
    """The pieces of one text, and which of them were taken."""

    def __init__(self, pieces: Iterable[Piece] = ()) -> None:
        """Enter the pieces."""
        self._pieces: dict[Hashable, Piece] = {}
        self._taken: set[Hashable] = set()
        self._idle: dict[tuple[int, str], None] = {}
        for piece in pieces:
            self.enter(piece)

    def enter(self, piece: Piece) -> None:
        """Add a piece that has to be accounted for."""
        self._pieces[piece.key] = piece

    def take(self, key: Hashable) -> None:
        """Account for a piece: it reached the profile, or a note of its own names it."""
        self._taken.add(key)

    def idle(self, line: int, shown: str) -> None:
        """Name something that has no effect on the server; all of them share one note."""
        self._idle[line, shown] = None

    def left(self) -> Iterator[Piece]:
        """The pieces that nobody took, in the order of the text."""
        yield from (piece for key, piece in self._pieces.items() if key not in self._taken)

    def close(self, draft: Draft) -> None:
        """Note what was not taken, and in one note what has no effect on the server."""
        for piece in self.left():
            draft.lost(piece.line, piece.shown)
        if self._idle:
            places: dict[str, list[int]] = {}
            for line, shown in sorted(self._idle):
                places.setdefault(shown, []).append(line)
            told = [f"{shown} ({_lines(lines)})" for shown, lines in places.items()]
            draft.note(min(line for line, _ in self._idle), f"no effect on the server: {', '.join(told)}")


def _lines(lines: list[int]) -> str:
    if len(lines) > 3:
        return f"lines {lines[0]} to {lines[-1]}"
    return ("line " if len(lines) == 1 else "lines ") + ", ".join(map(str, lines))
