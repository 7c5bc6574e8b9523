"""The same request gets the same answer, whole or streamed, early or late, alone or beside others.

A greedy answer may differ where two candidates were about equally likely: another batch rounds otherwise.
That is excused by the log probabilities of an answer to the same request. Where none was asked for, the
request is asked once more with them, after the run, and only then. A request that keeps a real model from its
likeliest tokens is not judged: log probabilities are those of before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm import MUST, Recordings, Server, check, listed, observe, only_if, parting

from .answers import answers
from .sameness import across, end, groups, prompt, usual, words
from .ties import bent, candidates_of, ends_by_chance, excuse, penalised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .answers import Answer
    from .apis import Choice

SPEC = "openai:chat/create#temperature"
MIXED = "fault:vllm-project/vllm/issues/9910"
EXPLAINED = ["oracle.explained", "oracle.greedy[", "*"]


@check("oracle.same.text", MUST, spec=SPEC, exchanges=EXPLAINED)
def test_text(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """A greedy request gets the same words each time, near-ties aside."""
    together = across(answers(vllm_recordings))
    only_if(together, "no greedy request was asked twice")
    observe("requests asked more than once", f"{len(together)}, {sum(map(len, together))} answers")
    wrong, excused = [], []
    for group in together:
        most = usual([_words(one) for one in group])
        for one in (one for one in group if _words(one) != most):
            why = _excused(group, one, most, exact=vllm_server.simulated)
            excused += [f"{one.key}: {why}"] if why else []
            wrong += [] if why else [f"{one.key}: {_parting(_words(one), most)}"]
    observe("answers that differ and are excused", listed(excused) or "none")

    assert not wrong, listed(wrong)


@check("oracle.same.prompt", MUST, spec="openai:chat/object#usage", exchanges=["usage.ruled", "*"])
def test_prompt(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """The same request is billed the same prompt each time, over any route."""
    alike = across if vllm_server.templated else groups
    told = [
        [(one.key, one.usage[0]) for one in group if one.usage] for group in alike(answers(vllm_recordings))
    ]
    pairs = [rows for rows in told if len(rows) > 1]
    only_if(pairs, "no request that was asked twice was billed twice")
    wrong = [
        f"{key}: {count} prompt tokens, {most} elsewhere"
        for rows in pairs
        for most in [usual([count for _, count in rows])]
        for key, count in rows
        if count != most
    ]

    assert not wrong, listed(wrong)


@check("oracle.same.end", MUST, spec="openai:chat/object", exchanges=EXPLAINED)
def test_end(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """The same words to the same greedy request end alike and cost the same."""
    wrong, judged = [], 0
    for group in groups(answers(vllm_recordings)):
        most = usual([_words(one) for one in group])
        alike = [one for one in group if _words(one) == most and one.usage]
        judged += len(alike) > 1
        ends = [end(one) for one in alike]
        wrong += [
            f"{one.key}: {told}, elsewhere {usual(ends)}"
            for one, told in zip(alike, ends, strict=True)
            if told != usual(ends) and (vllm_server.simulated or not _by_chance(group))
        ]
    only_if(judged, "no greedy request got the same words twice")

    assert not wrong, f"(finish reasons, tokens): {listed(wrong)}"


@check("oracle.same.mixed-up", MUST, spec=MIXED, exchanges=EXPLAINED)
def test_mixed_up(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """An answer that differs from its like is not the answer to another prompt."""
    said = answers(vllm_recordings)
    together = across(said)
    only_if(together, "no greedy request was asked twice")
    owners: dict[tuple[object, ...], Answer] = {_words(one): one for one in said if _telling(_words(one))}
    wrong = []
    for group in together:
        most = usual([_words(one) for one in group])
        mine = {prompt(one) for one in group}
        for one in (one for one in group if _words(one) != most):
            owner = owners.get(_words(one))
            if owner is None or prompt(owner) in mine:
                continue
            if not _excused(group, one, most, exact=vllm_server.simulated):
                wrong.append(f"{one.key} got the answer of {owner.key}")

    assert not wrong, f"answers were mixed up between requests: {listed(wrong)}"


def _words(one: Answer) -> tuple[object, ...]:
    return tuple(words(choice) for choice in one.choices)


def _telling(said: tuple[object, ...]) -> bool:
    """Whether words are long enough to know whose they are."""
    return len(str(said)) > 24


def _excused(group: Sequence[Answer], one: Answer, most: tuple[object, ...], *, exact: bool) -> str:
    """Why this answer may differ from what most of its like say; empty when it may not."""
    if bent(one.asked):
        return "" if exact else "what is forbidden to it is not in its log probabilities"
    if not exact and penalised(choice for other in group for choice in other.choices):
        return "by default this server draws tokens that are not the likeliest"
    like = next(other for other in group if _words(other) == most)
    reasons = [
        excuse(_listings(group, index), mine, theirs)
        for index, (mine, theirs) in enumerate(zip(one.choices, like.choices, strict=False))
        if words(mine) != words(theirs)
    ]
    return reasons[0] if reasons and all(reasons) else ""


def _listings(group: Sequence[Answer], index: int) -> list[Choice]:
    """What the answers to one request list at one choice."""
    return [candidates_of(one.choices[index], one.asked) for one in group if len(one.choices) > index]


def _by_chance(group: Sequence[Answer]) -> bool:
    """Whether answers with the same words may end otherwise."""
    return ends_by_chance(group[0].asked, [choice for one in group for choice in one.choices])


def _parting(said: tuple[object, ...], most: tuple[object, ...]) -> str:
    one, other = str(said), str(most)
    at = parting(one, other)
    begin = max(0, at - 20)
    return f"{one[begin : at + 20]!r}, most say {other[begin : at + 20]!r}"
