"""Two runs of one deployment compared: the document that terminal, page, Markdown and JSON are views of."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_vllm.report.compare import figures, greedy, served, settings, shapes, verdicts
from pytest_vllm.report.compare.difference import Difference, Weight, ordered
from pytest_vllm.report.compare.identity import incomparable, other_load, other_machine, this_machine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FORMAT = "pytest-vllm-comparison"
FORMAT_VERSION = 1


class NotComparableError(ValueError):
    """Two runs that say nothing about each other; the message says why."""


def compare(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    profiles: tuple[str, str],
    turns: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]] | None = None,
) -> dict[str, Any]:
    """Compare a profile of one run with a profile of another.

    Args:
        before: the extract of the older run.
        after: the extract of the newer one.
        profiles: which profile of each.
        turns: speeds of both measured in turns, as `figures.paired` takes them; None where there are none.

    Returns:
        the document: `before` and `after` (who was tested), `answer` (`breaks`: whether something breaks
        clients, `counts` by weight, `text`), `not_compared` (what was not, and why), `differences`, `speeds`,
        `sizes`, `greedy`.

    Raises NotComparableError.
    """
    one = _part(before, profiles[0])
    if "identity" not in after["profiles"][profiles[1]]:
        return _not_started(before, after, profiles)
    other = _part(after, profiles[1])
    was, now = one["identity"], other["identity"]
    if why := incomparable(was, now):
        raise NotComparableError(f"not comparable: {why}")
    not_compared: dict[str, str] = {}
    if why := other_machine(was, now):
        not_compared |= dict.fromkeys(("speeds", "sizes", "answers"), why)
    if turns is not None:
        not_compared.pop("speeds", None)
    elif why := this_machine(was, now):
        not_compared["speeds"] = why
    if why := other_load(was, now):
        not_compared["answers"] = why
    partial = bool(before["run"].get("partial") or after["run"].get("partial"))
    tiers = {before["run"].get("tier"), after["run"].get("tier")}
    if partial or len(tiers) > 1:
        why = "one of the runs left checks out" if partial else "the runs were of different tiers"
        not_compared["new and gone checks"] = why
    rows = [] if "speeds" in not_compared else _speeds(one, other, turns)
    if not rows and "speeds" not in not_compared:
        not_compared["speeds"] = "the runs did not measure the same loads"
    said = None if "answers" in not_compared else greedy.compared(one["observed"], other["observed"])
    found = [
        *verdicts.differences(one, other, partial="new and gone checks" in not_compared),
        *shapes.differences(one["observed"], other["observed"]),
        *served.differences(one["observed"], other["observed"], (was["version"], now["version"])),
        *settings.differences(was, now),
        *(greedy.differences(said) if said else ()),
        *(figures.changes(rows) if "sizes" in not_compared else figures.differences(rows, one, other)),
    ]
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "before": _who(before, profiles[0]),
        "after": _who(after, profiles[1]),
        "answer": answer(found),
        "not_compared": not_compared,
        "differences": [difference.plain() for difference in ordered(found)],
        "speeds": rows,
        "sizes": [] if "sizes" in not_compared else figures.sizes(one, other),
        "greedy": said,
    }


def answer(found: list[Difference]) -> dict[str, Any]:
    """`breaks`, `counts` by weight, and the sentence that says it."""
    counts = Counter(str(one.weight) for one in found)
    every = {str(weight): counts[str(weight)] for weight in Weight}
    breaks = every[Weight.BREAKS]
    parts = [f"{every[weight]} {words}" for weight, words in _WORDS.items() if every[weight]]
    rest = f"; {', '.join(parts)}" if parts else ""
    head = (
        f"{breaks} {'difference breaks' if breaks == 1 else 'differences break'} clients"
        if breaks
        else "Nothing breaks clients"
    )
    return {"breaks": bool(breaks), "counts": every, "text": head + rest}


_WORDS = {Weight.BEHAVIOUR: "of behaviour", Weight.SPEED: "of speed", Weight.INFO: "for information"}


def _speeds(
    one: Mapping[str, Any],
    other: Mapping[str, Any],
    turns: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]] | None,
) -> list[dict[str, Any]]:
    if turns is not None:  # what was measured apart says less of the same
        return figures.paired(turns)
    rows = figures.speeds(one.get("loads", {}), other.get("loads", {}))
    simulated = one["identity"]["simulated"]
    lone = figures.alone(one["observed"]["alone"], other["observed"]["alone"], simulated=simulated)
    return [*rows, *([lone] if lone else [])]


def _part(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part: Mapping[str, Any] = document["profiles"][name]
    if "identity" not in part:
        why = part.get("why", "no reason is kept")
        raise NotComparableError(f"not comparable: {name} did not boot in run {document['run']['id']}: {why}")
    return part


def _not_started(
    before: Mapping[str, Any], after: Mapping[str, Any], profiles: tuple[str, str]
) -> dict[str, Any]:
    """The document of a newer run whose server did not start: nobody is served, and nothing else is known."""
    part = after["profiles"][profiles[1]]
    why = str(part.get("why", ""))
    found = [Difference(Weight.BREAKS, "start", "the server", "started", "does not start", why)]
    was = _who(before, profiles[0])
    now = {"run": after["run"]["id"], "started": after["run"]["started"], "profile": profiles[1]}
    now |= {"answer": part["answer"], "partial": False, "version": "", "commit": "", "image": ""}
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "before": was,
        "after": {**was, **now},
        "answer": answer(found),
        "not_compared": {"everything else": "the server of the newer run did not start"},
        "differences": [one.plain() for one in found],
        "speeds": [],
        "sizes": [],
        "greedy": None,
    }


def _who(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    part, run = document["profiles"][name], document["run"]
    return {
        "run": run["id"],
        "started": run["started"],
        "profile": name,
        "answer": part["answer"],
        "partial": bool(run.get("partial")),
        **{
            key: part["identity"][key]
            for key in ("version", "commit", "image", "simulated", "model", "hardware", "suite")
        },
    }
