"""What a profile's own vLLM says of its arguments; `launch/question.py` asks it, preflight judges by it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reply:
    """What a vLLM says of a command line.

    Args:
        whom: who was asked, `vLLM 0.32.0 of vllm/vllm-openai:v0.32.0`, or whom nobody could ask.
        refused: its own words against the arguments; empty when it takes them.
        unasked: why it could not be asked; empty when it was.
    """

    whom: str
    refused: str = ""
    unasked: str = ""

    @property
    def taken(self) -> bool:
        """Whether it was asked and takes the arguments."""
        return not (self.refused or self.unasked)

    @property
    def line(self) -> str:
        """For people, without the refusal: that is a finding."""
        if self.unasked:
            return f"{self.whom} was not asked about its arguments: {self.unasked}"
        return f"{self.whom} was asked, and {'refuses' if self.refused else 'takes'} the arguments"
