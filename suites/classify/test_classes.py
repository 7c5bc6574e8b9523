"""Every text gets one row of numbers, one for each class: its own, whatever is beside it."""

from __future__ import annotations

import math
from typing import Any

from pytest_vllm import MUST, Recording, Recordings, check, need, only_if, unexpected

from .exchanges import LONG, TEXTS, TIMES

SPEC = "vllm:serving/openai_compatible_server/"
RAW = "fault:vllm-project/vllm/issues/18727"
MANY = "fault:vllm-project/vllm/issues/47956"
NEEDS = ("classify",)
#: What batches may change of a number.
NEAR, SHARE = 0.03, 0.02
#: How near to none or all a number has to be to be written as that; how many others tell how they look.
SURE, SEVERAL = 0.001, 2


def rows(recording: Recording) -> list[dict[str, Any]]:
    """The rows of an answer, in the order of the texts. Raises Undecided where there are none."""
    found = recording.ok.get("data")
    kept = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    need(kept, f"{recording.key} gives no rows")
    return sorted(kept, key=lambda row: row["index"] if isinstance(row.get("index"), int) else len(found))


def numbers(recording: Recording) -> list[list[float]]:
    """The numbers of each text. Raises Undecided where a row has none."""
    found = [row.get("probs") for row in rows(recording)]
    need(all(isinstance(one, list) and one for one in found), f"{recording.key} gives {str(found)[:120]}")
    return [[value if isinstance(value, int | float) else math.nan for value in one or ()] for one in found]


def alike(one: list[float], other: list[float]) -> bool:
    """Whether two rows are the same but for rounding."""
    return len(one) == len(other) and all(
        math.isclose(a, b, rel_tol=SHARE, abs_tol=NEAR) for a, b in zip(one, other, strict=True)
    )


@check("classify.answered", MUST, spec=SPEC, needs=NEEDS, exchanges=("classify.",))
def test_answered(vllm_recordings: Recordings) -> None:
    """Texts of any length are classed, alone and in a batch."""
    wrong = unexpected(vllm_recordings.of("classify."))

    assert not wrong, "; ".join(wrong)


@check("classify.rows", MUST, spec=MANY, needs=NEEDS)
def test_rows(classify_batch: Recording) -> None:
    """Each text has one row, numbered, with as many finite numbers as classes."""
    found = rows(classify_batch)
    indices = [row.get("index") for row in found]
    counts = {(row.get("num_classes"), len(row.get("probs") or ())) for row in found}

    assert indices == list(range(len(TEXTS))), f"indices are {indices}"
    assert len(counts) == 1, f"(classes, numbers) are {sorted(map(str, counts))}"
    assert all(told == count for told, count in counts), f"(classes, numbers) are {sorted(map(str, counts))}"
    assert all(math.isfinite(value) for row in numbers(classify_batch) for value in row), "not all are finite"


@check("classify.probabilities", MUST, spec=RAW, needs=NEEDS)
def test_probabilities(classify_probable: Recording) -> None:
    """Asked for probabilities, the server gives numbers from 0 to 1."""
    wrong = [row for row in numbers(classify_probable) if not all(-0.001 <= value <= 1.001 for value in row)]

    assert not wrong, f"{len(wrong)} of {len(TEXTS)} rows, the first: {wrong[0][:6]}"


@check("classify.labels", MUST, spec=SPEC, needs=NEEDS)
def test_labels(classify_batch: Recording) -> None:
    """A label names the class with the greatest number, the same class each time."""
    # a class that the model's own configuration does not name has none
    told = [row.get("label") for row in rows(classify_batch)]
    best = [max(range(len(row)), key=row.__getitem__) for row in numbers(classify_batch)]
    assert any(told), f"labels are {told}"
    pairs = {(label, at) for label, at in zip(told, best, strict=True) if label}

    assert len(pairs) == len({label for label, _ in pairs}) == len({at for _, at in pairs}), (
        f"labels are {told}, the greatest numbers stand at {best}"
    )


@check("classify.alone", MUST, spec=SPEC, needs=NEEDS)
def test_alone(classify_alone: Recording, classify_batch: Recording) -> None:
    """A text is classed alone as in a batch, and twice alike."""
    alone, batch = numbers(classify_alone), numbers(classify_batch)
    need(len(batch) == len(TEXTS), f"the batch has {len(batch)} rows")
    wrong = [f"{alone[0][:4]} and {row[:4]}" for row in (batch[0], batch[-1]) if not alike(alone[0], row)]

    assert not wrong, f"alone and in a batch: {'; '.join(wrong)}"


@check("classify.any-order", MUST, spec=SPEC, needs=NEEDS)
def test_any_order(classify_batch: Recording, classify_reversed: Recording) -> None:
    """Neither the order nor the number of texts changes what each of them gets."""
    one, other = numbers(classify_batch) * TIMES, numbers(classify_reversed)[::-1]
    need(len(one) == len(other), f"{len(one)} and {len(other)} rows")
    wrong = [
        f"text {n % len(TEXTS)}" for n, pair in enumerate(zip(one, other, strict=True)) if not alike(*pair)
    ]

    assert not wrong, f"as sent and in reverse differ {', '.join(dict.fromkeys(wrong))}"


