"""Every answer of a route that scores, ranks, classifies or embeds is billed."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Recordings, check, listed, observe, only_if

if TYPE_CHECKING:
    from pytest_vllm import Recording

RANKS = "fault:QwenLM/Qwen3-Embedding/issues/71"
#: How near to none or all a number has to be to be written as that; how many others tell how they look.
SURE, SEVERAL = 0.001, 3
ROUTES = ("/score", "/v1/score", "/rerank", "/v1/rerank", "/v2/rerank", "/classify", "/v1/embeddings")


@check("ranking.every.billed", MUST, spec="vllm:serving/openai_compatible_server/", exchanges=["*"])
def test_billed(vllm_recordings: Recordings) -> None:
    """Every answer that scores, ranks, classifies or embeds is billed tokens."""
    answered = [one for one in vllm_recordings.of("") if _answers(one)]
    only_if(answered, "nothing was asked of such a route")
    told = [(one.key, usage) for one in answered if (usage := _usage(one)) is not None]
    observe("answers", len(answered))
    wrong = [f"{one.key}: no usage" for one in answered if _usage(one) is None]
    wrong += [
        f"{key}: {usage}" for key, usage in told if not usage.get("total_tokens", usage.get("prompt_tokens"))
    ]
    wrong += [
        f"{key}: {usage}"
        for key, usage in told
        if {"prompt_tokens", "total_tokens"} <= usage.keys()
        and usage["prompt_tokens"] > usage["total_tokens"]
    ]

    assert not wrong, listed(wrong)


@check("ranking.every.ranked", MUST, spec=RANKS, exchanges=["ranking.many", "*"])
def test_ranked(vllm_recordings: Recordings) -> None:
    """Every ranking is sorted and whole, and names documents by their places."""
    found = [one for one in vllm_recordings.of("") if _ranking(one)]
    only_if(found, "nothing was ranked")
    observe("rankings, and the longest", f"{len(found)}, {max(len(_rows(one)) for one in found)} documents")
    wrong = [f"{one.key}: {fault}" for one in found if (fault := _misranked(one))]

    assert not wrong, listed(wrong)


@check("ranking.every.numbered", MUST, spec=RANKS, exchanges=["ranking.pairs", "*"])
def test_numbered(vllm_recordings: Recordings) -> None:
    """Every score of a request is numbered as its pair was sent."""
    told = [
        (one.key, [row.get("index") for row in one.json["data"] if isinstance(row, dict)])
        for one in vllm_recordings.of("")
        if one.request.path.endswith("/score") and one.status == 200 and not one.failure
        if isinstance(one.json, dict) and isinstance(one.json.get("data"), list)
    ]
    only_if(told, "nothing was scored")
    wrong = [f"{key}: {rows}" for key, rows in told if rows != list(range(len(rows)))]

    assert not wrong, f"scores are numbered {listed(wrong)}"


@check("ranking.every.precise", MUST, spec=RANKS, exchanges=["ranking.mixed", "ranking.many", "*"])
def test_precise(vllm_recordings: Recordings) -> None:
    """Relevances between none and all have more digits than rounded ones."""
    told = [
        row.get("relevance_score") for one in vllm_recordings.of("") if _ranking(one) for row in _rows(one)
    ]
    between = {value for value in told if isinstance(value, float) and SURE < abs(value) < 1 - SURE}
    only_if(len(between) >= SEVERAL, f"{len(between)} relevances are neither none nor all")

    assert any(round(value, 3) != value for value in between), f"rounded: {sorted(between)[:6]}"


def _ranking(one: Recording) -> bool:
    asked = one.request.json
    ranks = one.request.path.endswith("/rerank") and one.status == 200 and not one.failure
    return ranks and isinstance(asked, dict) and isinstance(asked.get("documents"), list) and bool(_rows(one))


def _rows(one: Recording) -> list[dict[str, Any]]:
    found = one.json.get("results") if isinstance(one.json, dict) else None
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def _misranked(one: Recording) -> str:
    """How a ranking is wrong; empty where it is right."""
    asked, rows = one.request.json, _rows(one)
    documents, places = asked["documents"], [row.get("index") for row in rows]
    wanted = min(asked.get("top_n") or len(documents), len(documents))
    if len(rows) != wanted:
        return f"{len(rows)} of {wanted} documents"
    if len(set(places)) < len(places) or not all(place in range(len(documents)) for place in places):
        return f"places {places} of {len(documents)} documents"
    values = [row.get("relevance_score") for row in rows]
    if any(b > a for a, b in pairwise(value for value in values if isinstance(value, (int, float)))):
        return f"not sorted: {values}"
    told = [
        (place, row["document"].get("text")) for place, row in zip(places, rows, strict=True) if _told(row)
    ]
    other = [
        (place, text)
        for place, text in told
        if isinstance(documents[place], str) and text != documents[place]
    ]
    cut = any(asked.get(name) is not None for name in ("truncate_prompt_tokens", "max_tokens_per_doc"))
    return f"document {other[0][0]} as {other[0][1][:60]!r}" if other and not cut else ""


def _told(row: dict[str, Any]) -> bool:
    return isinstance(row.get("document"), dict) and isinstance(row["document"].get("text"), str)


def _answers(one: Recording) -> bool:
    """Whether this is an object that scores, ranks, classifies or embeds."""
    asked = one.request.path in ROUTES and one.status == 200 and not one.failure
    return asked and isinstance(one.json, dict) and "error" not in one.json


def _usage(one: Recording) -> dict[str, Any] | None:
    usage = one.json.get("usage")
    return usage if isinstance(usage, dict) else None
