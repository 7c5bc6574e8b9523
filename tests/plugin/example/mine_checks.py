"""Checks of the project's own: an exchange, cases, capabilities, a load, and questions with known answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm import (
    MUST,
    SHOULD,
    Kind,
    Prompts,
    Workload,
    capability,
    case_file,
    cases,
    check,
    eval_set,
    exchange,
    measurement,
    observe,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from pytest_vllm import Case, Measured, Recording, Request, Score, Server


@exchange("mine.greeting")
def mine_greeting(server: Server) -> Request:
    """A greeting."""
    return server.chat("Say hello.", max_tokens=8)


@check("mine.greeting.answered", MUST, spec="profile:mine", needs=["chat"])
def test_greeting(mine_greeting: Recording) -> None:
    """Our greeting is answered."""
    assert mine_greeting.status == 200, f"answered {mine_greeting.status}"


mine_asked = cases("mine_asked", case_file("asked.jsonl"))


@exchange("mine.answer")
def mine_answer(server: Server, mine_asked: Case) -> Request:
    """What our users ask most."""
    return server.chat(mine_asked["ask"], max_tokens=4)


@check("mine.answer.given", MUST, spec="profile:mine", needs=["chat"])
def test_answer(mine_answer: Recording) -> None:
    """What our users ask is answered."""
    assert mine_answer.status == 200, f"answered {mine_answer.status}"


def asks_timetable(server: Server) -> Request:
    """Our own route, which the simulator does not have."""
    return server.get("/timetable")


def asks_health(server: Server) -> Request:
    """A route that is there."""
    return server.get("/health")


TIMETABLE = capability("our-timetable", probe=asks_timetable)
PULSE = capability("our-pulse", probe=asks_health, present=lambda answer: not answer.text)


@check("mine.timetable", MUST, spec="profile:mine", needs=[TIMETABLE])
def test_timetable(mine_greeting: Recording) -> None:
    """Our timetable is served; not run where it is absent."""
    assert mine_greeting.status == 0, "never judged on the simulator"


@check("mine.pulse", MUST, spec="profile:mine", needs=[PULSE])
def test_pulse(mine_greeting: Recording) -> None:
    """A server with our pulse greets."""
    assert mine_greeting.status == 200, f"answered {mine_greeting.status}"


@measurement("mine.load")
def mine_load() -> Workload:
    """Our own prompts, two at a time."""
    return Workload(streams=2, kinds=(Kind(prompts=Prompts(file="prompts.txt"), output=8),), requests=6)


@check("mine.load.answered", SHOULD, spec="profile:mine", exclusive=True)
def test_load(mine_load: Measured) -> None:
    """Every prompt of our load is answered."""
    observe("requests", len(mine_load.samples))
    assert not mine_load.errors, mine_load.errors[0]


@eval_set("questions.jsonl", id="mine.trains", scorer="regex", floor="3 of 3", max_tokens=16)
def test_trains(score: Score) -> None:
    """Questions about trains are answered."""
    assert score.total == 3


def short(text: str, question: Mapping[str, Any]) -> bool:
    """Whether an answer is shorter than its question says."""
    return len(text) < int(question.get("most", 2000))


@eval_set("questions.jsonl", id="mine.short", scorer=short, floor="50 %", samples=2, temperature=0.7)
def test_short() -> None:
    """Answers are short."""


@eval_set("questions.jsonl", id="mine.verbatim", level=SHOULD, scorer="exact", floor="1 of 3", max_tokens=4)
def test_verbatim() -> None:
    """One answer is the text of its pattern, which no server says: advisory."""
