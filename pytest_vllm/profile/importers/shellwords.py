"""Words with their lines, and the names in them replaced."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.profile.secrets import secret_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm.profile.importers.variables import Variables


@dataclass(frozen=True)
class Word:
    """A word, the line that it begins on, and whether it was bare: a shell splits what that becomes."""

    text: str
    line: int
    bare: bool = False


def resolved(words: Sequence[Word], names: Variables) -> list[Word]:
    """Words with their names replaced; a bare one may become several, or none. A key's name stays a name."""
    found: list[Word] = []
    for place, word in enumerate(words):
        flag, equals, _ = word.text.partition("=")
        before = flag if equals else words[place - 1].text if place else ""
        secret = before.startswith("--") and secret_name(before)
        text = names.text(word.text, word.line, secret=secret, lenient=word.bare)
        parts = _split(text) if word.bare and "$" in word.text else [text]
        found += [Word(part, word.line) for part in parts]
    return found


def _split(text: str) -> list[str]:
    """What becomes of a bare name: quotes in its value hold words together, as in a unit of systemd."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
