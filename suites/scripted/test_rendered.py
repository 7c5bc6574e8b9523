"""The same scripts over Responses and over Anthropic's Messages."""

from __future__ import annotations

from pytest_vllm import MUST, Case, Recording, Server, check, listed, only_if

from .phrasing import MESSAGES_SINCE, RESPONSES_SINCE
from .rendered import last_response, message, response
from .scripts import faults, script_of

RESPONSES = ("responses", "scripted")
MESSAGES = ("messages", "scripted")


@check("scripted.response.whole", MUST, spec="openai:responses/object", needs=RESPONSES)
def test_response(vllm_server: Server, scripted_rendering: Case, scripted_response_whole: Recording) -> None:
    """A whole response holds the calls, text and reasoning that the model wrote."""
    only_if(vllm_server.at_least(RESPONSES_SINCE), f"Responses carry scripts since {RESPONSES_SINCE}")
    script = script_of(vllm_server, scripted_rendering)
    wrong = faults(vllm_server, script, response(scripted_response_whole))

    assert not wrong, listed(wrong)


@check("scripted.response.stream", MUST, spec="openai:responses-streaming", needs=(*RESPONSES, "stream"))
def test_response_stream(
    vllm_server: Server, scripted_rendering: Case, scripted_response_stream: Recording
) -> None:
    """The deltas of a response join to what the model wrote."""
    only_if(vllm_server.at_least(RESPONSES_SINCE), f"Responses carry scripts since {RESPONSES_SINCE}")
    wrong = faults(
        vllm_server, script_of(vllm_server, scripted_rendering), response(scripted_response_stream)
    )

    assert not wrong, listed(wrong)


@check("scripted.response.end", MUST, spec="openai:responses-streaming", needs=(*RESPONSES, "stream"))
def test_response_end(
    vllm_server: Server, scripted_rendering: Case, scripted_response_stream: Recording
) -> None:
    """The last event of a response's stream holds what the model wrote."""
    only_if(vllm_server.at_least(RESPONSES_SINCE), f"Responses carry scripts since {RESPONSES_SINCE}")
    wrong = faults(
        vllm_server, script_of(vllm_server, scripted_rendering), last_response(scripted_response_stream)
    )

    assert not wrong, listed(wrong)


@check("scripted.message.whole", MUST, spec="anthropic:messages", needs=MESSAGES)
def test_message(vllm_server: Server, scripted_rendering: Case, scripted_message_whole: Recording) -> None:
    """A whole message holds the calls, text and reasoning that the model wrote."""
    only_if(vllm_server.at_least(MESSAGES_SINCE), f"Messages carry scripts since {MESSAGES_SINCE}")
    script = script_of(vllm_server, scripted_rendering)
    wrong = faults(vllm_server, script, message(scripted_message_whole))

    assert not wrong, listed(wrong)


@check("scripted.message.stream", MUST, spec="anthropic:messages", needs=(*MESSAGES, "stream"))
def test_message_stream(
    vllm_server: Server, scripted_rendering: Case, scripted_message_stream: Recording
) -> None:
    """The deltas of a message join to what the model wrote."""
    only_if(vllm_server.at_least(MESSAGES_SINCE), f"Messages carry scripts since {MESSAGES_SINCE}")
    script = script_of(vllm_server, scripted_rendering)
    wrong = faults(vllm_server, script, message(scripted_message_stream))

    assert not wrong, listed(wrong)
