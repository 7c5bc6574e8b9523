"""How many greedy answers differ, from which token on, and whether that is more than chance.

A server may answer the same request in two ways when near ties are rounded otherwise in another batch. How
often it does shows within each run, where equal requests were sent several times.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, Any

from pytest_vllm.report.compare.answers import Said
from pytest_vllm.report.compare.difference import Difference, Weight
from pytest_vllm.report.compare.prints import parted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: Chance below which a share of differing answers is not put down to rounding.
UNLIKELY = 0.001
#: Mean change of a log probability that rounding of 16-bit numbers does not make.
DRIFT = 0.1
MOST_LISTED = 40


def compared(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The greedy answers of two `observed` parts side by side, as JSON.

    `asked` of both, `differ` of them, `lone` and `lone_differ` of those that had the server to themselves,
    `near` (parted at a close call), `prompts` (whose prompt is counted otherwise), `repeated` and `wavered`
    (equal requests within a run, and those answered in several ways), `rows` of those that differ (key,
    unit, place from 1 on, whether near, whether alone), `drift` and `scored` of log probabilities.
    """
    one = {asked: Said.of(row) for asked, row in before["texts"].items()}
    other = {asked: Said.of(row) for asked, row in after["texts"].items()}
    rows, prompts, lone = [], [], 0
    both = sorted(one.keys() & other.keys(), key=lambda asked: one[asked].key)
    for asked in both:
        was, now = one[asked], other[asked]
        if was.prompt and now.prompt and was.prompt != now.prompt:
            prompts.append({"key": was.key, "before": was.prompt, "after": now.prompt})
            continue
        lone += was.lone and now.lone
        if not was.texts.keys() & now.texts.keys():
            rows.append(_row(was, now))
    repeated = [said for said in (*one.values(), *other.values()) if sum(said.texts.values()) > 1]
    drift, scored = _drift(before["scored"], after["scored"])
    return {
        "asked": len(both) - len(prompts),
        "differ": len(rows),
        "lone": lone,
        "lone_differ": sum(row["alone"] for row in rows),
        "near": sum(row["near"] for row in rows),
        "prompts": prompts[:MOST_LISTED],
        "prompts_differ": len(prompts),
        "repeated": len(repeated),
        "wavered": sum(len(said.texts) > 1 for said in repeated),
        "rows": rows[:MOST_LISTED],
        "drift": drift,
        "scored": scored,
    }


def differences(found: Mapping[str, Any]) -> Iterator[Difference]:
    """What `compared` found, in words."""
    if found["prompts_differ"]:
        first = found["prompts"][0]
        means = f"the same requests are rendered into other prompts, such as {first['key']}"
        what = f"prompts of {found['prompts_differ']} requests"
        yield Difference(
            Weight.BEHAVIOUR, "answers", what, f"{first['before']} tokens", f"{first['after']} tokens", means
        )
    if found["differ"]:
        yield _texts(found)
    if found["drift"] is not None and found["drift"] > 0:
        far = found["drift"] > DRIFT
        means = (
            "more than rounding: the model computes something else" if far else "as much as rounding makes"
        )
        text = f"{found['drift']:.3g} nats on average, over {found['scored']} tokens"
        yield Difference(
            Weight.BEHAVIOUR if far else Weight.INFO,
            "answers",
            "log probabilities of equal prompts",
            "",
            text,
            means,
        )


def _texts(found: Mapping[str, Any]) -> Difference:
    differ, asked = found["differ"], found["asked"]
    first = min(found["rows"], key=lambda row: (row["near"], row["place"]))
    text = (
        f"{differ} of {asked} differ, the earliest from {first['unit']} {first['place']} on ({first['key']})"
    )
    if found["near"]:
        text += f"; {found['near']} of them where two tokens were close"
    sure = differ - found["near"]
    if not sure:
        return Difference(
            Weight.INFO, "answers", "greedy answers", "", text, "only where two tokens were close"
        )
    if found["repeated"] < 2:
        means = "whether another batch explains it is not known: no request was repeated within a run"
        return Difference(Weight.INFO, "answers", "greedy answers", "", text, means)
    chance = _chance(sure, asked, found["wavered"], found["repeated"])
    wavering = f"{found['wavered']} of {found['repeated']} repeated requests got several answers within a run"
    if chance < UNLIKELY:
        means = f"the same questions get other answers; {wavering}, so chance does not explain it"
        return Difference(Weight.BEHAVIOUR, "answers", "greedy answers", "", text, means)
    return Difference(
        Weight.INFO, "answers", "greedy answers", "", text, f"{wavering}: chance may explain it"
    )


def _chance(differ: int, asked: int, wavered: int, repeated: int) -> float:
    """Fisher's exact test, one-sided: how likely so many differ if they do so as often as repeats waver."""
    total, hits = asked + repeated, differ + wavered
    ways = comb(total, hits)
    upto = min(asked, hits)
    return (
        sum(
            comb(asked, n) * comb(repeated, hits - n) for n in range(differ, upto + 1) if hits - n <= repeated
        )
        / ways
    )


def _row(was: Said, now: Said) -> dict[str, Any]:
    """Where two answers part: the latest place at which one of the texts of each does."""
    places = [parted(one, other) for one in was.texts for other in now.texts]
    place = max(one for one in places if one is not None)
    same = was.by_token == now.by_token
    return {
        "key": was.key,
        "unit": "token" if was.by_token and same else "word",
        "place": place + 1,
        "near": bool(same and was.by_token and (place in was.near or place in now.near)),
        "alone": bool(was.lone and now.lone),
    }


def _drift(
    before: Mapping[str, Sequence[Any]], after: Mapping[str, Sequence[Any]]
) -> tuple[float | None, int]:
    """The mean distance of log probabilities of the same prompts, in nats, and how many were compared."""
    apart = [
        abs(one - other)
        for key in before.keys() & after.keys()
        if before[key][0] == after[key][0] and len(before[key]) == len(after[key])
        for one, other in zip(before[key][1:], after[key][1:], strict=True)
    ]
    return (round(sum(apart) / len(apart), 4), len(apart)) if apart else (None, 0)
