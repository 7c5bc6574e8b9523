"""How reasoning ends in a prompt is asked of the server, and then written so in every prompt."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pytest_vllm.run.needs import BOUND, unmet
from pytest_vllm.run.thought import FORMS, with_thought
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.server import CLOSED, Capability, Server

NAMES = ("completions", "structured-output", "reasoning")
RULE: dict[str, Any] = {"structured_outputs": {"regex": "[a-z]"}}


class Engine:
    """Holds an answer to its constraint where the reasoning has ended in one of these forms."""

    def __init__(self, *ends: str, choices: int | None = None) -> None:
        self.ends, self.choices, self.asked = ends, choices, 0

    async def trial(self, path: str, body: dict[str, Any]) -> Recording:
        self.asked += 1
        rows = [
            {"index": at, "text": '"zz' if any(end in prompt for end in self.ends) else "Well, "}
            for at, prompt in enumerate(body["prompt"])
        ]
        text = json.dumps({"choices": rows[: self.choices]})
        return Recording(
            "probe", Request("POST", path, json=body), status=200, chunks=((0.0, text.encode()),)
        )


def asked(engine: Engine, *, reasons: bool = True) -> Server:
    found = {name: Capability(name, reasons or name != "reasoning", "probed") for name in NAMES}
    server = Server("http://x", "m", capabilities=found)
    findings: Any = engine
    return asyncio.run(with_thought(server, findings))


@pytest.mark.parametrize("form", FORMS)
def test_the_form_that_is_obeyed_ends_the_reasoning_of_every_prompt(form: str) -> None:
    server = asked(Engine(form))

    assert server.closed == form
    assert server.completion([f"{CLOSED}Write:", "Hi"]).json["prompt"] == [f"{form}Write:", "Hi"]
    assert not unmet(server.completion("Hi", **RULE), server)


def test_where_none_is_obeyed_constraints_are_not_asked_for() -> None:
    server = asked(Engine())

    assert server.closed == CLOSED
    assert not server.can(BOUND)
    assert "vllm-project/vllm#57726" in unmet(server.completion("Hi", **RULE), server)
    assert not unmet(server.completion("Hi"), server)
    assert not unmet(server.chat("Hi", **RULE), server)


def test_a_server_that_does_not_reason_is_not_asked() -> None:
    engine = Engine()
    server = asked(engine, reasons=False)

    assert engine.asked == 0
    assert BOUND not in server.capabilities


def test_an_answer_that_cannot_be_read_changes_nothing() -> None:
    assert BOUND not in asked(Engine(CLOSED, choices=3)).capabilities
