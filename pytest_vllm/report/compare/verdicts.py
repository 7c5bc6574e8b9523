"""Which checks broke, were fixed, changed, are new or gone between two runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_vllm.decide.baseline import HOLDS, WRONG
from pytest_vllm.decide.verdict import Verdict
from pytest_vllm.facts.faults import faults_of_check
from pytest_vllm.report.compare.difference import Difference, Weight
from pytest_vllm.report.compare.extract import of_this_machine, spread
from pytest_vllm.report.text import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], *, partial: bool
) -> Iterator[Difference]:
    """Every check whose verdict is another one.

    Args:
        before: a profile's part of an extract.
        after: and the one that is compared with it.
        partial: whether one of the runs left checks out, so that absent ones are not gone.
    """
    then, now = spread(before), spread(after)
    reasons = after.get("reasons", {})
    alike: dict[tuple[str, ...], list[str]] = {}
    unasked: dict[tuple[str, ...], list[Difference]] = {}
    for check in sorted(then.keys() & now.keys()):
        (was, _), (is_, level) = then[check], now[check]
        if was == is_:
            continue
        why = reasons.get(check) or _requirement(after["facts"], check)
        found = _changed(check, (Verdict(was), Verdict(is_), level), why, after)
        if found.weight is Weight.INFO:
            alike.setdefault((_base(check), found.change, was, is_, level), []).append(check)
        elif found.after == Verdict.NOT_RUN:
            unasked.setdefault((str(found.weight), _base(check), was, level), []).append(found)
        else:
            yield found
    yield from map(_together, unasked.values())
    for (base, change, was, is_, level), checks in alike.items():
        what = checks[0] if len(checks) == 1 else f"{base} ({len(checks)} cases)"
        means = _in_words(Verdict(was), Verdict(is_))
        yield Difference(Weight.INFO, "verdicts", what, was, is_, means, change=change, level=level)
    for check in () if partial else sorted(now.keys() - then.keys()):
        verdict, level = now[check]
        failing = verdict == Verdict.FAIL
        weight = Weight.BEHAVIOUR if failing else Weight.INFO
        means = "the other run did not ask it; whether it held before is not known" if failing else ""
        yield Difference(weight, "verdicts", check, "", verdict, means, change="new", level=level)
    for check in () if partial else sorted(then.keys() - now.keys()):
        verdict, level = then[check]
        yield Difference(Weight.INFO, "verdicts", check, verdict, "", change="gone", level=level)


def _together(found: list[Difference]) -> Difference:
    """Cases of a check that are not asked any more, as one difference with the reasons there are."""
    first = found[0]
    if len(found) == 1:
        return first
    reasons = list(dict.fromkeys(one.means for one in found))
    more = f"; and {count(len(reasons) - 1, 'more reason')}" if len(reasons) > 1 else ""
    return replace(first, what=f"{_base(first.what)} ({len(found)} cases)", means=f"{reasons[0]}{more}")


def _changed(
    check: str, turned: tuple[Verdict, Verdict, str], why: str, after: Mapping[str, Any]
) -> Difference:
    was, now, level = turned
    change, weight = "changed", Weight.INFO
    if was in HOLDS and now not in HOLDS:
        change = "broken"
        weight = _weight(now, after["families"].get(_base(check), ""), level)
        if now is Verdict.UNDECIDED and (check in after.get("held", ()) or of_this_machine(why)):
            weight = Weight.INFO  # the machine that asked was busy: that says nothing of the server
        elif after["identity"]["simulated"] and weight is Weight.SPEED and now is not Verdict.FAIL:
            weight = Weight.INFO  # the times of a simulator are this machine's
    elif was in WRONG and now in HOLDS:
        change = "fixed"
    elif now is Verdict.FAIL:
        weight = Weight.BEHAVIOUR
    means = {Verdict.UNDECIDED: "the evidence allows no judgement any more"}.get(now, "")
    if now is Verdict.NOT_RUN and change == "broken":  # a run folder knows why; an extract alone does not
        means = "not asked any more" if why else "the server does not offer what the check needs any more"
    means = "; ".join(part for part in (means, why) if part) if change != "fixed" else ""
    version = str(after["identity"]["version"])
    known = faults_of_check(check, version) if now in (Verdict.FAIL, Verdict.ADVISORY) else ()
    source = "; ".join(f"{one.title} ({one.thread})" for one in known)
    return Difference(weight, "verdicts", check, was, now, means, source, change, level)


def _in_words(was: Verdict, now: Verdict) -> str:
    """What another verdict means that concerns nobody yet."""
    if now is Verdict.NOT_RUN:
        return "not asked any more"
    if now is Verdict.UNDECIDED:
        return "the evidence allows no judgement" + (" any more" if was is not Verdict.NOT_RUN else "")
    if now is Verdict.WAIVED:
        return "fails, as a known fault"
    if now is Verdict.PASS:
        before = {Verdict.NOT_RUN: "was not asked before", Verdict.UNDECIDED: "could not be judged before"}
        return f"holds; {before.get(was, 'did not hold before')}"
    return "does not hold; " + ("was not asked before" if was is Verdict.NOT_RUN else "did not before either")


def _weight(now: Verdict, family: str, level: str) -> Weight:
    """What it is that a check which held does not hold any more."""
    if family == "performance":
        return Weight.SPEED
    if now is Verdict.FAIL:
        return Weight.BREAKS
    if level == "INFO" or (now is Verdict.UNDECIDED and level != "MUST"):
        return Weight.INFO
    return Weight.BEHAVIOUR


def _base(check: str) -> str:
    return check.partition("[")[0]


def _requirement(facts: Mapping[str, str], check: str) -> str:
    return f"required: {facts[check]}" if check in facts else ""
