"""From what a model is to say to the text that it writes, with the markers of a server's own parsers."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_vllm.scripted.grammar import Script, load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm.scripted.grammar import Grammar

_MIDDLE = "\u0000"


@dataclass(frozen=True)
class Writer:
    """Writes scripts for one server.

    Args:
        tool: the grammar of its tool parser, None without one.
        reasoning: the grammar of its reasoning parser, None without one.
    """

    tool: Grammar | None
    reasoning: Grammar | None

    @classmethod
    def of(cls, args: Mapping[str, Any]) -> Writer:
        """The writer for these serve arguments. Raises LookupError for a parser that has no grammar."""
        tool, reasoning = args.get("tool-call-parser"), args.get("reasoning-parser")
        return cls(
            load(str(tool), "tool") if tool else None,
            load(str(reasoning), "reasoning") if reasoning else None,
        )

    @property
    def markers(self) -> tuple[str, ...]:
        """Texts that must be single tokens."""
        return tuple(dict.fromkeys(text for one in self._grammars for text in one.markers))

    @property
    def special(self) -> tuple[str, ...]:
        """Those of them that decoding leaves out."""
        return tuple(dict.fromkeys(text for one in self._grammars for text in one.special))

    @property
    def kwargs(self) -> dict[str, Any]:
        """What the chat template has to be told for the parsers to read what is written."""
        return {key: value for one in self._grammars for key, value in one.kwargs.items()}

    @property
    def closed(self) -> str:
        """What a prompt ends with to say that there is nothing to think about."""
        return self.reasoning.render(Script("", "", ())) if self.reasoning else ""

    def write(self, script: Script) -> str:
        """The text of a script. Without a reasoning parser there is no reasoning in it."""
        text = self.tool.render(replace(script, thinking=None)) if self.tool else script.content
        if self.reasoning is None or script.thinking is None:
            return text
        return self.reasoning.render(Script(script.thinking, text, ()))

    @property
    def around(self) -> tuple[str, str]:
        """What stands before and after reasoning."""
        if self.reasoning is None:
            return "", ""
        before, _, after = self.reasoning.render(Script(_MIDDLE, "", ())).partition(_MIDDLE)
        return before, after

    def pieces(self, text: str) -> list[str]:
        """A text in its smallest tokens: markers whole, everything else by character."""
        known = sorted({*self.markers, *self.special}, key=len, reverse=True)
        parts = re.split("(" + "|".join(map(re.escape, known)) + ")", text) if known else [text]
        return [piece for part in parts for piece in ([part] if part in known else part)]

    @property
    def _grammars(self) -> list[Grammar]:
        return [one for one in (self.tool, self.reasoning) if one is not None]
