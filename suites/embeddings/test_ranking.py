"""Scores and rankings: as many as asked for, in order, and the right one first."""

from __future__ import annotations

import math
from typing import Any

from pytest_vllm import CAPABILITY, MUST, SHOULD, Recording, Server, check, need, only_if

from .exchanges import BEST, DOCUMENTS

SPEC = "vllm:serving/openai_compatible_server/"
RANKS = "fault:QwenLM/Qwen3-Embedding/issues/71"
NEEDS = ("rerank",)
SCORES = ("score",)
#: The range of a cosine or a probability, which relevances summed over tokens leave.
RANGE = 1.01


def offered(recording: Recording) -> None:
    """Go on only where the server scores and ranks."""
    recording.answered()
    only_if(recording.status not in (404, 405, 501), f"{recording.request.path} is not there")


def results(recording: Recording) -> list[dict[str, Any]]:
    """The rows of a ranking or of scores."""
    offered(recording)
    body = recording.ok
    found = body.get("results") if "results" in body else body.get("data")
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def weights(recording: Recording, name: str) -> list[float]:
    """The numbers of the rows; NaN for what is none."""
    found = [row.get(name) for row in results(recording)]
    return [value if isinstance(value, int | float) else math.nan for value in found]


@check("embeddings.rerank.answered", MUST, spec=SPEC, needs=(*NEEDS, *SCORES))
def test_answered(embeddings_rerank: Recording, embeddings_score: Recording) -> None:
    """A server that ranks and scores answers with 200."""
    offered(embeddings_rerank)
    offered(embeddings_score)
    found = {"/rerank": embeddings_rerank.status, "/score": embeddings_score.status}

    assert set(found.values()) == {200}, f"answered with {found}"


@check("embeddings.rerank.complete", MUST, spec=SPEC, needs=NEEDS)
def test_complete(embeddings_rerank: Recording) -> None:
    """A ranking holds every document once, by the number under which it was sent."""
    numbers = [row.get("index") for row in results(embeddings_rerank)]

    assert sorted(map(str, numbers)) == [str(n) for n in range(len(DOCUMENTS))], f"indices are {numbers}"


@check("embeddings.rerank.sorted", MUST, spec=RANKS, needs=NEEDS)
def test_sorted(embeddings_rerank: Recording) -> None:
    """A ranking is ordered by relevance, best first."""
    values = weights(embeddings_rerank, "relevance_score")
    need(len(values) > 1, f"{len(values)} documents came back")

    assert values == sorted(values, reverse=True), f"relevance_score runs {values}"


@check("embeddings.rerank.documents", MUST, spec=SPEC, needs=NEEDS)
def test_documents(embeddings_rerank: Recording) -> None:
    """Each row shows the document that its number means."""
    told = [(row.get("index"), row.get("document")) for row in results(embeddings_rerank)]
    shown = [(n, d.get("text") if isinstance(d, dict) else d) for n, d in told if d is not None]
    only_if(shown, "the ranking shows no documents")
    wrong = [
        f"{number}: {text!r:.50}"
        for number, text in shown
        if isinstance(number, int) and 0 <= number < len(DOCUMENTS) and text != DOCUMENTS[number]
    ]

    assert not wrong, "; ".join(wrong)


@check("embeddings.rerank.top", MUST, spec=SPEC, needs=NEEDS)
def test_top(embeddings_rerank: Recording, embeddings_rerank_top: Recording) -> None:
    """`top_n` gives the first of the whole ranking, and no more."""
    whole, top = results(embeddings_rerank), results(embeddings_rerank_top)
    need(whole, "the whole ranking is empty")
    here, there = [row.get("index") for row in top], [row.get("index") for row in whole[:2]]

    assert here == there, f"the best two are {here}, of the whole ranking {there}"


@check("embeddings.rerank.best", MUST, spec=RANKS, needs=NEEDS, family=CAPABILITY)
def test_best(embeddings_rerank: Recording) -> None:
    """The document that answers the question is ranked first."""
    values = dict(
        zip(
            [row.get("index") for row in results(embeddings_rerank)],
            weights(embeddings_rerank, "relevance_score"),
            strict=True,
        )
    )
    need(set(values) == set(range(len(DOCUMENTS))), f"indices are {sorted(map(str, values))}")
    best = max(values, key=lambda number: values[number])

    assert best == BEST, (
        f"{DOCUMENTS[best or 0]!r} ({values[best]:.3f}) before {DOCUMENTS[BEST]!r} ({values[BEST]:.3f})"
    )


@check("embeddings.score.finite", MUST, spec="fault:vllm-project/vllm/issues/19661", needs=SCORES)
def test_finite(vllm_server: Server, embeddings_score: Recording) -> None:
    """Every pair has a finite score; of vectors, one in the range of a cosine."""
    values = weights(embeddings_score, "score")
    most = RANGE if vllm_server.can("embeddings") else math.inf

    assert len(values) == len(DOCUMENTS), f"{len(values)} scores for {len(DOCUMENTS)} pairs"
    assert all(map(math.isfinite, values)), f"scores are {values}"
    assert all(-most <= value <= most for value in values), f"scores are {values}"


@check("embeddings.score.order", MUST, spec=SPEC, needs=SCORES)
def test_order(embeddings_score: Recording) -> None:
    """Scores are numbered in the order of the texts."""
    numbers = [row.get("index") for row in results(embeddings_score)]
    need(numbers, "no score came back")

    assert numbers == list(range(len(numbers))), f"indices are {numbers}"


@check("embeddings.score.like-rerank", MUST, spec=SPEC, needs=(*NEEDS, *SCORES))
def test_like_rerank(embeddings_score: Recording, embeddings_rerank: Recording) -> None:
    """A ranking and the scores of the same pairs say the same."""
    ranked = {
        row.get("index"): value
        for row, value in zip(
            results(embeddings_rerank), weights(embeddings_rerank, "relevance_score"), strict=True
        )
    }
    scored = {
        row.get("index"): value
        for row, value in zip(results(embeddings_score), weights(embeddings_score, "score"), strict=True)
    }
    need(set(ranked) == set(scored) and scored, "one of the two is not complete")
    wrong = [
        f"{n}: {scored[n]:.4f} as score, {ranked[n]:.4f} in the ranking"
        for n in scored
        if not math.isclose(scored[n], ranked[n], abs_tol=0.02)
    ]

    assert not wrong, "; ".join(wrong)


@check("embeddings.score.unequal", SHOULD, spec=SPEC, needs=SCORES)
def test_unequal(embeddings_score: Recording, embeddings_score_unequal: Recording) -> None:
    """Two texts against three are refused."""
    offered(embeddings_score)
    embeddings_score_unequal.answered()
    status = embeddings_score_unequal.status or 0

    assert 400 <= status < 500, f"answered with {status}: {embeddings_score_unequal.text[:120]}"
