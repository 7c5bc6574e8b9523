"""An answer ends where its request lets it end, wherever in a run that was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm import MUST, Recordings, Server, check, listed, observe, only_if

from .answers import CHAT, COMPLETIONS, answers
from .test_texts import constrained

if TYPE_CHECKING:
    from .answers import Answer
    from .apis import Choice

VLLM = "vllm:serving/openai_compatible_server/"


@check("oracle.end.allowed", MUST, spec=VLLM, exchanges=["*"])
def test_allowed(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """No answer ends by itself that must not, or by a stop string that was not given."""
    drafted = vllm_server.drafts
    strings = vllm_server.at_least("0.11.0")  # before, a stop string ended an answer however short it was
    rows = [
        (one, choice)
        for one in answers(vllm_recordings)
        if one.path in (CHAT, COMPLETIONS)
        for choice in one.choices
        if choice.finish == ("stop",) and len(choice.stops) == 1
    ]
    only_if(rows, "no answer says what stopped it")
    observe("answers that were stopped", len(rows))
    wrong = [
        f"{one.key}: {fault}"
        for one, choice in rows
        if (fault := _fault(one, choice, strings=strings, drafted=drafted))
    ]

    assert not wrong, listed(wrong)


def _fault(one: Answer, choice: Choice, *, strings: bool, drafted: bool) -> str:
    """Why an answer must not have ended here; empty where it may.

    A constraint may leave nothing but the end; stop tokens may be the server's own; where tokens are drafted
    the least number of them is not kept.

    Args:
        one: the answer.
        choice: one of its texts.
        strings: whether stop strings, too, wait for the least number of tokens.
        drafted: whether tokens are drafted.
    """
    asked, why = one.asked, choice.stops[0]
    if isinstance(why, str):
        given = asked.get("stop") or []
        if why not in ([given] if isinstance(given, str) else given):
            return f"stopped at {why!r}"
        return _early(one) if strings and not drafted else ""
    if why is not None or constrained(asked) or asked.get("use_beam_search"):
        return ""
    return (
        "it ended by itself, with ignore_eos" if asked.get("ignore_eos") else "" if drafted else _early(one)
    )


def _early(one: Answer) -> str:
    """How an answer of one text ended before its least number of tokens; empty where it did not."""
    least = one.asked.get("min_tokens") or 0
    if not least or len(one.choices) != 1 or not one.usage or one.usage[1] > least:
        return ""
    return f"{one.usage[1]} tokens, min_tokens is {least}"
