"""Texts that are given as the ids of their tokens, several at once."""

from __future__ import annotations

from pytest_vllm import MUST, Recording, check, need, only_if

from .vectors import likeness, vectors

SPEC = "openai:embeddings/create#input"
NEEDS = ("embeddings", "tokenize")
#: As near as one text in two batches is to itself.
SAME = 0.99


@check("embeddings.id-batch.counted", MUST, spec=SPEC, needs=NEEDS)
def test_counted(embeddings_ids: Recording, embeddings_id_batch: Recording) -> None:
    """Texts that are given as ids cost as much in a batch as alone."""
    only_if(embeddings_id_batch.status not in (400, 422), f"refused: {embeddings_id_batch.text[:120]}")
    alone, both = (one.ok["usage"]["prompt_tokens"] for one in (embeddings_ids, embeddings_id_batch))
    ids = len(embeddings_ids.request.json["input"])
    need(alone >= ids, f"alone {alone} tokens are counted of {ids}")

    assert both == 2 * alone + ids, f"{ids} ids alone cost {alone}, they and twice as many cost {both}"


@check("embeddings.id-batch.same", MUST, spec=SPEC, needs=NEEDS)
def test_same(embeddings_ids: Recording, embeddings_id_batch: Recording) -> None:
    """A text that is given as ids has the same vector in a batch as alone."""
    only_if(embeddings_id_batch.status not in (400, 422), f"refused: {embeddings_id_batch.text[:120]}")
    alone, both = vectors(embeddings_ids), vectors(embeddings_id_batch)
    need(alone and alone[0], "alone the ids have no vector")

    assert len(both) == 2, f"{len(both)} vectors of two texts"
    assert likeness(alone[0], both[0]) >= SAME, f"cosine is {likeness(alone[0], both[0]):.4f}"