@check("classify.apart", MUST, spec=SPEC, needs=NEEDS)
def test_apart(classify_batch: Recording) -> None:
    """Texts that differ get numbers that differ."""
    found = {tuple(row) for row in numbers(classify_batch)}
    classes = len(numbers(classify_batch)[0])
    only_if(classes > 1, "there is one class")

    assert len(found) > 1, f"all {len(TEXTS)} texts get {next(iter(found))[:4]}"


@check("classify.usage", MUST, spec=SPEC, needs=NEEDS)
def test_usage(classify_alone: Recording, classify_batch: Recording) -> None:
    """Tokens are counted, more for more texts."""
    one, many = (
        (found.ok.get("usage") or {}).get("prompt_tokens") for found in (classify_alone, classify_batch)
    )

    assert isinstance(one, int), f"prompt tokens of one text are {one!r}"
    assert isinstance(many, int), f"prompt tokens of {len(TEXTS)} texts are {many!r}"
    assert 0 < one < many, f"{one} prompt tokens for one text, {many} for {len(TEXTS)}"


@check("classify.nothing", MUST, spec=SPEC, needs=NEEDS)
def test_nothing(classify_nothing: Recording) -> None:
    """A request without a text does not break the server."""
    classify_nothing.answered()
    status = classify_nothing.status or 0

    assert status < 500, f"answered with {status}: {classify_nothing.text[:120]}"


@check("classify.beside-deep", MUST, spec="fault:vllm-project/vllm/issues/23223", needs=NEEDS)
def test_beside_deep(classify_batch: Recording, classify_deep: Recording) -> None:
    """A text is classed beside one that is read in several steps as beside short ones."""
    before, beside = numbers(classify_batch), numbers(classify_deep)
    pairs = {"before it": (before[0], beside[0]), "behind it": (before[2], beside[2])}
    wrong = [f"{place}: {a[:3]}, {b[:3]}" for place, (a, b) in pairs.items() if not alike(a, b)]

    assert not wrong, "; ".join(wrong)


@check("classify.raw", MUST, spec=RAW, needs=NEEDS)
def test_raw(classify_raw: Recording, classify_probable: Recording) -> None:
    """Probabilities are those that the raw numbers give."""
    classify_raw.answered()
    only_if(classify_raw.status != 400, f"refused: {classify_raw.text[:120]}")
    pairs = [*zip(numbers(classify_raw), numbers(classify_probable), strict=True)]
    wrong = [
        f"text {at}: {told} of {raw}"
        for at, (raw, told) in enumerate(pairs)
        if not any(alike(made(raw), told) for made in (_shared, _each, list))
    ]

    assert not wrong, "; ".join(wrong)


@check("classify.single", MUST, spec=SPEC, needs=NEEDS, exchanges=["classify.single["])
def test_single(classify_batch: Recording, vllm_recordings: Recordings) -> None:
    """A text is classed alike by itself, as a list of one and in a batch."""
    forms = [vllm_recordings.get(f"classify.single[{name}]") for name in ("text", "list")]
    costs = [(one.ok.get("usage") or {}).get("prompt_tokens") for one in forms]
    there = numbers(classify_batch)[TEXTS.index(LONG)]
    wrong = [f"{one.key}: {numbers(one)[0]}" for one in forms if not alike(numbers(one)[0], there)]

    assert not wrong, f"in a batch {there}, {'; '.join(wrong)}"
    assert costs[0] == costs[1], f"{costs[0]} tokens as a text, {costs[1]} as a list of one"


@check("classify.every.numbered", MUST, spec=MANY, needs=NEEDS, exchanges=["classify."])
def test_numbered(vllm_recordings: Recordings) -> None:
    """Every row of a batch, however large, is numbered as its text was sent."""
    batches = [
        (one.key, [row.get("index") for row in one.ok.get("data") or ()], len(one.request.json["input"]))
        for one in vllm_recordings.of("classify.")
        if one.status == 200 and isinstance(one.request.json["input"], list)
    ]
    only_if(batches, "no batch was classed")
    wrong = [f"{key}: {told}" for key, told, count in batches if told != list(range(count))]

    assert not wrong, f"rows are numbered {'; '.join(wrong)[:300]}"


def _shared(raw: list[float]) -> list[float]:
    powers = [math.exp(value - max(raw)) for value in raw]
    return [power / sum(powers) for power in powers]


def _each(raw: list[float]) -> list[float]:
    return [1 / (1 + math.exp(-max(min(value, 500.0), -500.0))) for value in raw]


@check("classify.every.precise", MUST, spec=SPEC, needs=NEEDS, exchanges=["classify."])
def test_precise(vllm_recordings: Recordings) -> None:
    """Numbers between none and all have more digits than rounded ones."""
    told = [
        n for one in vllm_recordings.of("classify.") if one.status == 200 for row in _told(one) for n in row
    ]
    between = {n for n in told if SURE < abs(n) < 1 - SURE}
    only_if(len(between) >= SEVERAL, f"{len(between)} numbers are neither none nor all")

    assert any(round(n, 3) != n for n in between), f"rounded: {sorted(between)[:6]}"


def _told(one: Recording) -> list[list[float]]:
    data = one.ok.get("data")
    found = [row.get("probs") for row in data if isinstance(row, dict)] if isinstance(data, list) else []
    return [[n for n in row if isinstance(n, float)] for row in found if isinstance(row, list)]
