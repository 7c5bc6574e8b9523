"""Failing checks become causes: each in exactly one, in an order that nothing but the checks decides."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_vllm.decide.causes import Cause, Seen, causes, named_at
from pytest_vllm.decide.deviations import title_of
from pytest_vllm.decide.verdict import Family, Level, Result, Verdict

if TYPE_CHECKING:
    import random

AREAS = ("chat", "tools", "streaming", "canary", "memory")
KEYS = tuple(f"{area}.{name}" for area in AREAS for name in ("plain", "stream", "again"))
REASONS = (
    "finish_reason 'stop'",
    "arguments are cut",
    "19 tokens, 24 counted",
    "wrong",
    "chat.plain: 500, not 200",
)


def failing(
    check: str, *exchanges: str, reason: str = "wrong", fact: str = "It holds.", **more: str
) -> Result:
    return Result(
        check,
        Level.MUST,
        Family.CONFORMANCE,
        Verdict.FAIL,
        fact,
        reason,
        area=check.partition(".")[0],
        exchanges=exchanges,
        profile=more.get("profile", "sim"),
    )


def holding(area: str, number: int) -> Result:
    """A check of an area that holds, over an exchange of its own."""
    return Result(
        f"{area}.holds-{number}", Level.MUST, Family.CONFORMANCE, Verdict.PASS, "", area=area, profile="sim"
    )


def ids(found: tuple[Cause, ...]) -> list[list[str]]:
    return [sorted(one.check for one in cause.checks) for cause in found]


results = st.lists(
    st.builds(
        lambda area, number, keys, reason, profile: failing(
            f"{area}.check-{number}", *sorted(keys), reason=reason, profile=profile
        ),
        st.sampled_from(AREAS),
        st.integers(0, 30),
        st.sets(st.sampled_from(KEYS), max_size=12),
        st.sampled_from(REASONS),
        st.sampled_from(("sim", "other")),
    ),
    unique_by=lambda one: (one.profile, one.check),
    max_size=25,
)
sightings = st.dictionaries(
    st.tuples(st.sampled_from(("sim", "other")), st.sampled_from(KEYS)),
    st.builds(
        Seen,
        st.sampled_from(("", "", "reset", "status 500")),
        st.frozensets(st.sampled_from(("streaming", "tools", "tokenize"))),
    ),
)


@given(results, sightings)
def test_every_failing_check_lies_in_exactly_one_cause(
    rows: list[Result], seen: dict[tuple[str, str], Seen]
) -> None:
    found = causes(rows, rows, seen)

    lying = [(one.profile, one.check) for cause in found for one in cause.checks]
    assert sorted(lying) == sorted((one.profile, one.check) for one in rows)


@given(results, sightings, st.randoms(use_true_random=False))
def test_the_order_of_the_checks_changes_nothing(
    rows: list[Result], seen: dict[tuple[str, str], Seen], chance: random.Random
) -> None:
    mixed = list(rows)
    chance.shuffle(mixed)

    assert causes(mixed, mixed, seen) == causes(rows, rows, seen)


@given(results, sightings)
def test_no_cause_holds_checks_of_two_servers(rows: list[Result], seen: dict[tuple[str, str], Seen]) -> None:
    assert all(len({one.profile for one in cause.checks}) == 1 for cause in causes(rows, rows, seen))


def test_checks_over_the_same_exchange_are_one_cause() -> None:
    rows = [failing("tools.called", "tools.one"), failing("tools.finish", "tools.one", fact="It finishes.")]

    assert ids(causes(rows, rows)) == [["tools.called", "tools.finish"]]


def test_the_same_deviation_over_many_exchanges_is_one_cause() -> None:
    rows = [failing(f"tools.n{n}", f"tools.{n}", reason="arguments are not JSON") for n in range(47)]

    (cause,) = causes(rows, rows)
    assert (len(cause.checks), cause.title) == (47, "arguments of a call")


def test_two_faults_in_two_areas_are_two_causes() -> None:
    rows = [
        failing("tools.called", "tools.one", reason="arguments are cut"),
        failing("usage.total", "usage.one", reason="19 tokens, 24 counted"),
    ]

    assert len(causes(rows, rows)) == 2


def test_exchanges_that_break_alike_are_one_cause_whatever_the_area() -> None:
    rows = [failing("tools.called", "tools.one"), failing("chat.answered", "chat.one")]
    seen = {("sim", "tools.one"): Seen("reset"), ("sim", "chat.one"): Seen("reset")}

    (cause,) = causes(rows, rows, seen)
    assert cause.title == "reset"


def test_a_check_over_everything_does_not_tie_two_causes() -> None:
    keys = [f"chat.{n}" for n in range(12)]
    rows = [
        failing("chat.a", "chat.0", reason="arguments are cut"),
        failing("chat.b", "chat.1", reason="finish_reason 'stop'"),
        failing("chat.answered", *keys, reason="wrong in " + ", ".join(keys)),
    ]

    assert len(causes(rows, rows)) == 2


def test_a_check_of_everything_lies_with_what_it_names() -> None:
    """It lists no exchanges: what it met stands in its words."""
    rows = [
        failing("tools.finish", "tools.one", reason="finish_reason 'stop'"),
        failing("usage.total", "usage.one", reason="19 tokens, 24 counted"),
        failing("oracle.same.text", reason="usage.one: 'a', most 'b'; pairs.free[row-02]: 'c', most say 'd'"),
    ]
    seen = {("sim", key): Seen() for key in ("tools.one", "usage.one", "pairs.free[row-02]")}

    assert ids(causes(rows, rows, seen)) == [["tools.finish"], ["oracle.same.text", "usage.total"]]


def test_a_check_of_everything_lies_with_the_area_whose_exchanges_it_names() -> None:
    rows = [
        failing("tools.finish", "tools.one", reason="finish_reason 'stop'"),
        failing("oracle.end.told", reason="tools.two: said nothing"),
    ]
    seen = {("sim", key): Seen() for key in ("tools.one", "tools.two")}

    assert ids(causes(rows, rows, seen)) == [["oracle.end.told", "tools.finish"]]


def test_where_only_checks_of_everything_fail_the_sender_names_the_area() -> None:
    rows = [
        failing("oracle.end.told", reason="sizes.stream: said nothing"),
        failing("sizes.stream", "sizes.stream", reason="1 character of 2"),
    ]
    seen = {("sim", "sizes.stream"): Seen()}

    assert causes(rows, rows, seen)[0].area == "sizes"


def test_an_exchange_whose_other_readers_pass_is_not_blamed() -> None:
    """Two checks that share only a set-up which everybody reads saw two things."""
    rows = [
        failing("tools.a", "tools.setup", "tools.one", reason="arguments are cut"),
        failing("chat.b", "tools.setup", "chat.one", reason="arguments are cut"),
    ]
    passes = [
        Result(f"chat.p{n}", Level.MUST, Family.CONFORMANCE, Verdict.PASS, "", area="chat", profile="sim",
               exchanges=("tools.setup",))
        for n in range(9)
    ]  # fmt: skip

    assert len(causes(rows, [*rows, *passes])) == 2


def test_a_sign_of_life_comes_first_and_takes_what_broke_with_it() -> None:
    rows = [
        failing("chat.answered", "chat.one", reason="no response"),
        failing("health.generates", "health.one", reason="no response"),
        failing("stream.isolation.own-word", "streaming.one"),
        failing("profile.capabilities.present", reason="expected but absent: tools"),
    ]
    seen = {("sim", "chat.one"): Seen("reset"), ("sim", "health.one"): Seen("status 500")}

    found = causes(rows, rows, seen)
    assert found[0].first.check == "health.generates"
    assert ids(found)[0] == ["chat.answered", "health.generates"]
    assert found[1].first.check == "stream.isolation.own-word", "mixed-up answers come next"
    assert found[-1].first.check == "profile.capabilities.present", "what follows comes last"


def test_two_crashes_of_one_status_that_say_two_things_are_two_causes() -> None:
    rows = [failing("tools.a", "tools.one"), failing("chat.b", "chat.one")]
    seen = {
        ("sim", "tools.one"): Seen("answered with 500\nlist index out of range"),
        ("sim", "chat.one"): Seen("answered with 500\nno such template"),
    }

    found = causes(rows, rows, seen)
    assert [one.title for one in found] == ["answered with 500", "answered with 500"]


def test_what_nearly_all_failing_checks_ask_about_names_the_area() -> None:
    """Calls fail in two suites: their requests share that they offer tools, and few requests do."""
    rows = [
        failing("tools.one", "tools.one", reason="no call"),
        failing("reasoning.one", "reasoning.one", reason="no call"),
    ]
    held = [holding("tools", n) for n in range(20)]
    tools, stream = frozenset({"tools"}), frozenset({"tools", "streaming"})
    seen = {("sim", "tools.one"): Seen(about=stream), ("sim", "reasoning.one"): Seen(about=tools)}

    assert causes(rows, [*rows, *held])[0].area == "reasoning", "the share of its checks that fail is greater"
    assert causes(rows, [*rows, *held], seen)[0].area == "tools"


def test_one_failure_among_few_does_not_outweigh_several_among_many() -> None:
    rows = [
        failing("reasoning.one", "reasoning.one", reason="odd"),
        *(failing(f"chat.{n}", f"chat.{n}", reason="odd") for n in range(6)),
    ]
    held = [holding("chat", n) for n in range(18)] + [holding("reasoning", n) for n in range(2)]

    assert causes(rows, [*rows, *held])[0].area == "chat"


def test_several_servers_behind_one_address_are_said_before_what_they_differ_in() -> None:
    rows = [
        failing("profile.version.expected", "profile.one", reason="runs 0.11.0"),
        failing("health.one-version", "health.one", reason="several versions answer"),
    ]
    held = [holding("health", n) for n in range(40)]

    assert causes(rows, [*rows, *held])[0].first.check == "health.one-version"


@pytest.mark.parametrize(
    ("fact", "reason", "title"),
    [
        ("The cache that left streams held is free again.", "the cache's usage is 0.0351", "cache"),
        ("The cache that a finished request held is free again.", "its usage is 0.0355", "cache"),
        ("A text of a dozen tokens comes in several pieces.", "12 tokens in one piece", "pieces of a stream"),
        ("Of the tokens drafted for a text, some are accepted.", "0 of 75", "drafted tokens"),
        ("Blocks are counted from 0, and all end.", "[('start', 1)]", "order and indices"),
        ("A text in several scripts has the same tokens.", "streamed [], whole ['n']", "tokens of an answer"),
        ("Of several stop strings the first ends the text.", "'oo', not ''", "stop strings"),
        ("One stream decodes as fast as the profile promises.", "decode-tok-s 3.3, floor 6", "speeds"),
        ("The first token comes as soon as promised, nothing cached.", "3 s, limit 1 s", "times"),
        ("The same prompt is billed the same, cached or not.", "8, then 9", "counted tokens"),
        ("No choice is billed more tokens than its limit.", "8 of 3", "counted tokens"),
        ("Routes that start a profiler are absent.", "open to anybody: /start_profile", ""),
    ],
)
def test_a_cause_is_named_for_what_its_requirement_is_about(fact: str, reason: str, title: str) -> None:
    assert title_of(fact, reason) == title


@pytest.mark.parametrize(
    ("said", "at"),
    [
        ("94 answers are malformed: NaN (cache.again) and 93 more", 31),
        ("cache.again-second: 500; cache.again: 500", 25),
        ("cache.again-second: 500", -1),
        ("seen in cache.again. Then nothing", 8),
    ],
)
def test_a_text_names_an_exchange_and_not_one_that_begins_alike(said: str, at: int) -> None:
    assert named_at(said, "cache.again") == at


@pytest.mark.parametrize(
    ("unread", "fault", "area"),
    [
        ({"streaming": 9, "canary": 1}, "event 0: choices[0].index is missing", "streaming"),
        ({"canary": 5, "logprobs": 5}, "choice 0 has no logprobs", "logprobs"),
        ({"canary": 5, "chat": 5, "completions": 5}, "choices is empty", "health"),
    ],
)
def test_answers_that_cannot_be_read_are_those_of_one_area_or_of_all(
    unread: dict[str, int], fault: str, area: str
) -> None:
    """What is wrong with them names the area, else the one whose checks nearly all cannot be judged."""
    reason = f"x.one can't be judged, its answer is malformed: {fault} (KeyError at here)"
    rows = [
        failing(f"{of}.{n}", f"{of}.{n}", reason=reason) for of, many in unread.items() for n in range(many)
    ]
    whole = replace(failing("answers.whole", reason=f"9 answers are malformed: {fault}"), area="health")
    held = [holding(of, n) for of in (*unread, "health") for n in range(5)]

    assert causes([*rows, whole], [*rows, whole, *held])[0].area == area


@pytest.mark.parametrize(("alone", "first"), [(False, "crowd"), (True, "completions")])
def test_what_is_right_alone_and_wrong_beside_others_is_of_that(alone: bool, first: str) -> None:
    """Many more checks of another area fail by it, since they were asked beside others as well."""
    others = [failing(f"completions.check-{number}", "completions.plain") for number in range(4)]
    crowd = [failing("crowd.answers", "crowd.short[greedy]")]
    crowd += [failing("crowd.alone", "crowd.alone[greedy]")] if alone else []
    rows = [*others, *crowd, *(holding("crowd", number) for number in range(8))]

    assert causes([*others, *crowd], rows)[0].area == first


def test_what_an_idle_servers_gauge_shows_follows_from_blocks_that_were_kept() -> None:
    gauge, kept = failing("metrics.idle.cache", "metrics.stream"), failing("memory.left.freed", "memory.left")
    rows = [gauge, kept, *(holding("memory", number) for number in range(8))]

    assert [one.area for one in causes([gauge, kept], rows)] == ["memory", "metrics"]
    assert [one.area for one in causes([gauge], [gauge])] == ["metrics"]
