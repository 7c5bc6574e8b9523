"""Defects of servers that rank and class: relevances and classes that depend on what else is sent."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.choose import failure, in_body, refused
from pytest_vllm.sim.defects.make import spoil
from pytest_vllm.sim.defects.registry import add
from pytest_vllm.sim.defects.scope import only

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.reply import Exchange, Reply

ON: dict[str, Any] = {"profile": "sim-rerank"}
CLASSES: dict[str, Any] = {"profile": "sim-classify"}
RERANK, SCORE, CLASSIFY = ("/rerank", "/v1/rerank", "/v2/rerank"), ("/score", "/v1/score"), ("/classify",)
#: Characters from which on a document counts as long.
LONG = 300
Json = dict[str, Any]


def _documents(asked: Json) -> list[str]:
    found = asked.get("documents")
    return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []


def _relevances(change: Callable[[float, int, list[str]], float]) -> Callable[[Json, Json], None]:
    """Every relevance, changed by its document's number and all documents; sorted anew."""

    def changed(body: Json, asked: Json) -> None:
        texts = _documents(asked)
        for row in body.get("results") or ():
            row["relevance_score"] = change(row["relevance_score"], row["index"], texts)
        body.get("results", []).sort(key=lambda row: -row["relevance_score"])

    return changed


def _crowded(value: float, number: int, texts: list[str]) -> float:
    return value / 3 if len(texts) > 1 and len(texts[number]) > LONG else value


def _early(value: float, number: int, texts: list[str]) -> float:
    return value / 3 if number > 1 and len(texts) > 2 else value


in_body(
    "ranking.long-ones-sink",
    "Beside others, long documents are less relevant than alone.",
    RERANK,
    _relevances(_crowded),
    faults=["vllm-project/vllm#22983"],
    catches=["ranking.alone", "ranking.like-scores"],
    **ON,
)
in_body(
    "ranking.first-favoured",
    "The documents that are sent first are the more relevant for it.",
    RERANK,
    _relevances(_early),
    catches=["ranking.any-order", "ranking.alone"],
    **ON,
)
in_body(
    "ranking.second-version-raw",
    "One address of the route gives numbers that no activation has seen.",
    RERANK[2:],
    _relevances(lambda value, *_: math.log(value / (1 - value)) if 0 < value < 1 else value),
    catches=["ranking.routes-agree"],
    **ON,
)
refused(
    "ranking.second-version-breaks",
    "One address of the route ends in a server error.",
    RERANK[2:],
    500,
    failure("'NoneType' object has no attribute 'text'"),
    catches=["ranking.routes-agree"],
    **ON,
)


def _many_to_many(body: Json, asked: Json) -> None:
    if isinstance(asked.get("text_1"), list) and len(asked["text_1"]) > 1:
        values = [row["score"] for row in body["data"]]
        for row, value in zip(body["data"], values[1:] + values[:1], strict=True):
            row["score"] = value


in_body(
    "ranking.pairs-shifted",
    "Many texts against as many are scored a place further on.",
    SCORE,
    _many_to_many,
    catches=["ranking.pair-by-pair"],
    **ON,
)
spoil(
    "ranking.uncounted",
    "The tokens of a ranking are not counted.",
    RERANK,
    "usage.total_tokens",
    0,
    catches=["ranking.usage"],
    **ON,
)
in_body(
    "ranking.document-twice",
    "Long rankings hold a document twice.",
    RERANK,
    lambda body, asked: len(_documents(asked)) > 1 and body["results"].append(dict(body["results"][0])),
    area="embeddings",
    catches=["ranking.complete", "embeddings.rerank.complete"],
    **ON,
)
in_body(
    "ranking.last-left-out",
    "The least relevant of several documents is left out.",
    RERANK,
    lambda body, asked: len(_documents(asked)) > 2 and body["results"].pop(),
    catches=["ranking.complete", "embeddings.rerank.complete"],
    **ON,
)
refused(
    "ranking.long-breaks",
    "Long documents beside short ones end in a server error.",
    (*RERANK, *SCORE),
    500,
    failure("The size of tensor a must match the size of tensor b"),
    lambda asked: len({len(text) > LONG for text in _documents(asked)}) > 1,
    catches=["ranking.answered"],
    **ON,
)


