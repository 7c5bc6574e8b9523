"""Stop strings in chat."""

from __future__ import annotations

from pytest_vllm import MUST, Recording, check, need, text_of

SPEC = "openai:chat/create#stop"
VLLM = "vllm:serving/openai_compatible_server/#chat-api"
CHAT = ["chat"]


@check("chat.stop.text", MUST, spec=SPEC, needs=CHAT)
def test_text(chat_stop: Recording) -> None:
    """No stop string stands in the answer."""
    text = text_of(chat_stop.ok["choices"][0])
    found = [stop for stop in chat_stop.request.json["stop"] if stop in text]

    assert not found, f"stop strings {found} in {text!r}"


@check("chat.stop.finish", MUST, spec=SPEC, needs=CHAT)
def test_finish(chat_stop: Recording, chat_plain: Recording) -> None:
    """An answer that a stop string ended has finish reason `stop`."""
    _need_a_stop(chat_stop, chat_plain)
    reason = chat_stop.ok["choices"][0]["finish_reason"]

    assert reason == "stop", f"finish_reason is {reason!r}"


@check("chat.stop.reason", MUST, spec=VLLM, needs=CHAT)
def test_reason(chat_stop: Recording, chat_plain: Recording) -> None:
    """`stop_reason` names the stop string that ended the answer."""
    _need_a_stop(chat_stop, chat_plain)
    stops, reason = chat_stop.request.json["stop"], chat_stop.ok["choices"][0].get("stop_reason")

    assert reason in stops, f"stop_reason is {reason!r}, stop is {stops}"


def _need_a_stop(stopped: Recording, plain: Recording) -> None:
    text = text_of(plain.ok["choices"][0])
    stops = stopped.request.json["stop"]
    need(any(stop in text for stop in stops), f"none of {stops} stands in the unstopped answer {text!r}")
