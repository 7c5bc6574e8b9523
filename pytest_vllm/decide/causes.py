"""Failing checks grouped by what they saw: one fault of a server is one cause, however many checks meet it.

Pure. Two checks of one server belong together when they saw the same thing go wrong: exchanges that failed
alike on their way; in one area the same exchange or the same kind of deviation; in two areas both of these.
A check that looks at everything joins one cause and never ties two of them together.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pytest_vllm.decide.deviations import GENERAL, subject_of, title_of
from pytest_vllm.decide.verdict import (
    MISREAD,
    SIGNS_OF_LIFE,
    Verdict,
    by_suspicion,
    of_everything,
    suspicion,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pytest_vllm.decide.verdict import Result

#: An answer that holds what another request said: nothing else that such a server says can be relied on.
MIXED_UP = ("canary.needle.", "canary.batch.", "stream.isolation.", "cache.isolation.")
#: What all else rests on: that there is one deployment, and that clients can read what it answers.
BEFORE_ALL = ("health.one-", "answers.plain")
#: Fails because something else does: the trial request that looks for a capability met the fault, too, and
#: blocks that somebody did not give back are what an idle server's gauge still shows.
FOLLOWS = ("profile.capabilities.present", "metrics.idle.cache")
#: What compares a request alone with itself beside others, and what asks it alone. Wrong only beside others,
#: it is wrong by that, and all else that was asked beside others may show it.
BESIDE, ALONE = "crowd.", "crowd.alone"
#: A check that blames more exchanges than these looks at everything.
WIDE = 8
#: An exchange is blamed when its readers fail at least half as often as those of the worst one.
SUSPECT = 0.5
#: How the key of an exchange is written: a check of everything names some of what it met, and lists none.
_KEY = re.compile(r"[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)+(?:\[[^\]]*\])?")
#: Areas are equally suspect when their shares of failing checks differ by less than this.
EQUAL = 0.95
#: Nearly all checks share it; an area may own it from this part of the most suspect area's share on.
NEARLY, SLIGHT = 0.8, 0.1


@dataclass(frozen=True)
class Seen:
    """What became of an exchange on its way, whatever its answer says.

    Args:
        symptom: how it failed, alike for alike failures; empty when it did not. Its first line is said to
            people, what follows only tells failures apart.
        about: areas that its request is about, whichever suite sent it: a stream, tools, the tokenizer.
        route: the path that it asked, without a query.
    """

    symptom: str = ""
    about: frozenset[str] = frozenset()
    route: str = ""


@dataclass(frozen=True)
class Cause:
    """Failing checks of one server that saw the same thing go wrong.

    Args:
        checks: all of them, the one whose evidence stands for the others first.
        title: what went wrong, in a few words.
    """

    checks: tuple[Result, ...]
    title: str = field(default="", compare=False)

    @property
    def first(self) -> Result:
        """The check whose evidence stands for the others."""
        return self.checks[0]

    @property
    def area(self) -> str:
        """Where the fault most likely lies."""
        return self.first.area

    @property
    def areas(self) -> tuple[str, ...]:
        """Every area in which it shows, that of the fault first."""
        return tuple(dict.fromkeys(one.area for one in self.checks))


@dataclass(frozen=True)
class _Sight:
    """One failing check with what it saw go wrong."""

    result: Result
    rank: int
    blamed: frozenset[str]
    symptoms: frozenset[str]
    subject: str

    @property
    def lifeless(self) -> bool:
        return self.result.check in SIGNS_OF_LIFE

    @property
    def wide(self) -> bool:
        """Whether it looks at everything: it joins one cause and ties no two together."""
        return len(self.blamed) > WIDE or of_everything(self.result)

    @property
    def senders(self) -> frozenset[str]:
        """The areas whose exchanges it blames."""
        return frozenset(key.partition(".")[0] for key in self.blamed)

    def sent_by(self, other: _Sight) -> bool:
        """Whether it blames what the area of the other check sends."""
        return self.result.profile == other.result.profile and other.result.area in self.senders

    @property
    def said(self) -> set[str]:
        return {one.partition("\n")[0] for one in self.symptoms}

    def like(self, other: _Sight) -> bool:
        """Whether both saw the same thing go wrong."""
        if self.result.profile != other.result.profile:
            return False
        if self.symptoms or other.symptoms:
            if self.lifeless or other.lifeless:
                return bool(self.symptoms and other.symptoms)
            near = self.result.area == other.result.area and bool(self.said & other.said)
            return near or bool(self.symptoms & other.symptoms)
        alike = self.subject == other.subject
        shared = bool(self.blamed & other.blamed)
        if self.result.area == other.result.area:
            return shared or alike
        return shared and (alike or GENERAL in (self.subject, other.subject) or self.wide or other.wide)


def causes(
    failing: Iterable[Result], rows: Iterable[Result], seen: Mapping[tuple[str, str], Seen] | None = None
) -> tuple[Cause, ...]:
    """The causes behind failing checks, the likeliest first; every check lies in exactly one.

    Args:
        failing: the checks that did not hold, in any order.
        rows: every check of the run: those that hold over an exchange speak for it.
        seen: (profile, exchange key) -> what became of it; what is not there went well, and was no stream.
    """
    every = sorted(rows, key=_place)
    ranked = by_suspicion(sorted(failing, key=_place), every)
    sights = _by_owner(_sights(ranked, every, seen or {}), every, seen or {})
    found = [_cause(group) for group in _groups(sights)]
    ranks = {id(one.result): one.rank for one in sights}
    return tuple(sorted(found, key=lambda one: (_urgency(one), ranks[id(one.first)])))


def _place(one: Result) -> tuple[str, str, str]:
    return (one.profile, one.area, one.check)


def _sights(
    ranked: Sequence[Result], every: Sequence[Result], seen: Mapping[tuple[str, str], Seen]
) -> list[_Sight]:
    symptoms = {place: one.symptom for place, one in seen.items() if one.symptom}
    failing = Counter((one.profile, key) for one in ranked for key in set(one.exchanges))
    judged = Counter(
        (one.profile, key)
        for one in every
        if one.verdict not in (Verdict.NOT_RUN, Verdict.UNDECIDED)
        for key in set(one.exchanges)
    )
    sights = []
    for rank, one in enumerate(ranked):
        share = {key: failing[one.profile, key] / max(1, judged[one.profile, key]) for key in one.exchanges}
        blamed = _blamed(one, share, {key for key in one.exchanges if (one.profile, key) in symptoms})
        if of_everything(one):
            blamed = (
                frozenset(key for key in _KEY.findall(one.reason) if (one.profile, key) in seen) or blamed
            )
        met = frozenset(symptoms[one.profile, key] for key in blamed if (one.profile, key) in symptoms)
        sights.append(_Sight(one, rank, blamed, met, subject_of(one.fact, one.reason)))
    return sights


def _by_owner(
    sights: Sequence[_Sight], every: Sequence[Result], seen: Mapping[tuple[str, str], Seen]
) -> list[_Sight]:
    """What the blamed exchanges share names the area: what they are about; among equals, the route."""
    share = suspicion([one.result for one in sights], every)
    owner = _beside(sights) or _sender(sights) or _subject(sights, share, seen) or _route(sights, share, seen)
    ordered = sorted(sights, key=lambda one: (not one.lifeless, one.result.area != owner, one.rank))
    return [replace(one, rank=rank) for rank, one in enumerate(ordered)]


def _beside(sights: Sequence[_Sight]) -> str:
    """The area of what is right alone and wrong beside others; empty where nothing is, or all is wrong."""
    told = [one.result for one in sights if one.result.check.startswith(BESIDE)]
    alone = any(one.check.startswith(ALONE) for one in told)
    return told[0].area if told and not alone else ""


def _sender(sights: Sequence[_Sight]) -> str:
    """The area whose exchanges all blame, where only that area and checks of everything fail; else empty."""
    shared = frozenset[str].intersection(*(one.senders for one in sights)) if sights else frozenset()
    for area in sorted(shared):
        if all(one.result.area == area or of_everything(one.result) for one in sights):
            return area
    return ""


def _subject(
    sights: Sequence[_Sight], share: Mapping[str, float], seen: Mapping[tuple[str, str], Seen]
) -> str:
    """The area that nearly all narrow checks are about, the one asked rarest first; empty for none."""
    if any(one.lifeless for one in sights):
        return ""
    met = [[seen.get((one.result.profile, key), Seen()).about for key in one.blamed] for one in sights]
    blamed = [about for abouts in met for about in abouts]
    if blamed and all("streaming" in about for about in blamed):
        return "streaming"
    narrow = [
        frozenset[str]().union(*abouts)
        for one, abouts in zip(sights, met, strict=True)
        if abouts and not of_everything(one.result)
    ]
    meets, hit = _tally(narrow), _tally(blamed)
    asked = _tally(one.about for one in seen.values())
    least = SLIGHT * max(share.values(), default=0.0)
    near = [area for area in meets if meets[area] >= NEARLY * len(narrow) and share.get(area, 0.0) >= least]
    return max(near, key=lambda area: hit[area] ** 2 / asked[area], default="")


def _tally(abouts: Iterable[frozenset[str]]) -> Counter[str]:
    """How many are about each area."""
    return Counter(area for about in abouts for area in about)


def _route(sights: Sequence[_Sight], share: Mapping[str, float], seen: Mapping[tuple[str, str], Seen]) -> str:
    """The area that is named like the one route that was blamed, if no other is more suspect."""
    met = {seen.get((one.result.profile, key), Seen()).route for one in sights for key in one.blamed}
    name = next(iter(met)).removeprefix("/v1").removeprefix("/") if len(met) == 1 else ""
    return name if share.get(name, 0.0) >= max(share.values(), default=0.0) * EQUAL else ""


def _blamed(one: Result, share: Mapping[str, float], failed: set[str]) -> frozenset[str]:
    """What a check most likely fails for: what it names, else what failed, else what others share."""
    said = one.reason
    named = frozenset(key for key in one.exchanges if named_at(said, key) >= 0)
    worst = max(share.values(), default=0.0)
    return named or frozenset(failed) or frozenset(k for k, part in share.items() if part >= SUSPECT * worst)


def named_at(said: str, key: str) -> int:
    """Where a text names this exchange, and not one whose key merely begins alike; -1 where it does not."""
    start = said.find(key)
    while start >= 0:
        end = start + len(key)
        if said[end : end + 1] not in ("-", "[", ".") or said[end : end + 2] == ". ":
            return start
        start = said.find(key, end)
    return -1


def _groups(sights: Iterable[_Sight]) -> list[list[_Sight]]:
    """Sights that belong together: those that blame few exchanges, then the wide ones, each to one group."""
    ordered = sorted(sights, key=lambda one: (one.wide, one.rank))
    groups: list[list[_Sight]] = []
    for one in ordered:
        close = _near(groups, one.like) or (_near(groups, one.sent_by) if one.wide else [])
        if not close:
            groups.append([one])
        elif one.wide:
            max(close, key=lambda pair: pair[0])[1].append(one)
        else:
            merged = [member for _, group in close for member in group]
            groups = [group for group in groups if not any(group is other for _, other in close)]
            groups.append([*merged, one])
    return groups


def _near(
    groups: Sequence[list[_Sight]], related: Callable[[_Sight], bool]
) -> list[tuple[int, list[_Sight]]]:
    """The groups that hold something related, each with how much of it."""
    return [(count, group) for group in groups if (count := sum(map(related, group)))]


def _cause(group: Sequence[_Sight]) -> Cause:
    ordered = sorted(group, key=lambda one: (not one.lifeless, one.rank))
    return Cause(tuple(one.result for one in ordered), _title(ordered))


def _title(group: Sequence[_Sight]) -> str:
    if any(one.lifeless for one in group):
        return "the server generates nothing, or no longer"
    failed = Counter(symptom for one in group for symptom in sorted(one.symptoms))
    if failed:
        return failed.most_common(1)[0][0].partition("\n")[0]
    return title_of(group[0].result.fact, group[0].result.reason)


def _urgency(one: Cause) -> int:
    """Life, what all else rests on, mixed-up answers, then the rest; last what follows from another."""
    if any(check.check in SIGNS_OF_LIFE for check in one.checks):
        return 0
    read = [check.check for check in one.checks if MISREAD not in check.reason]
    if any(check.startswith(BEFORE_ALL) for check in read):
        return 1
    if any(check.startswith(MIXED_UP) for check in read):
        return 2
    return 4 if all(check.check in FOLLOWS for check in one.checks) else 3
