"""The checks hold on what a real server answered, and each of them catches a wrong answer."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.declare.checks import MUST
from pytest_vllm.declare.sources import SOURCES
from tests.unit.judging import checks, judge
from tests.unit.suites_b.judging import AREAS, healthy
from tests.unit.suites_b.table_errors import ERRORS
from tests.unit.suites_b.table_isolation import ISOLATION
from tests.unit.suites_b.table_metrics import CANCELLATION, METRICS
from tests.unit.suites_b.table_probes import HEALTH, SECURITY
from tests.unit.suites_b.table_streaming import STREAMING

if TYPE_CHECKING:
    from tests.unit.suites_b.breaks import Break

#: What vLLM 0.32.0 itself does otherwise.
KNOWN = {
    "errors.hostile[schema-refers-to-itself]",
    "errors.hostile[schema-tuple-items]",
    "errors.hostile[structured-outputs-list]",
    "errors.hostile[structured-outputs-true]",
    "errors.param",
    "errors.routes.envelope",
    "errors.stream.before-start",
    "metrics.latency.failed-request",
    "security.key.challenge",
    "security.key.error-object",
    "security.key.guards-inference",
    "cancellation.counted",
    "stream.prompt-kept-out",
}
#: Judges the log, which no wrong answer changes.
LOG_CHECK = "health.log.no-gpu-fault"
#: Judge answers and scrapes against each other, of which these recordings have one or none: defects of the
#: matrix break them.
SEVERAL = {"health.one-process", "health.one-version", "health.one-model"}
#: Of requests that are newer than these recordings: defects of the matrix break them.
NEWER = {
    "errors.hostile[stop-token-out-of-vocabulary-held]",
    "errors.refused[model-unknown-detokenize]",
    "health.described",
    "metrics.accounts.answers",
    "metrics.accounts.histograms",
    "metrics.accounts.prompts",
    "metrics.accounts.requests",
    "metrics.engines.shared",
    "metrics.gauges.busy",
    "metrics.gauges.part",
    "metrics.gauges.several",
    "security.cross-origin.refused",
    "security.key.exact",
    "security.key.scheme-case",
    "stream.pace.flows",
    "stream.parity.seeded",
    "stream.stop.unmatched",
    "stream.usage.running",
}
#: Stand in the folder of another area: they judge every answer, wherever it comes from.
OF_ALL = ("answers.whole", "answers.complete", "answers.plain")
PREFIX = {"streaming": "stream"}
BREAKS = {
    "streaming": [*STREAMING, *ISOLATION],
    "errors": ERRORS,
    "health": HEALTH,
    "metrics": METRICS,
    "security": SECURITY,
    "cancellation": CANCELLATION,
}
ALL = [(area, broken) for area, breaks in BREAKS.items() for broken in breaks]


@pytest.mark.parametrize("area", AREAS)
def test_a_real_server_passes(area: str) -> None:
    judged = {check.key: judge(check, healthy(area)) for check in checks(area)}
    wrong = {
        key: said
        for key, said in judged.items()
        if said.verdict != "pass" and key not in KNOWN | SEVERAL and not NEWER & {key, key.split("[")[0]}
    }

    assert wrong == {}


@pytest.mark.parametrize("area", AREAS)
def test_the_known_faults_of_a_real_server_are_seen(area: str) -> None:
    known = [check for check in checks(area) if check.key in KNOWN]

    assert {check.key: judge(check, healthy(area)).verdict for check in known} == {
        check.key: "fail" for check in known
    }


@pytest.mark.parametrize(
    ("area", "broken"), ALL, ids=[f"{area}-{b.fault}".replace(" ", "-") for area, b in ALL]
)
def test_a_wrong_answer_fails_the_checks_that_name_it(area: str, broken: Break) -> None:
    recordings = broken.change(healthy(area))
    judged = {check.key: judge(check, recordings) for check in checks(area)}
    failing = {key: said.why for key, said in judged.items() if said.verdict == "fail" and key not in KNOWN}

    assert sorted(failing) == sorted(set(broken.checks) - KNOWN), failing
    assert all(failing.values()), "a check does not say what it saw"
    assert {key: said.why for key, said in judged.items() if said.verdict == "crash"} == {}


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:01:00): 13, Graphics Exception",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
    ],
)
def test_a_fault_of_the_gpu_in_the_log_is_seen(line: str) -> None:
    (check,) = [check for check in checks("health") if check.spec.id == LOG_CHECK]

    assert judge(check, {}, log=((1.0, line),)).verdict == "fail"
    assert judge(check, {}, log=()).verdict == "not-run"


def test_every_check_is_seen_to_fail() -> None:
    seen = {key.split("[")[0] for _, broken in ALL for key in broken.checks}
    seen |= {key.split("[")[0] for key in KNOWN} | {LOG_CHECK, *SEVERAL, *NEWER}
    missing = {check.spec.id for area in AREAS for check in checks(area)} - seen

    assert missing == set()


def test_ids_are_unique_and_begin_with_their_area() -> None:
    keys = Counter(check.key for area in AREAS for check in checks(area))
    other = [
        check.key
        for area in AREAS
        for check in checks(area)
        if check.spec.id.split(".")[0] != PREFIX.get(area, area)
    ]

    assert [key for key, count in keys.items() if count > 1] == []
    assert other == [*OF_ALL]


def test_facts_are_one_short_line_that_states() -> None:
    facts = {check.spec.id: check.spec.fact for area in AREAS for check in checks(area)}
    bad = {key: fact for key, fact in facts.items() if len(fact) > 80 or "should" in fact.lower()}

    assert bad == {}


def test_specs_are_of_known_sources() -> None:
    specs = {check.spec.id: check.spec.spec for area in AREAS for check in checks(area)}

    assert {key: spec for key, spec in specs.items() if spec.split(":")[0] not in SOURCES} == {}


def test_must_checks_outnumber_the_others() -> None:
    levels = Counter({check.spec.id: check.spec.level for a in AREAS for check in checks(a)}.values())

    assert levels[MUST] > sum(levels.values()) / 2
