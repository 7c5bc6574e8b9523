"""Speeds against a baseline: what is worse is found, what is the same is not accused, the rest is said."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from pytest_vllm.decide.baseline import Baseline, BaselineError, from_json, to_json
from pytest_vllm.measure.against import kept, regressed
from pytest_vllm.measure.measured import Measured
from pytest_vllm.measure.samples import Sample
from pytest_vllm.measure.statistics import Outcome
from pytest_vllm.measure.workload import Kind, Prompts, Workload

TOKENS = 64
WORKLOAD = Workload(kinds=(Kind("one", Prompts(tokens=32), TOKENS),), seconds=60.0)


def load(rate: float, seed: int, seconds: float = 60.0, noise: float = 0.05) -> Measured:
    """Simulated: one stream after the other for so long, at so many tokens per second, more or less."""
    drawn, at, samples = random.Random(seed), 0.0, []  # noqa: S311 - noise, no secret
    while at < seconds:
        first = 0.1 * (1 + noise * drawn.gauss(0, 1))
        gap = 1 / rate / (1 + noise * drawn.gauss(0, 1))
        deltas = [at + first + gap * number for number in range(TOKENS)]
        samples.append(Sample("one", at, at, at, deltas, deltas[-1], tokens=TOKENS, prompt_tokens=32))
        at = deltas[-1]
    return Measured("throughput.decode", WORKLOAD, samples=tuple(samples), window=(0.0, at))


def saved(measured: Measured, **changes: object) -> Baseline:
    """The baseline of that load, through its file."""
    one = Baseline("p", "0.31.0", "2026-11-20", False, {}, "gb10", {measured.key: kept(measured)})
    return replace(from_json(json.loads(json.dumps(to_json([one]))))["p"], **changes)  # type: ignore[arg-type]


def outcomes(drop: float, fraction: float, runs: int, seconds: float) -> list[Outcome]:
    return [
        regressed(
            load(100 * (1 - drop), 2 * seed, seconds),
            "decode-tok-s",
            saved(load(100, 2 * seed + 1, seconds)),
            fraction,
            "gb10",
        ).outcome
        for seed in range(runs)
    ]


def test_ten_percent_are_found_within_a_minute() -> None:
    found = outcomes(drop=0.10, fraction=0.02, runs=200, seconds=60)

    assert found.count(Outcome.FAILS) >= 0.95 * len(found)


def test_five_percent_are_found_within_five_minutes() -> None:
    found = outcomes(drop=0.05, fraction=0.01, runs=60, seconds=300)

    assert found.count(Outcome.FAILS) >= 0.95 * len(found)


def test_the_same_speed_is_rarely_accused() -> None:
    found = outcomes(drop=0.0, fraction=0.0, runs=200, seconds=60)

    assert found.count(Outcome.FAILS) <= 0.02 * len(found)


def test_the_same_speed_holds_where_some_loss_is_allowed() -> None:
    found = outcomes(drop=0.0, fraction=0.10, runs=40, seconds=60)

    assert found.count(Outcome.HOLDS) >= 0.95 * len(found)


def test_a_time_may_not_grow() -> None:
    slower = regressed(load(80, 1), "tpot", saved(load(100, 2)), 0.05, "gb10")

    assert slower.outcome is Outcome.FAILS
    assert "at most 1.05 times" in slower.text[:80], "one line of a terminal holds it"
    assert "of 2026-11-20, vLLM 0.31.0" in slower.text


def test_what_cannot_be_decided_says_what_would() -> None:
    short = regressed(load(85, 1, seconds=8, noise=0.2), "decode-tok-s", saved(load(100, 2)), 0.05, "gb10")

    assert short.outcome is Outcome.OPEN
    assert "s of load would decide it" in short.text


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"loads": {}}, "has no decode-tok-s of throughput.decode"),
        ({"simulated": True}, "was taken on a simulator"),
        ({"hardware": "h100"}, "was taken on other hardware, 'h100', and this is 'gb10'"),
    ],
)
def test_another_baseline_decides_nothing(changes: dict[str, object], why: str) -> None:
    decided = regressed(load(50, 1), "decode-tok-s", saved(load(100, 2), **changes), 0.05, "gb10")

    assert decided.outcome is Outcome.OPEN
    assert why in decided.text
    assert "--vllm-save-baseline=FILE" in decided.text


def test_another_load_decides_nothing() -> None:
    other = replace(load(100, 2), workload=replace(WORKLOAD, streams=8))
    decided = regressed(load(50, 1), "decode-tok-s", saved(other), 0.05, "gb10")

    assert decided.outcome is Outcome.OPEN
    assert "was taken under another load" in decided.text


def test_a_longer_load_is_the_same_load() -> None:
    longer = replace(load(100, 2, 120.0), workload=replace(WORKLOAD, seconds=120.0, patience=9.0))

    assert regressed(load(50, 1), "decode-tok-s", saved(longer), 0.05, "gb10").outcome is Outcome.FAILS


def test_a_baseline_of_an_older_version_has_no_speeds() -> None:
    entry = {"version": "0.31.0", "taken": "2026-11-20", "simulated": False, "verdicts": {"a.b": "pass"}}
    old = from_json({"format": "pytest-vllm-baseline", "version": 1, "profiles": {"p": entry}})["p"]

    assert (old.loads, old.hardware) == ({}, "")
    with pytest.raises(BaselineError, match="newer"):
        from_json({"format": "pytest-vllm-baseline", "version": 9, "profiles": {}})


@pytest.mark.parametrize(
    ("floor", "ceiling", "words"),
    [(5000.0, None, ", floor 5000 ("), (None, 5.0, ", limit 5 ("), (None, None, " (")],
)
def test_a_value_and_its_limit_stand_in_one_line_of_a_terminal(
    floor: float | None, ceiling: float | None, words: str
) -> None:
    text = load(100, 2).decide("decode-tok-s", floor=floor, ceiling=ceiling).text

    assert words in text[:40]
