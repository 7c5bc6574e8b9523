"""A document's relevance is its own: the same alone, beside others, in any order, by any route."""

from __future__ import annotations

import math
from typing import Any

from pytest_vllm import (
    CAPABILITY,
    MUST,
    SHOULD,
    Case,
    Recording,
    Recordings,
    check,
    need,
    only_if,
    unexpected,
)

from .exchanges import BEST, DOCUMENTS, QUERY, TIMES

SPEC = "vllm:serving/openai_compatible_server/"
LENGTHS = "fault:vllm-project/vllm/issues/22983"
RANKS, SCORES = ("rerank",), ("score",)
#: What batches may change of a relevance: so much, and a fiftieth of it where it is not a probability.
NEAR, SHARE = 0.03, 0.02


def near(one: float, other: float) -> bool:
    """Whether two relevances are the same but for rounding."""
    return math.isclose(one, other, rel_tol=SHARE, abs_tol=NEAR)


def told(recording: Recording) -> dict[int, float]:
    """Number of a document -> its relevance. Raises Undecided where numbers or relevances are missing."""
    body = recording.ok
    found: Any = body.get("results") if "results" in body else body.get("data")
    rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    values = {row.get("index"): row.get("relevance_score", row.get("score")) for row in rows}
    sound = all(isinstance(n, int) and isinstance(v, int | float) for n, v in values.items())
    need(values and sound and len(values) == len(rows), f"{recording.key} gives {str(found)[:120]}")
    return {int(number or 0): float(value or 0) for number, value in values.items()}


def apart(one: dict[int, float], other: dict[int, float]) -> list[str]:
    """The documents whose relevances differ between two answers."""
    need(set(one) == set(other), f"documents {sorted(one)} and {sorted(other)}")
    pairs = {number: (one[number], other[number]) for number in sorted(one)}
    return [f"document {n}: {a:.4f} and {b:.4f}" for n, (a, b) in pairs.items() if not near(a, b)]


@check("ranking.answered", MUST, spec=SPEC, needs=RANKS, exchanges=("ranking.",))
def test_answered(vllm_recordings: Recordings) -> None:
    """Documents of any length are ranked and scored."""
    wrong = unexpected(vllm_recordings.of("ranking."))

    assert not wrong, "; ".join(wrong)


@check("ranking.complete", MUST, spec=SPEC, needs=RANKS)
def test_complete(ranking_mixed: Recording, ranking_reversed: Recording) -> None:
    """A ranking holds every document once, with a finite relevance."""
    for recording, times in ((ranking_mixed, 1), (ranking_reversed, TIMES)):
        found = told(recording)
        assert sorted(found) == [*range(len(DOCUMENTS) * times)], f"{recording.key} ranks {sorted(found)}"
        assert all(map(math.isfinite, found.values())), f"{recording.key} gives {found}"


@check("ranking.alone", MUST, spec=LENGTHS, needs=RANKS)
def test_alone(ranked_alone: Case, ranking_alone: Recording, ranking_mixed: Recording) -> None:
    """A document is as relevant alone as beside longer and shorter ones."""
    one, other = told(ranking_alone).get(0), told(ranking_mixed).get(ranked_alone["number"])
    need(one is not None and other is not None, "its row is missing")

    assert near(one or 0.0, other or 0.0), f"{one:.4f} alone, {other:.4f} beside others"


@check("ranking.any-order", MUST, spec=LENGTHS, needs=RANKS)
def test_any_order(ranking_mixed: Recording, ranking_reversed: Recording) -> None:
    """The order in which documents are sent, and their number, change no relevance."""
    few, many = told(ranking_mixed), told(ranking_reversed)
    last = len(many) - 1
    wrong = apart({at: few.get(at % len(few), -1.0) for at in many}, {last - at: many[at] for at in many})

    assert not wrong, f"as sent and in reverse: {'; '.join(wrong[:4])}"


