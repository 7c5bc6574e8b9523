"""What a script of Windows says, said as a POSIX shell says it, each command at its own line."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

#: A program that may start a server, as Windows names it.
PROGRAM = r"(?:\S*[\\/])?(?:docker|podman|nerdctl|vllm|python[\d.]*|uv|uvx|wsl)(?:\.exe)?"
_WSL = re.compile(
    r"wsl(?:\.exe)?\s+(?:(?:-d|--distribution|-u|--user|--cd)\s+\S+\s+)*(?:(?:-e|--exec|--)\s+)?",
    re.IGNORECASE,
)
#: A word in pieces: a text, or a name whose value is not known with what has to be said of it.
Piece = str | tuple[str, str]
Word = list[Piece]


@dataclass
class Lines:
    """A script as it is said again.

    Args:
        said: line -> commands of a POSIX shell that stand for it.
        left: line and text of what has no place there.
        notes: line and text of what has to be said of it.
        idle: line and text of what has no effect on a server.
    """

    said: dict[int, list[str]] = field(default_factory=dict)
    left: list[tuple[int, str]] = field(default_factory=list)
    notes: list[tuple[int, str]] = field(default_factory=list)
    idle: list[tuple[int, str]] = field(default_factory=list)

    def add(self, line: int, text: str) -> None:
        """A command at a line."""
        self.said.setdefault(line, []).append(text)

    @property
    def text(self) -> str:
        """The script, each command at its own line."""
        last = max(self.said, default=0)
        return "\n".join("; ".join(self.said.get(at, [])) for at in range(1, last + 1)) + "\n"


def posix(word: Word) -> str:
    """A word as a POSIX shell reads it."""
    if not word:
        return "''"
    return (
        "".join(
            shlex.quote(one) if isinstance(one, str) else f'"${{{one[0]}:?{one[1]}}}"' for one in word if one
        )
        or "''"
    )


def starts(text: str) -> bool:
    """Whether a text may start a server."""
    served = r"\bvllm\b.*\bserve\b|api_server|\b(?:docker|podman)\b.* (?:run|create)\b"
    return re.search(served, text) is not None


def parted_at(text: str, signs: str, quotes: str) -> list[str]:
    """A line in the parts that signs divide it into, those between quotes or brackets left out.

    Args:
        text: the line.
        signs: an expression.
        quotes: the signs that quote.
    """
    found, depth, quote, at, start = [], 0, "", 0, 0
    while at < len(text):
        sign = text[at]
        if quote or sign in quotes:
            quote = ("" if sign == quote else quote) if quote else sign
        else:
            depth += (sign in "([{") - (sign in ")]}")
            if depth <= 0 and (here := re.compile(signs).match(text, at)):
                found.append(text[start:at])
                start = at = here.end()
                continue
        at += 1
    return [one for one in (*found, text[start:]) if one.strip()]


#: What is said of a command for WSL.
IN_WSL = "it runs in WSL: here it is what Linux gets, whose paths and loopback are WSL's own"


def within_wsl(text: str) -> str:
    """A command as Linux gets it: without the `wsl` before it."""
    return _WSL.sub("", text, count=1)


def unredirected(text: str, ending: str) -> str:
    """A command without what it is piped into or written to at its end, outside of quotes."""
    for found in re.finditer(rf"(?:{ending})+\s*$", text):
        if text[: found.start()].count('"') % 2 == 0 and text[: found.start()].count("'") % 2 == 0:
            return text[: found.start()]
    return text


def short(text: str) -> str:
    """A text as messages show it."""
    plain = " ".join(text.split())
    return plain if len(plain) <= 60 else f"{plain[:60]}…"
