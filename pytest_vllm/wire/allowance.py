"""How many bytes answers may have: each, those that arrive together, and all that a client keeps."""

from __future__ import annotations

MIB = 1024 * 1024
#: Bytes of one answer, and of all that are open or kept. All answers of a gate together have about 7 MiB.
EACH, WHOLE = 8 * MIB, 48 * MIB
#: Bytes that every answer may have, whatever the others had.
LEAST = 64 * 1024
#: Answers that are cut off, after which nothing is asked any more that might be answered at such length.
CUTS = 8


class Allowance:
    """The bytes of one client's answers, those included that were read and thrown away.

    A server that answers every request at length would fill memory and disk long before any time is up.
    """

    def __init__(self, each: int = EACH, whole: int = WHOLE, least: int = LEAST) -> None:
        """Nothing is used yet."""
        self.each, self.whole, self.least = each, whole, least
        self.used = self.cuts = 0

    @property
    def spent(self) -> str:
        """Why no further answer is wanted; empty while one is."""
        return f"{self.cuts} answers of this server were too long to be read" if self.cuts >= CUTS else ""

    def take(self, size: int, more: int) -> str:
        """Let an answer that has `size` bytes by now grow by `more`; empty, or why not."""
        self.used += more
        why = self._excess(size)
        self.cuts += bool(why)
        return why

    def _excess(self, size: int) -> str:
        if size > self.each:
            return f"the body is longer than {self.each // MIB} MiB and was cut there"
        if size > self.least and self.used > self.whole:
            told = f"the answers of this server have more than {self.whole // MIB} MiB"
            return f"{told}: this one was cut after {size // 1024} KiB"
        return ""

    def give_back(self, size: int) -> None:
        """So many bytes are held no longer."""
        self.used -= size
