"""A shell's words with their lines, as people paste them: continued lines with comments, prompts, fences.

`shlex` tells neither where a word stood nor which `$` was quoted, and it loses the rest of a command after
the comments that guides put behind backslashes; hence a reader of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.variables import DOLLAR
from pytest_vllm.profile.secrets import secret_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_vllm.profile.importers.origin import Origin
    from pytest_vllm.profile.importers.variables import Variables

#: A backslash that continues the line, with what guides write behind it.
_CONTINUED = re.compile(r"\\[ \t]*(?:#[^\n]*)?\n")
_COMMENT_LINE = re.compile(r"[ \t]*#[^\n]*\n")
_OPERATOR = re.compile(r"&&|\|\||[;&|]|\n")
_REDIRECTION = re.compile(r"\d*(?:>>|>&|>|<)(?:&\d|&-)?|&>>?")
_PROMPT = re.compile(r"^[ \t]*\$ ", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*```[^\n]*$", re.MULTILINE)


@dataclass(frozen=True)
class Word:
    """A word, the line that it begins on, and whether it was bare: a shell splits what that becomes."""

    text: str
    line: int
    bare: bool = False


def commands(text: str, origin: Origin, first: int = 1) -> list[list[Word]]:
    """The commands of a script, each as its words. Raises ImportProblem for a quote that is not closed.

    Args:
        text: the script; references such as `$NAME` stay, a quoted dollar becomes DOLLAR.
        origin: what messages name.
        first: the number of the text's first line.
    """
    text = _FENCE.sub("", _PROMPT.sub("", text))
    return [found for found in _Reader(text, origin, first).commands() if found]


def resolved(words: Sequence[Word], names: Variables) -> list[Word]:
    """Words with their names replaced; a bare one may become several, or none. A key's name stays a name."""
    found: list[Word] = []
    for place, word in enumerate(words):
        flag, equals, _ = word.text.partition("=")
        before = flag if equals else words[place - 1].text if place else ""
        secret = before.startswith("--") and secret_name(before)
        text = names.text(word.text, word.line, secret=secret)
        parts = text.split() if word.bare and "$" in word.text else [text]
        found += [Word(part, word.line) for part in parts]
    return found


class _Reader:
    def __init__(self, text: str, origin: Origin, first: int) -> None:
        self.text, self.origin, self.line, self.at = text, origin, first, 0

    def commands(self) -> Iterator[list[Word]]:
        words: list[Word] = []
        while self.at < len(self.text):
            if self._continued() or self._take(re.compile(r"[ \t]+|#[^\n]*")):
                continue
            if self._take(_REDIRECTION):
                self._take(re.compile(r"[ \t]+"))
                if self.at < len(self.text) and not _OPERATOR.match(self.text, self.at):
                    self._word()
            elif self._take(_OPERATOR):
                yield words
                words = []
            else:
                words.append(self._word())
        yield words

    def _continued(self) -> bool:
        """A continued line; comment lines right behind it are part of it for whoever wrote them."""
        if not self._take(_CONTINUED):
            return False
        while self._take(_COMMENT_LINE):
            pass
        return True

    def _take(self, pattern: re.Pattern[str]) -> bool:
        found = pattern.match(self.text, self.at)
        if found is None or found.end() == self.at:
            return False
        self.line += found[0].count("\n")
        self.at = found.end()
        return True

    def _word(self) -> Word:
        start, parts, bare = self.line, [], True
        while self.at < len(self.text):
            here = self.text[self.at]
            bare = bare and here not in "'\"\\"
            if here in " \t\n;&|" or _CONTINUED.match(self.text, self.at):
                break
            if here == "'":
                parts.append(self._quoted("'").replace("$", DOLLAR))
            elif here == '"':
                parts.append(self._quoted('"'))
            elif here == "\\":
                parts.append(self.text[self.at + 1 : self.at + 2].replace("$", DOLLAR))
                self.at += 2
            elif self.text.startswith(("$(", "${"), self.at):
                parts.append(self._braced())
            else:
                parts.append(here)
                self.at += 1
        return Word("".join(parts), start, bare)

    def _braced(self) -> str:
        """`${…}` and `$(…)` whole, whatever stands in them."""
        start, closing = self.at, {"(": ")", "{": "}"}[self.text[self.at + 1]]
        end = self.text.find(closing, self.at)
        self.at = len(self.text) if end < 0 else end + 1
        found = self.text[start : self.at]
        self.line += found.count("\n")
        return found

    def _quoted(self, quote: str) -> str:
        start, parts = self.line, []
        self.at += 1
        while not self.text.startswith(quote, self.at):
            if self.at >= len(self.text):
                raise self.origin.problem(start, f"a {quote} is not closed", "close the quote")
            if (
                quote == '"'
                and self.text[self.at] == "\\"
                and self.text[self.at + 1 : self.at + 2] in '$`"\\\n'
            ):
                after = self.text[self.at + 1 : self.at + 2]
                parts.append(DOLLAR if after == "$" else "" if after == "\n" else after)
                self.line += after == "\n"
                self.at += 2
                continue
            self.line += self.text[self.at] == "\n"
            parts.append(self.text[self.at])
            self.at += 1
        self.at += 1
        return "".join(parts)
