"""Requests of the oracle suite: questions about what was answered before, and one question over and over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm import Request, Server, exchange

from .answers import MESSAGES, answer_of
from .counting import questions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_vllm import Recording

COUNTS = "/v1/messages/count_tokens"


@exchange("oracle.count", afterwards=True)
def oracle_count(server: Server, recorded: Sequence[Recording]) -> Iterator[Request]:
    """How many tokens each prompt of the run has, by the server's own tokenizer, once for each prompt."""
    for one in recorded:
        answer = answer_of(one)
        bodies = questions(answer.path, answer.asked, server) if answer else ""
        if answer and not isinstance(bodies, str):
            path = COUNTS if answer.path == MESSAGES else "/tokenize"
            if path != COUNTS or server.at_least("0.17.0"):
                yield from (server.post(path, body, expect=None) for body in bodies)