@check("ranking.deep", MUST, spec="fault:vllm-project/vllm/issues/48831", needs=RANKS)
def test_deep(ranking_deep: Recording, ranking_deep_alone: Recording, ranking_deep_again: Recording) -> None:
    """A document too long to be read at once is as relevant alone as among others."""
    rows = (ranking_deep, ranking_deep_alone, ranking_deep_again)
    refused = [one.text[:120] for one in rows if one.status == 400]
    only_if(not refused, f"refused: {refused[:1]}")
    found = [told(one)[at] for one, at in zip(rows, (1, 0, 0), strict=True)]

    assert near(found[0], found[1]), f"{found[1]:.4f} alone, {found[0]:.4f} beside others"
    assert near(found[1], found[2]), f"{found[1]:.4f} alone, {found[2]:.4f} in another place"


@check("ranking.routes-agree", MUST, spec=SPEC, needs=RANKS)
def test_routes(ranking_route: Case, ranking_spelled: Recording, ranking_mixed: Recording) -> None:
    """Every address of the route ranks alike."""
    ranking_spelled.answered()
    status = ranking_spelled.status
    only_if(status not in (404, 405), f"{ranking_route['path']} is not there")
    assert status == 200, f"{ranking_route['path']}: {status} {ranking_spelled.text[:120]}"
    wrong = apart(told(ranking_mixed), told(ranking_spelled))

    assert not wrong, f"/rerank and {ranking_route['path']}: {'; '.join(wrong)}"


@check("ranking.routes-alike", MUST, spec=SPEC, needs=RANKS)
def test_routes_alike(ranking_route: Case, ranking_spelled: Recording, ranking_mixed: Recording) -> None:
    """What is told of a document is the same under every address of the route."""
    ranking_spelled.answered()
    only_if(ranking_spelled.status == 200, f"{ranking_route['path']} gives {ranking_spelled.status}")
    here, there = ({*row} for one in (ranking_mixed, ranking_spelled) for row in one.ok["results"][:1])

    assert here == there, f"/rerank tells {sorted(here)}, {ranking_route['path']} {sorted(there)}"


@check("ranking.unlimited", MUST, spec="fault:Tencent/WeKnora/pull/2160", needs=RANKS)
def test_unlimited(ranking_unlimited: Recording, ranking_mixed: Recording) -> None:
    """A limit for tokens that no pair reaches changes no relevance."""
    ranking_unlimited.answered()
    status = ranking_unlimited.status
    only_if(status != 400, f"this server takes no limit: {ranking_unlimited.text[:120]}")
    assert status == 200, f"with truncate_prompt_tokens: {status} {ranking_unlimited.text[:120]}"
    wrong = apart(told(ranking_mixed), told(ranking_unlimited))

    assert not wrong, f"without a limit and with: {'; '.join(wrong)}"


@check("ranking.each-unlimited", SHOULD, spec="fault:vllm-project/vllm/pull/57666", needs=RANKS)
def test_each_unlimited(ranking_each_unlimited: Recording, ranking_mixed: Recording) -> None:
    """A limit for each document that none reaches changes no relevance."""
    ranking_each_unlimited.answered()
    status, text = ranking_each_unlimited.status, ranking_each_unlimited.text[:120]
    only_if(status not in (400, 422), f"this server takes no limit: {text}")
    only_if(not ranking_each_unlimited.shed, f"shed with {status}")
    assert status == 200, f"with max_tokens_per_doc: {status} {text}"
    wrong = apart(told(ranking_mixed), told(ranking_each_unlimited))

    assert not wrong, f"without a limit and with: {'; '.join(wrong)}"


@check("ranking.cut", MUST, spec="fault:BerriAI/litellm/pull/39363", needs=RANKS)
def test_cut(ranking_cut: Recording, ranking_unlimited: Recording) -> None:
    """A limit for tokens cuts a document that the context does not hold."""
    taken = ranking_unlimited.status == 200
    only_if(taken, f"this server takes no limit: {ranking_unlimited.text[:120]}")
    only_if(ranking_cut.status != 413, "something in front takes no request of that size")
    ranking_cut.answered()
    status, limit = ranking_cut.status, ranking_cut.request.json["truncate_prompt_tokens"]
    assert status == 200, f"with truncate_prompt_tokens {limit}: {status} {ranking_cut.text[:160]}"
    billed = (ranking_cut.ok.get("usage") or {}).get("total_tokens") or 0

    # two texts, where the model reads question and document apart
    assert billed <= 2 * limit, f"{billed} tokens, the limit is {limit}"


