"""An answer with vectors: its shape, its order, its counts."""

from pytest_vllm import (
    MUST,
    SHOULD,
    Case,
    Recording,
    Recordings,
    Server,
    check,
    listed,
    need,
    not_json,
    only_if,
    unexpected,
)

from .exchanges import TEXTS
from .vectors import answers, rows, vectors

SPEC = "openai:embeddings/object"
NEEDS = ("embeddings",)
AREA = ("embeddings.",)
BATCH = "fault:vllm-project/vllm/issues/10494"


@check("embeddings.answered", MUST, spec=BATCH, needs=NEEDS, exchanges=AREA)
def test_answered(vllm_recordings: Recordings) -> None:
    """Every valid request for vectors is answered with 200, alone or in a batch."""
    wrong = unexpected(vllm_recordings.of("embeddings."))

    assert not wrong, listed(wrong)


@check("embeddings.json", MUST, spec="fault:vllm-project/vllm/issues/19661", needs=NEEDS, exchanges=AREA)
def test_json(vllm_recordings: Recordings) -> None:
    """Answers are JSON, without NaN or Infinity."""
    found = [r for r in vllm_recordings.of("embeddings.") if r.status == 200]
    need(found, "no request was answered")
    wrong = not_json(found)

    assert not wrong, listed(wrong)


@check("embeddings.object", MUST, spec=SPEC, needs=NEEDS)
def test_object(embeddings_batch: Recording) -> None:
    """An answer is a list of embeddings that names its model."""
    body = embeddings_batch.ok
    kinds = {row.get("object") for row in rows(embeddings_batch)}

    assert body.get("object") == "list", f"object is {body.get('object')!r}"
    assert kinds == {"embedding"}, f"its rows are {kinds}"
    assert body.get("model"), f"model is {body.get('model')!r}"


@check("embeddings.model", MUST, spec=SPEC, needs=NEEDS)
def test_model(vllm_server: Server, embeddings_batch: Recording) -> None:
    """An answer names the model that was asked for, or another name of it."""
    named = embeddings_batch.ok.get("model")
    need(named, "the answer names no model")
    known = {vllm_server.model, *vllm_server.models}

    assert named in known, f"model is {named!r}, served are {sorted(known)}"


@check("embeddings.count", MUST, spec=BATCH, needs=NEEDS)
def test_count(embeddings_batch: Recording) -> None:
    """As many vectors come back as texts were sent."""
    count = len(rows(embeddings_batch))

    assert count == len(TEXTS), f"{count} vectors for {len(TEXTS)} texts"


@check("embeddings.order", MUST, spec=BATCH, needs=NEEDS)
def test_order(embeddings_batch: Recording) -> None:
    """Vectors are numbered in the order of the texts."""
    numbers = [row.get("index") for row in rows(embeddings_batch)]
    need(numbers, "the answer held no row")

    assert numbers == list(range(len(numbers))), f"indices are {numbers}"


@check("embeddings.usage", MUST, spec=SPEC, needs=NEEDS)
def test_usage(embeddings_batch: Recording) -> None:
    """The tokens of the texts are counted, and nothing else."""
    usage = embeddings_batch.ok.get("usage") or {}

    assert (usage.get("prompt_tokens") or 0) >= len(TEXTS), f"usage is {usage} for {len(TEXTS)} texts"
    assert usage.get("total_tokens") == usage.get("prompt_tokens"), f"usage is {usage}"


@check("embeddings.usage.like-tokenize", SHOULD, spec=SPEC, needs=("embeddings", "tokenize"))
def test_like_tokenize(embeddings_ids: Recording, embeddings_tokens: Recording) -> None:
    """A text of known tokens counts as many."""
    count = len(embeddings_tokens.ok["tokens"])
    told = (embeddings_ids.ok.get("usage") or {}).get("prompt_tokens")

    assert told == count, f"{told} tokens are counted of {count}"


@check("embeddings.size", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_size(vllm_recordings: Recordings) -> None:
    """All vectors are lists of numbers of one size."""
    found = [r for r in answers(vllm_recordings) if r.key != "embeddings.narrow" and not not_json([r])]
    sizes = {r.key: sorted({len(one) for one in vectors(r)}) for r in found}
    need(any(sizes.values()), "no answer held a row")
    known = {size for row in sizes.values() for size in row}

    assert 0 not in known, f"no numbers in {listed(f'{k}: {v}' for k, v in sizes.items() if 0 in v)}"
    assert len(known) == 1, f"sizes are {listed(f'{key}: {row}' for key, row in sizes.items())}"


@check("embeddings.refused", MUST, spec="openai:embeddings/create", needs=NEEDS)
def test_refused(vllm_server: Server, embedding_refusal: Case, embeddings_refusal: Recording) -> None:
    """A request that makes no sense is refused as the client's fault."""
    since = embedding_refusal.get("since", "0")
    only_if(vllm_server.at_least(since), f"it is refused from {since} on")
    embeddings_refusal.answered()
    status = embeddings_refusal.status

    assert status in embedding_refusal["status"], f"answered with {status}: {embeddings_refusal.text[:120]}"


@check("embeddings.too-long", MUST, spec="openai:embeddings/create", needs=NEEDS)
def test_too_long(vllm_server: Server, embeddings_too_long: Recording) -> None:
    """A text beyond the context is refused, not embedded in part."""
    only_if(vllm_server.max_model_len is not None, "the server does not report its context length")
    embeddings_too_long.answered()
    status = embeddings_too_long.status

    assert status in (400, 413, 422), f"answered with {status}: {embeddings_too_long.text[:120]}"


@check("embeddings.survived", MUST, spec=BATCH, needs=NEEDS)
def test_survived(embeddings_empty: Recording, embeddings_after_empty: Recording) -> None:
    """An empty list is answered or refused, and the next text is embedded."""
    embeddings_empty.answered()
    status, after = embeddings_empty.status or 0, embeddings_after_empty.status

    assert status < 500, f"an empty list is answered with {status}: {embeddings_empty.text[:120]}"
    assert after == 200, f"the next text is answered with {after or embeddings_after_empty.error}"


@check("embeddings.no-chat", MUST, spec="openai:embeddings/create", needs=NEEDS)
def test_no_chat(vllm_server: Server, embeddings_chat: Recording, embeddings_completion: Recording) -> None:
    """A model that only embeds refuses to generate: with 4xx or as not implemented."""
    only_if(not vllm_server.can("chat") and not vllm_server.can("completions"), "the server generates, too")
    embeddings_chat.answered()
    embeddings_completion.answered()
    found = {"chat": embeddings_chat.status or 0, "completion": embeddings_completion.status or 0}
    wrong = [
        f"{name}: {status}" for name, status in found.items() if not (400 <= status < 500 or status == 501)
    ]

    assert not wrong, f"answered with {listed(wrong)}"
