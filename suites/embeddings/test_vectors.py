"""The vectors themselves: numbers, lengths, sameness, meaning."""

import math

from pytest_vllm import (
    CAPABILITY,
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
)

from .exchanges import LETTERS, LIKE, LONG, OTHER, SHORT, TEXTS, TIMES
from .vectors import answers, length, likeness, rows, vector, vectors

SPEC = "openai:embeddings/object"
NEEDS = ("embeddings",)
AREA = ("embeddings.",)
POOLED = "fault:vllm-project/vllm/issues/45995"
DRIFT = "fault:vllm-project/vllm/issues/34910"
LENGTHS = "fault:vllm-project/vllm/pull/41049"
UNCUT = "fault:vllm-project/vllm/issues/22635"
#: Cosine of two computations of one text: half precision and another batch leave more than this.
SAME = 0.99


def numbered(recording: Recording, count: int) -> list[tuple[float, ...]]:
    """The vectors of a batch by index. Raises Undecided where some are missing."""
    found = {row.get("index"): vector(row) for row in rows(recording)}
    need(all(found.get(number) for number in range(count)), "the batch is not complete")
    return [found[number] for number in range(count)]


@check("embeddings.finite", MUST, spec="fault:vllm-project/vllm/issues/19661", needs=NEEDS, exchanges=AREA)
def test_finite(vllm_recordings: Recordings) -> None:
    """No vector is null, and none holds a number that is not finite."""
    found = [(r.key, one) for r in answers(vllm_recordings) if not not_json([r]) for one in vectors(r) if one]
    need(found, "no answer held a vector")
    wrong = [f"{key}: {one[:3]}" for key, one in found if not all(map(math.isfinite, one)) or not any(one)]

    assert not wrong, listed(wrong)


