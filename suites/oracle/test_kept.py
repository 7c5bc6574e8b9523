"""What a request leaves to the model, and what it keeps from it, holds for every answer, streams too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Recordings, Server, check, listed, observe, only_if, unexpected

from .answers import CHAT, COMPLETIONS, answers
from .apis import BY_ID
from .neutral import UNPENALISED
from .streamed import BEST
from .test_texts import constrained
from .ties import SAME

if TYPE_CHECKING:
    from .answers import Answer
    from .apis import Choice

VLLM = "vllm:serving/openai_compatible_server/"
#: A bias that no likelihood outweighs.
NEVER = -100


@check(
    "oracle.streamed", MUST, spec="openai:chat-streaming", needs=["stream"], exchanges=["oracle.streamed["]
)
def test_streamed(vllm_recordings: Recordings) -> None:
    """What is answered in one piece is answered as a stream, whatever it sets."""
    wrong = unexpected(vllm_recordings.of("oracle.streamed["))

    assert not wrong, listed(wrong)


@check("oracle.kept.tokens", MUST, spec=VLLM, exchanges=["oracle.streamed[", "*"])
def test_tokens(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """No answer holds a token that its request forbids, or goes on behind its end."""
    only_if(not vllm_server.drafts, "where tokens are drafted some versions do not keep them from an answer")
    rows = [(one, ids) for one in answers(vllm_recordings) if _masks(one) for ids in _all_ids(one)]
    only_if(rows, "no answer to a request that forbids tokens gives their ids")
    observe("texts held to what their requests allow", len(rows))
    wrong = [f"{one.key}: {fault}" for one, ids in rows if (fault := _forbidden(one.asked, ids))]

    assert not wrong, listed(wrong)


@check("oracle.kept.least", MUST, spec=VLLM, exchanges=["oracle.streamed[", "*"])
def test_least(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """No answer is billed fewer tokens than the least that its request allows."""
    only_if(not vllm_server.drafts, "where tokens are drafted the least number of them is not kept")
    only_if(vllm_server.at_least("0.11.0"), "before 0.11 a stop string ended an answer however short it was")
    rows = [(one, least) for one in answers(vllm_recordings) if (least := _least(one))]
    only_if(rows, "no request sets a least number of tokens")
    wrong = [
        f"{one.key}: {one.usage[1]} tokens, {least} at least"
        for one, least in rows
        if one.usage and one.usage[1] < least and "length" not in _ends(one)
    ]

    assert not wrong, listed(wrong)


@check("oracle.kept.best", MUST, spec=VLLM, exchanges=["oracle.streamed[", "*"])
def test_best(vllm_recordings: Recordings) -> None:
    """Every token is the likeliest where a request leaves no other to be drawn."""
    rows = [
        (one, choice)
        for one in answers(vllm_recordings)
        if any(holds(one.asked.get(name)) for name, holds in BEST.items())
        if all(one.asked.get(name) == value for name, value in UNPENALISED.items()) and not _masked(one.asked)
        for choice in one.choices
        if any(candidates for _, candidates in choice.tokens)
    ]
    only_if(rows, "no request leaves the likeliest token alone and lists candidates")
    wrong = [f"{one.key}: {fault}" for one, choice in rows if (fault := _worse(choice))]

    assert not wrong, listed(wrong)


def _masked(asked: dict[str, Any]) -> bool:
    return constrained(asked) or any(
        asked.get(n) for n in ("allowed_token_ids", "logit_bias", "bad_words", "echo")
    )


def _masks(one: Answer) -> bool:
    """Whether a request of chat or completions forbids tokens by their ids."""
    asked = one.asked
    named = any(asked.get(name) for name in ("allowed_token_ids", "logit_bias", "stop_token_ids"))
    return one.path in (CHAT, COMPLETIONS) and named and not asked.get("use_beam_search")


def _all_ids(one: Answer) -> list[list[int]]:
    """The ids of each text, where the answer gives them; those of an echoed prompt are not its own."""
    if one.asked.get("echo"):
        return []
    told = [list(choice.ids) if choice.ids else _by_id(choice) for choice in one.choices]
    return [ids for ids in told if ids]


def _by_id(choice: Choice) -> list[int]:
    named = [token.removeprefix(BY_ID) for token, _ in choice.tokens if token.startswith(BY_ID)]
    return [int(number) for number in named if number.isdigit()]


def _forbidden(asked: dict[str, Any], ids: list[int]) -> str:
    """The tokens of a text that its request forbids; empty where there are none."""
    allowed, bias = asked.get("allowed_token_ids"), asked.get("logit_bias") or {}
    free = not constrained(asked) and not asked.get("thinking_token_budget")
    if allowed and free and (wrong := [number for number in ids if number not in allowed]):
        return f"{wrong[:5]}, allowed are {allowed[:5]}"
    barred = {int(name) for name, value in bias.items() if value <= NEVER}
    left = not allowed or set(allowed) - barred
    if left and free and (wrong := [number for number in ids if number in barred]):
        return f"{wrong[:5]}, which a bias of {NEVER} keeps out"
    ends = asked.get("stop_token_ids") or ()
    behind = [at for at, number in enumerate(ids[:-1]) if number in ends]
    if behind and not asked.get("min_tokens"):
        return f"goes on behind {ids[behind[0]]}, which was to end it"
    return ""


def _least(one: Answer) -> int:
    """The least that all texts of an answer are worth in tokens; 0 where that is not known."""
    asked = one.asked
    least, ends = asked.get("min_tokens"), ("repetition_detection", "use_beam_search")
    known = isinstance(least, int) and one.usage and not constrained(asked) and not any(map(asked.get, ends))
    return least * len(one.choices) if known and isinstance(least, int) else 0


def _ends(one: Answer) -> set[str]:
    return {reason for choice in one.choices for reason in choice.finish}


def _worse(choice: Choice) -> str:
    """A token that others outdo; empty where none is."""
    for token, candidates in choice.tokens:
        best = max(candidates.values(), default=0.0)
        if token in candidates and candidates[token] < best - SAME:
            return f"drawn {token!r} at {candidates[token]}, the likeliest has {best}"
    return ""
