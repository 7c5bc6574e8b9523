"""Separating thoughts from the answer, as the deepseek_r1 and qwen3 parsers do."""

from __future__ import annotations

from pytest_vllm.sim.parsers.scan import held_back

BEGIN, END = "<think>", "</think>"


class ReasoningReader:
    """Splits text that comes in pieces into (thoughts, answer) parts.

    Before the end marker everything is thought, opened or not: templates may open it in the prompt.
    """

    def __init__(self, *, thinking: bool = True) -> None:
        """`thinking` False when the prompt has closed the thought already."""
        self.thinking = thinking
        self._rest = ""

    def feed(self, piece: str, *, finished: bool) -> tuple[str, str]:
        """The thoughts and the answer text that this piece brings."""
        if not self.thinking:
            return "", piece
        text = self._rest + piece
        end = text.find(END)
        if end >= 0:
            self.thinking = False
            self._rest = ""
            return text[:end].replace(BEGIN, ""), text[end + len(END) :]
        keep = 0 if finished else held_back(text, (BEGIN, END))
        self._rest = text[len(text) - keep :]
        return text[: len(text) - keep].replace(BEGIN, ""), ""


def split(text: str, *, thinking: bool = True) -> tuple[str | None, str | None]:
    """Thoughts and answer of a whole text; None where there are none."""
    if not thinking:
        return None, text
    if END not in text:
        return text.replace(BEGIN, "", 1) or None, None
    thoughts, _, answer = text.partition(END)
    return thoughts.replace(BEGIN, "", 1) or None, answer or None