@check("embeddings.unit", MUST, spec="fault:vllm-project/vllm/issues/57498", needs=NEEDS, exchanges=AREA)
def test_unit(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Vectors have length 1, whatever the length of their text."""
    told = [name for name in vllm_server.args if "pooler-config" in name]
    only_if(not told, f"--{''.join(told[:1])} says how vectors are made")
    found = [
        (r.key, length(one))
        for r in answers(vllm_recordings)
        if not not_json([r])
        for one in vectors(r)
        if one
    ]
    need(found, "no answer held a vector")
    wrong = [f"{key}: {size:.4f}" for key, size in found if abs(size - 1) > 0.01]

    assert not wrong, f"lengths are {listed(wrong)}; if the model does not normalise, set --pooler-config"


@check("embeddings.same-in-batch", MUST, spec=DRIFT, needs=NEEDS)
def test_same_in_batch(embedded_text: Case, embeddings_text: Recording, embeddings_batch: Recording) -> None:
    """A text has the same vector alone and among others, in the place it was sent."""
    alone = vectors(embeddings_text)
    need(len(alone) == 1 and alone[0], "the text alone has no vector")
    place = {"short": SHORT, "long": LONG, "letters": LETTERS}[embedded_text.id]
    cosine = likeness(alone[0], numbered(embeddings_batch, len(TEXTS))[TEXTS.index(place)])

    assert cosine >= SAME, f"cosine is {cosine:.4f} between {embedded_text.id} alone and in a batch"


@check("embeddings.base64.batch", MUST, spec=SPEC, needs=NEEDS)
def test_base64_batch(embeddings_batch: Recording, embeddings_batch_base64: Recording) -> None:
    """The vectors of a batch as base64 are those that it has as numbers."""
    plain, coded = (numbered(one, len(TEXTS)) for one in (embeddings_batch, embeddings_batch_base64))
    wrong = [f"text {at}: {near:.4f}" for at, near in enumerate(map(likeness, plain, coded)) if near < SAME]

    assert not wrong, f"cosines: {listed(wrong)}"


@check("embeddings.pooled.same", MUST, spec=POOLED, needs=NEEDS)
def test_pooled(embeddings_batch: Recording, embeddings_pooled: Recording) -> None:
    """`/pooling` gives texts the direction that `/v1/embeddings` gives them."""
    embeddings_pooled.answered()
    only_if(embeddings_pooled.status not in (400, 404), f"refused: {embeddings_pooled.text[:120]}")
    found = {row.get("index"): row.get("data") for row in rows(embeddings_pooled)}
    plain = numbered(embeddings_batch, len(TEXTS))
    only_if(
        not any(isinstance(row, list) and row and isinstance(row[0], list) for row in found.values()),
        "this server pools each token by itself",
    )
    wrong = [
        f"text {at}: {near:.4f}"
        for at, one in enumerate(plain)
        if (near := likeness(one, vector({"embedding": found.get(at)}))) < SAME
    ]

    assert not wrong, f"cosines: {listed(wrong)}"


@check("embeddings.pooled.length", MUST, spec=POOLED, needs=NEEDS)
def test_pooled_length(
    vllm_server: Server, embeddings_batch: Recording, embeddings_pooled: Recording
) -> None:
    """`/pooling` gives texts vectors as long as those of `/v1/embeddings`."""
    only_if(vllm_server.at_least("0.12.0"), "before 0.12 what is pooled need not be normalised")
    embeddings_pooled.answered()
    only_if(embeddings_pooled.status not in (400, 404), f"refused: {embeddings_pooled.text[:120]}")
    found = {row.get("index"): vector({"embedding": row.get("data")}) for row in rows(embeddings_pooled)}
    pairs = [
        (length(one), length(found.get(at) or ()))
        for at, one in enumerate(numbered(embeddings_batch, len(TEXTS)))
    ]
    only_if(any(other for _, other in pairs), "this server pools each token by itself")
    wrong = [
        f"text {at}: {other:.4f}, not {one:.4f}"
        for at, (one, other) in enumerate(pairs)
        if abs(one - other) > 0.02 * one
    ]

    assert not wrong, f"lengths: {listed(wrong)}"


#: Where the texts of the batch with long ones stand in it, and in the batch without.
MIXED = {SHORT: (0, 0), OTHER: (2, 2), LIKE: (5, 5), LETTERS: (8, 3)}


@check("embeddings.same-beside-long", MUST, spec=LENGTHS, needs=NEEDS)
def test_same_beside_long(embeddings_mixed: Recording, embeddings_batch: Recording) -> None:
    """A short text has the same vector with long ones around it."""
    embeddings_mixed.answered()
    status = embeddings_mixed.status

    assert status == 200, f"nine texts, five of them long: {status} {embeddings_mixed.text[:200]}"
    mixed, plain = numbered(embeddings_mixed, 9), numbered(embeddings_batch, len(TEXTS))
    cosines = {text[:24]: likeness(mixed[here], plain[there]) for text, (here, there) in MIXED.items()}
    assert min(cosines.values()) >= SAME, f"cosines with the batch without long texts: {cosines}"


@check("embeddings.many-long", MUST, spec="fault:vllm-project/vllm/pull/48214", needs=NEEDS)
def test_many_long(embeddings_many_long: Recording) -> None:
    """Many long texts at once are embedded, the same text twice alike."""
    embeddings_many_long.answered()
    status, text = embeddings_many_long.status, embeddings_many_long.text
    only_if(status != 400, f"refused: {text[:120]}")
    assert status == 200, f"twelve long texts: {status} {text[:200]}"
    found = numbered(embeddings_many_long, 12)
    cosine = likeness(found[0], found[-1])

    assert cosine >= SAME, f"the cosine of the same text in the first place and in the last is {cosine:.3f}"


@check("embeddings.uncut", MUST, spec=UNCUT, needs=NEEDS)
def test_uncut(embeddings_uncut: Recording, embeddings_two: Recording) -> None:
    """A text that is shorter than the limit is not cut, and has its vector."""
    embeddings_uncut.answered()

    assert embeddings_uncut.status == 200, f"{embeddings_uncut.status} {embeddings_uncut.text[:200]}"
    cosine = likeness(numbered(embeddings_uncut, 1)[0], numbered(embeddings_two, 2)[0])
    assert cosine >= SAME, f"cosine is {cosine:.4f} to the same text without a limit"


@check("embeddings.cut", MUST, spec="fault:BerriAI/litellm/pull/39363", needs=NEEDS)
def test_cut(embeddings_cut: Recording) -> None:
    """A text is cut to the tokens that it may have."""
    embeddings_cut.answered()
    status, limit = embeddings_cut.status, embeddings_cut.request.json["truncate_prompt_tokens"]
    only_if(status not in (400, 422), f"this server takes no limit: {embeddings_cut.text[:120]}")
    assert status == 200, f"with truncate_prompt_tokens {limit}: {status} {embeddings_cut.text[:160]}"
    used = (embeddings_cut.ok.get("usage") or {}).get("prompt_tokens")
    need(used, "the tokens are not counted")

    assert used <= limit, f"{used} prompt tokens, truncate_prompt_tokens is {limit}"


@check("embeddings.same-in-any-order", MUST, spec=DRIFT, needs=NEEDS)
def test_any_order(embeddings_batch: Recording, embeddings_reversed: Recording) -> None:
    """Neither the order nor the number of texts changes their vectors."""
    forth, back = numbered(embeddings_batch, len(TEXTS)), numbered(embeddings_reversed, len(TEXTS) * TIMES)
    cosines = [likeness(a, b) for a, b in zip(forth * TIMES, reversed(back), strict=True)]

    wrong = [f"text {at % len(TEXTS)}: {one:.3f}" for at, one in enumerate(cosines) if one < SAME]
    assert not wrong, f"of {len(cosines)} cosines {len(wrong)} are low: {listed(wrong)}"


@check("embeddings.twice-the-same", MUST, spec=DRIFT, needs=NEEDS)
def test_twice(embeddings_batch: Recording) -> None:
    """A text that stands twice in a batch has the same vector twice."""
    found = numbered(embeddings_batch, len(TEXTS))
    cosine = likeness(found[0], found[TEXTS.index(SHORT, 1)])

    assert cosine >= SAME, f"cosine is {cosine:.4f}"


@check("embeddings.distinct", MUST, spec=POOLED, needs=NEEDS)
def test_distinct(embeddings_batch: Recording) -> None:
    """Different texts have different vectors."""
    found = numbered(embeddings_batch, len(TEXTS))
    cosine = likeness(found[0], found[TEXTS.index(OTHER)])

    assert cosine < 1 - 1e-6, f"two texts that share no word have cosine {cosine:.7f}"


@check("embeddings.base64", MUST, spec="openai:embeddings/create", needs=NEEDS)
def test_base64(embeddings_two: Recording, embeddings_base64: Recording) -> None:
    """Base64 holds the same numbers, as little-endian floats of 32 bits."""
    plain, packed = vectors(embeddings_two), vectors(embeddings_base64)
    need(plain and all(plain), "the plain answer holds no vectors")
    raw = [type(row.get("embedding")).__name__ for row in rows(embeddings_base64)]

    assert raw == ["str"] * len(plain), f"the vectors are of type {raw}"
    assert [len(one) for one in packed] == [len(one) for one in plain], (
        f"{[len(one) for one in packed]} numbers in base64, {[len(one) for one in plain]} in plain"
    )
    cosines = [likeness(a, b) for a, b in zip(plain, packed, strict=True)]
    assert min(cosines) >= SAME, f"cosines are {[round(cosine, 4) for cosine in cosines]}"


@check("embeddings.ids-like-text", MUST, spec="openai:embeddings/create", needs=("embeddings", "tokenize"))
def test_ids(embeddings_ids: Recording, embeddings_batch: Recording) -> None:
    """A text and its token ids have the same vector."""
    given = vectors(embeddings_ids)
    need(given and given[0], "the token ids have no vector")
    cosine = likeness(given[0], numbered(embeddings_batch, len(TEXTS))[0])

    assert cosine >= SAME, f"cosine is {cosine:.4f}"


@check("embeddings.narrow", MUST, spec="openai:embeddings/create", needs=NEEDS)
def test_narrow(embeddings_narrow: Recording) -> None:
    """Vectors have as many dimensions as were asked for, or the request is refused."""
    embeddings_narrow.answered()
    status = embeddings_narrow.status or 0
    sizes = [len(one) for one in vectors(embeddings_narrow)] if status == 200 else []

    assert sizes == [32] or 400 <= status < 500, f"answered with {status}, sizes {sizes}, asked for 32"


@check(
    "embeddings.meaning", MUST, spec="fault:vllm-project/vllm/issues/11801", needs=NEEDS, family=CAPABILITY
)
def test_meaning(embeddings_batch: Recording) -> None:
    """Two ways to say one thing are nearer to each other than to something else."""
    found = numbered(embeddings_batch, len(TEXTS))
    near = likeness(found[TEXTS.index(SHORT)], found[TEXTS.index(LIKE)])
    far = max(likeness(found[TEXTS.index(one)], found[TEXTS.index(OTHER)]) for one in (SHORT, LIKE))

    assert near > far, f"cosine is {near:.3f} for the same thing, {far:.3f} for another"


@check("embeddings.spread", SHOULD, spec=POOLED, needs=NEEDS, family=CAPABILITY)
def test_spread(embeddings_batch: Recording) -> None:
    """Unrelated texts do not point into nearly one direction."""
    found = numbered(embeddings_batch, len(TEXTS))
    cosine = likeness(found[TEXTS.index(SHORT)], found[TEXTS.index(OTHER)])

    assert cosine < 0.95, f"cosine is {cosine:.3f} between texts that share no word"