def _rows(change: Callable[[list[float], int, int], list[float]]) -> Callable[[Json, Json], None]:
    """The numbers of every row, changed by the row's number and how many there are."""

    def changed(body: Json, asked: Json) -> None:
        del asked
        rows = body.get("data") or []
        for row in rows:
            row["probs"] = change(row["probs"], row["index"], len(rows))

    return changed


def _one_for_all(body: Json, asked: Json) -> None:
    del asked
    for row in body.get("data") or ():
        row |= {name: body["data"][0][name] for name in ("probs", "label")}


def _relabelled(body: Json, asked: Json) -> None:
    del asked
    for row in (body.get("data") or [])[1::2]:
        row["label"] = f"{row['label']}-2"


in_body(
    "classify.raw",
    "The numbers of classes are logits, whatever was asked for.",
    CLASSIFY,
    _rows(lambda row, *_: [math.log(value + 1e-9) for value in row]),
    faults=["vllm-project/vllm#18727"],
    catches=["classify.probabilities"],
    **CLASSES,
)
in_body(
    "classify.two-of-three",
    "A model of three classes gives two numbers.",
    CLASSIFY,
    _rows(lambda row, *_: row[:2]),
    faults=["vllm-project/vllm#47956"],
    catches=["classify.rows"],
    **CLASSES,
)
in_body(
    "classify.labels-drift",
    "In a batch the same class has other labels.",
    CLASSIFY,
    _relabelled,
    catches=["classify.labels"],
    **CLASSES,
)
in_body(
    "classify.one-for-all",
    "All texts of a batch get the numbers of the first.",
    CLASSIFY,
    _one_for_all,
    catches=["classify.apart", "classify.any-order"],
    **CLASSES,
)
in_body(
    "classify.first-turned",
    "The first text of a batch gets its numbers in another order.",
    CLASSIFY,
    _rows(lambda row, number, count: row[::-1] if count > 1 and not number else row),
    catches=["classify.any-order"],
    **CLASSES,
)
in_body(
    "classify.batch-flatter",
    "In a batch the numbers are flatter than alone.",
    CLASSIFY,
    _rows(lambda row, _, count: [(value + 1) / (len(row) + 1) for value in row] if count > 1 else row),
    catches=["classify.alone"],
    **CLASSES,
)
spoil(
    "classify.uncounted",
    "The tokens of texts that are classed are not counted.",
    CLASSIFY,
    "usage.prompt_tokens",
    0,
    catches=["classify.usage"],
    **CLASSES,
)
refused(
    "classify.batch-breaks",
    "Several texts in a request end in a server error.",
    CLASSIFY,
    500,
    failure("list index out of range"),
    lambda asked: isinstance(asked.get("input"), list) and len(asked["input"]) > 1,
    catches=["classify.answered"],
    **CLASSES,
)


def _breaks_empty(reply: Reply, exchange: Exchange) -> Reply:
    """Nothing to class is more than the server can take."""
    given = exchange.body.get("input") if isinstance(exchange.body, dict) else None
    if given == []:
        reply.status, reply.body = 500, failure("list index out of range")
    return reply


add(
    "classify.nothing-breaks",
    "A request to class no text ends in a server error.",
    {"reply": only(CLASSIFY, _breaks_empty)},
    catches=["classify.nothing"],
    **CLASSES,
)

spoil(
    "ranking.scores-unbilled",
    "Scores come without a usage.",
    ("/score", "/v1/score"),
    "usage",
    profile="sim-rerank",
    catches=["ranking.every.billed"],
)
