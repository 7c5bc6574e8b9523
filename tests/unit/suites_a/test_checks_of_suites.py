"""The checks hold on what a real server answered, and each of them catches a wrong answer."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.declare.checks import MUST
from pytest_vllm.declare.sources import SOURCES
from tests.unit.judging import Check, judge
from tests.unit.suites_a.judging import AREAS, checks, real
from tests.unit.suites_a.table_chat import CHAT, MODELS, USAGE
from tests.unit.suites_a.table_completions import COMPLETIONS, LOGPROBS, TOKENIZE

if TYPE_CHECKING:
    from tests.unit.suites_a.breaks import Break

BREAKS = [*MODELS, *TOKENIZE, *CHAT, *COMPLETIONS, *LOGPROBS, *USAGE]

#: What vLLM 0.32.0 itself does otherwise, in checks that advise; and what the recorded server cannot do.
KNOWN = {
    "usage.echo-only": "fail",  # an echo alone is billed the one token it ran for
    "usage.reasoning-part": "undecided",  # it has no reasoning parser
}

#: Checks of requests that are newer than the recordings of the real server.
NEWER = {
    "chat.max-tokens.exact[forty]",
    "chat.max-tokens.finish[forty]",
    "chat.messages.late-rule",
    "chat.seed.repeats",
    "completions.bad-words",
    "completions.bad-words.each",
    "completions.bad-words.each[first]",
    "completions.bad-words.each[last]",
    "completions.drawn.crowd",
    "completions.id.twins",
    "completions.id.twins[first]",
    "completions.id.twins[second]",
    "completions.logit-bias.against",
    "completions.min-tokens.exact",
    "completions.seed.crowd",
    "completions.stop.twice",
    "logprobs.read.deep",
    "logprobs.routes.agree",
    "models.list.served",
    "tokenize.chat.marks",
    "tokenize.count[blanks-around]",
    "tokenize.ids[blanks-around]",
    "tokenize.round-trip-exact[blanks-around]",
    "tokenize.round-trip[blanks-around]",
    "tokenize.strings-own",
}

#: A defect that more checks than this see is noticed, not diagnosed.
UNRELATED = 10


@cache
def _checks() -> dict[str, Check]:
    return {check.key: check for check in checks()}


@pytest.mark.parametrize("key", sorted(_checks()))
def test_holds_on_a_real_server(key: str) -> None:
    judged = judge(_checks()[key], real())

    right = "undecided" if key in NEWER else KNOWN.get(key, "pass")

    assert judged.verdict == right, judged.why


@pytest.mark.parametrize(
    "broken", BREAKS, ids=lambda broken: f"{broken.check}-{broken.fault}".replace(" ", "-")
)
def test_catches_a_wrong_answer(broken: Break) -> None:
    judged = judge(_checks()[broken.check], broken.change(real()))

    assert judged.verdict == "fail", f"{broken.fault}: {judged.verdict} {judged.why}"
    assert judged.why, "the check does not say what it saw"


def test_every_check_is_seen_to_fail() -> None:
    broken = {one.check.split("[")[0] for one in BREAKS}
    missing = {check.spec.id for check in checks()} - broken - NEWER

    assert not missing, f"no wrong answer for {sorted(missing)}"


@pytest.mark.parametrize(
    "broken", BREAKS, ids=lambda broken: f"{broken.check}-{broken.fault}".replace(" ", "-")
)
def test_a_wrong_answer_is_diagnosed(broken: Break) -> None:
    changed = broken.change(real())
    failing = [c.key for c in checks() if c.key not in KNOWN and judge(c, changed).verdict == "fail"]

    assert len(failing) <= UNRELATED, f"{broken.fault} fails {len(failing)} checks: {failing}"


def test_ids_are_unique_and_begin_with_their_area() -> None:
    seen = Counter((check.spec.id, tuple(case.id for case in check.chosen.values())) for check in checks())

    assert [one for one, count in seen.items() if count > 1] == []
    assert [check.key for check in checks() if check.spec.id.split(".")[0] not in AREAS] == []


def test_facts_are_one_short_line_that_states() -> None:
    facts = {check.spec.id: check.spec.fact for check in checks()}
    bad = {key: fact for key, fact in facts.items() if len(fact) > 80 or "should" in fact.lower()}

    assert bad == {}


def test_specs_are_of_known_sources() -> None:
    assert [c.spec.id for c in checks() if c.spec.spec.split(":")[0] not in SOURCES] == []


def test_must_checks_outnumber_the_others() -> None:
    levels = Counter(check.spec.level for check in checks())

    assert levels[MUST] > sum(levels.values()) / 2
