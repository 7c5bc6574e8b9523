"""What texts cost to embed, over every request of the run: batches cost what their texts cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Recordings, check, listed, observe, only_if

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm import Recording

ROUTE = "/v1/embeddings"
#: Numbers of a half-precision model have more digits than these; so many are never all round by chance.
DIGITS, ENOUGH = 4, 16
#: Fields that may change what of a text is read.
CUTS = ("truncate_prompt_tokens", "add_special_tokens", "messages", "truncation_side")


@check(
    "embeddings.every.billed", MUST, spec="openai:embeddings/object", needs=["embeddings"], exchanges=["*"]
)
def test_billed(vllm_recordings: Recordings) -> None:
    """A batch costs what its texts cost alone, in any order and format."""
    rows = [row for one in vllm_recordings.of("") for row in _billed(one)]
    alone = {texts[0]: count for _, texts, count in rows if len(texts) == 1}
    batches = [row for row in rows if len(row[1]) > 1]
    only_if(batches, "no batch was embedded")
    observe("batches", len(batches))
    wrong = [f"{key}: {fault}" for key, texts, count in batches if (fault := _off(texts, count, alone))]
    first: dict[tuple[str, ...], tuple[str, int]] = {}
    for key, texts, count in batches:
        other, before = first.setdefault(tuple(sorted(texts)), (key, count))
        wrong += [f"{key}: {count} tokens, {other} of the same texts {before}"] if count != before else []

    assert not wrong, listed(wrong)


@check(
    "embeddings.every.precise", MUST, spec="openai:embeddings/object", needs=["embeddings"], exchanges=["*"]
)
def test_precise(vllm_recordings: Recordings) -> None:
    """Vectors hold more digits than a rounded number has."""
    found = [(one.key, values) for one in vllm_recordings.of("") for values in _plain(one)]
    only_if(found, "no answer held a vector of numbers")
    observe("vectors", len(found))
    wrong = [key for key, values in found if all(round(value, DIGITS) == value for value in values)]

    assert not wrong, f"rounded to {DIGITS} digits or fewer: {listed(wrong)}"


@check(
    "embeddings.every.numbered", MUST, spec="openai:embeddings/object", needs=["embeddings"], exchanges=["*"]
)
def test_numbered(vllm_recordings: Recordings) -> None:
    """Every row of a batch, however large, is numbered as its text was sent."""
    told = [
        (one.key, [row.get("index") for row in one.json["data"] if isinstance(row, dict)])
        for one in vllm_recordings.of("")
        if one.request.path in (ROUTE, "/pooling") and one.status == 200 and not one.failure
        if isinstance(one.json, dict) and isinstance(one.json.get("data"), list)
    ]
    only_if(told, "no answer holds rows")
    wrong = [f"{key}: {rows}" for key, rows in told if rows != list(range(len(rows)))]

    assert not wrong, f"rows are numbered {listed(wrong)}"


def _plain(one: Recording) -> Iterator[list[float]]:
    """The vectors of an answer, where they are lists of numbers long enough to judge."""
    ok = one.request.path in (ROUTE, "/pooling") and one.status == 200 and not one.failure
    rows = one.json.get("data") if ok and isinstance(one.json, dict) else None
    for row in rows if isinstance(rows, list) else ():
        values = row.get("embedding", row.get("data")) if isinstance(row, dict) else None
        if isinstance(values, list) and len(values) >= ENOUGH and all(isinstance(n, float) for n in values):
            yield values


def _off(texts: list[str], count: int, alone: dict[str, int]) -> str:
    """How the count of a batch does not fit those of its texts; each costs a token at least."""
    known = [alone[text] for text in texts if text in alone]
    least = sum(known) + len(texts) - len(known)
    if len(known) == len(texts) and count != least:
        return f"{count} tokens, alone they cost {least}"
    return (
        f"{count} tokens, {len(known)} of its {len(texts)} texts alone cost {sum(known)}"
        if count < least
        else ""
    )


def _billed(one: Recording) -> Iterator[tuple[str, list[str], int]]:
    """Key, texts and tokens of an answer that embedded whole texts."""
    asked = one.request.json
    if one.request.path != ROUTE or one.status != 200 or not isinstance(asked, dict) or one.failure:
        return
    given: Any = asked.get("input")
    texts = [given] if isinstance(given, str) else given
    usage = (one.json if isinstance(one.json, dict) else {}).get("usage")
    count = usage.get("prompt_tokens") if isinstance(usage, dict) else None
    plain = isinstance(texts, list) and all(isinstance(text, str) for text in texts)
    if plain and texts and isinstance(count, int) and not any(asked.get(name) is not None for name in CUTS):
        yield one.key, [json.dumps(text) for text in texts], count
