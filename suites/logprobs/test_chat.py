"""Log probabilities of a chat answer."""

from __future__ import annotations

from math import exp
from typing import Any

from pytest_vllm import MUST, Recording, Recordings, Server, check, only_if, unexpected

SPEC = "openai:chat/object#choices-logprobs"
NEEDS = ["chat", "logprobs"]
BOTH = ["chat", "completions", "logprobs"]


@check("logprobs.answered", MUST, spec=SPEC, needs=BOTH, exchanges=["logprobs."])
def test_answered(vllm_recordings: Recordings) -> None:
    """Every valid request for log probabilities is answered."""
    wrong = unexpected(vllm_recordings.of("logprobs."))

    assert not wrong, "; ".join(wrong)


@check("logprobs.chat.count", MUST, spec=SPEC, needs=NEEDS)
def test_count(logprobs_chat: Recording) -> None:
    """Every generated token has one entry."""
    entries, used = _entries(logprobs_chat), logprobs_chat.ok["usage"]["completion_tokens"]

    assert len(entries) == used, f"{len(entries)} entries for {used} tokens"


@check("logprobs.chat.top-count", MUST, spec="openai:chat/create#top_logprobs", needs=NEEDS)
def test_top_count(logprobs_chat: Recording) -> None:
    """Every entry has as many candidates as were asked for."""
    counts = [len(entry["top_logprobs"]) for entry in _entries(logprobs_chat)]

    assert set(counts) <= {3, 4}, f"candidates for each token: {counts}, asked for 3"


@check("logprobs.chat.no-top", MUST, spec="openai:chat/create#top_logprobs", needs=NEEDS)
def test_no_top(logprobs_chat_no_top: Recording) -> None:
    """`top_logprobs: 0` gives entries without candidates."""
    entries = _entries(logprobs_chat_no_top)

    assert entries, "no entries"
    assert not any(entry["top_logprobs"] for entry in entries), f"candidates: {entries[0]['top_logprobs']}"


@check("logprobs.chat.sorted", MUST, spec=SPEC, needs=NEEDS)
def test_sorted(logprobs_chat: Recording) -> None:
    """The candidates of a greedy token are sorted, the likeliest first."""
    values = [[top["logprob"] for top in entry["top_logprobs"]] for entry in _entries(logprobs_chat)]
    unsorted = [row for row in values if row != sorted(row, reverse=True)]

    assert not unsorted, f"not sorted: {unsorted[0]}"


@check("logprobs.chat.greedy-is-best", MUST, spec=SPEC, needs=NEEDS)
def test_greedy_is_best(logprobs_chat: Recording) -> None:
    """At temperature 0 no candidate is likelier than the token that was taken."""
    entries = _entries(logprobs_chat)
    worse = [e for e in entries if max(top["logprob"] for top in e["top_logprobs"]) > e["logprob"] + 1e-3]

    assert not worse, f"taken {worse[0]['token']!r} at {worse[0]['logprob']}, of {worse[0]['top_logprobs']}"


@check("logprobs.chat.taken-is-listed", MUST, spec=SPEC, needs=NEEDS)
def test_taken_is_listed(logprobs_chat: Recording) -> None:
    """The token that was taken is among its candidates, with the same log probability."""
    entries = _entries(logprobs_chat)
    taken = [(entry["token"], entry["logprob"]) for entry in entries]
    listed = [[(top["token"], top["logprob"]) for top in entry["top_logprobs"]] for entry in entries]
    wrong = [(one, row) for one, row in zip(taken, listed, strict=True) if one not in row]

    assert not wrong, f"taken {wrong[0][0]}, listed {wrong[0][1]}"


@check("logprobs.chat.mass", MUST, spec=SPEC, needs=NEEDS)
def test_mass(logprobs_chat: Recording, vllm_server: Server) -> None:
    """The candidates of a token have natural log probabilities: together at most 1."""
    only_if(not vllm_server.logits, "its log probabilities are logits, as --logprobs-mode makes them")
    sums = [sum(exp(top["logprob"]) for top in entry["top_logprobs"]) for entry in _entries(logprobs_chat)]

    assert max(sums) <= 1.01, f"probabilities of the candidates add up to {max(sums):.3f}"


@check("logprobs.chat.bytes", MUST, spec=SPEC, needs=NEEDS)
def test_bytes(logprobs_chat: Recording) -> None:
    """`bytes` are the token's text in UTF-8."""
    given = [(e["token"], e["bytes"]) for e in _entries(logprobs_chat) if e.get("bytes") is not None]
    wrong = [pair for pair in given if "\ufffd" not in pair[0] and bytes(pair[1]) != pair[0].encode()]

    assert not wrong, f"token {wrong[0][0]!r} has bytes {wrong[0][1]}"


def _entries(answer: Recording) -> list[Any]:
    found: list[Any] = answer.ok["choices"][0]["logprobs"]["content"]
    return found
