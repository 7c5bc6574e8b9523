"""A server counts as scripted when it says what it is told, not because its arguments say so."""

from __future__ import annotations

from typing import Any

from pytest_vllm.run.capabilities import SCRIPT
from tests.unit.fake_vllm import FakeVLLM, how

ARGS = {"args": {"logits-processors": ["pytest_vllm_script:ScriptedProcessor"]}, "launcher": "docker"}


def obedient(body: dict[str, Any]) -> tuple[int, Any]:
    """Says what it is told, as thoughts."""
    script = (body.get("vllm_xargs") or {}).get("script", "Hi")
    return 200, {"choices": [{"message": {"content": None, "reasoning": script}}], "usage": {}}


def test_a_server_that_says_it() -> None:
    server = FakeVLLM({"POST /v1/chat/completions": obedient})

    assert how(server, "scripted", **ARGS) == (True, "trial request: says what was scripted")
    assert how(server, "scripted") == (True, "trial request: says what was scripted")


def test_a_server_whose_chat_spoils_it() -> None:
    def spoils(body: dict[str, Any]) -> tuple[int, Any]:
        status, answer = obedient(body)
        answer["choices"][0]["message"]["reasoning"] = None
        return status, answer

    def says(body: dict[str, Any]) -> tuple[int, Any]:
        return 200, {"choices": [{"text": (body.get("vllm_xargs") or {}).get("script", "Hi")}], "usage": {}}

    server = FakeVLLM({"POST /v1/chat/completions": spoils, "POST /v1/completions": says})

    assert how(server, "scripted", **ARGS) == (True, "trial request: says what was scripted")


def test_a_server_that_does_not() -> None:
    assert how(FakeVLLM(), "scripted", **ARGS) == (False, "trial request: does not say what was scripted")
    assert how(FakeVLLM(), "scripted") == (False, "trial request: does not say what was scripted")


def test_without_a_processor_nothing_is_asked() -> None:
    asked: list[dict[str, Any]] = []

    def listening(body: dict[str, Any]) -> tuple[int, Any]:
        asked.append(body)
        return obedient(body)

    server = FakeVLLM({"POST /v1/chat/completions": listening})

    assert how(server, "scripted", launcher="docker") == (False, "server args: no logits-processors")
    assert not any(SCRIPT in str(body) for body in asked)