@check("ranking.like-scores", MUST, spec=SPEC, needs=("rerank", "score"))
def test_like_scores(ranking_mixed: Recording, ranking_score: Recording) -> None:
    """A document's relevance is its score."""
    wrong = apart(told(ranking_mixed), told(ranking_score))

    assert not wrong, f"ranked and scored: {'; '.join(wrong)}"


@check("ranking.pair-by-pair", MUST, spec=SPEC, needs=SCORES)
def test_pairs(ranking_score: Recording, ranking_pairs: Recording) -> None:
    """One text against many scores as pair by pair."""
    wrong = apart(told(ranking_score), told(ranking_pairs))

    assert not wrong, f"one against all, and pairs: {'; '.join(wrong)}"


@check("ranking.pair", MUST, spec=SPEC, needs=SCORES)
def test_pair(ranking_pair: Recording, ranking_score: Recording) -> None:
    """A single pair scores as it does in a list."""
    one, there = told(ranking_pair).get(0, -1.0), told(ranking_score).get(BEST, -1.0)

    assert near(one, there), f"{one:.4f} by itself, {there:.4f} in a list"


@check("ranking.pairs-unlike", MUST, spec=SPEC, needs=SCORES)
def test_pairs_unlike(ranking_score: Recording, ranking_pairs_unlike: Recording) -> None:
    """Pairs score alike under each address, whatever stands in the pairs before them."""
    ranking_pairs_unlike.answered()
    status = ranking_pairs_unlike.status
    only_if(status not in (404, 405), "/v1/score is not there")
    assert status == 200, f"/v1/score: {status} {ranking_pairs_unlike.text[:120]}"
    one, other = told(ranking_score), told(ranking_pairs_unlike)
    asked = [at for at, left in enumerate(ranking_pairs_unlike.request.json["text_1"]) if left == QUERY]
    wrong = apart({at: one.get(at, -1.0) for at in asked}, {at: other.get(at, -1.0) for at in asked})

    assert not wrong, f"one against all, and pairs behind others: {'; '.join(wrong)}"


def used(recording: Recording) -> int:
    """The tokens that an answer reports. Raises Undecided where it reports none."""
    found = (recording.ok.get("usage") or {}).get("total_tokens")
    need(isinstance(found, int), f"{recording.key} gives no total_tokens")
    return int(found or 0)


@check("ranking.usage", MUST, spec=SPEC, needs=RANKS, exchanges=("ranking.alone[",))
def test_usage(vllm_recordings: Recordings, ranking_mixed: Recording) -> None:
    """Tokens are counted: more for a long document, and more for all of them."""
    long, short = (used(vllm_recordings.get(f"ranking.alone[{name}]")) for name in ("long", "short"))
    whole = used(ranking_mixed)

    assert 0 < short < long < whole, f"{short} for a short one, {long} for a long one, {whole} for all"


@check("ranking.usage-like-scores", MUST, spec=SPEC, needs=("rerank", "score"))
def test_usage_like_scores(ranking_mixed: Recording, ranking_score: Recording) -> None:
    """The same pairs cost about the same, ranked or scored."""
    ranks, scores = used(ranking_mixed), used(ranking_score)

    assert math.isclose(ranks, scores, rel_tol=0.25), f"{ranks} tokens ranked, {scores} scored"


@check("ranking.long-query.counted", MUST, spec=SPEC, needs=RANKS)
def test_long_query(ranking_long_query: Recording) -> None:
    """A long question is read whole: every word of it is billed."""
    words = len(ranking_long_query.request.json["query"].split())
    counted = used(ranking_long_query)

    assert counted >= words, f"{counted} tokens for a question of {words} words and its documents"


@check("ranking.long.best", SHOULD, spec=LENGTHS, needs=RANKS, family=CAPABILITY)
def test_best(ranking_mixed: Recording) -> None:
    """The document that answers the question is ranked first, however long it goes on."""
    found = told(ranking_mixed)
    best = max(found, key=lambda number: found[number])

    assert best == BEST, f"{DOCUMENTS[best]!r:.60} ({found[best]:.3f}), the right one has {found.get(BEST)}"
