"""Large requests, answered in streams, and a long form."""

from __future__ import annotations

import json

from pytest_vllm import MUST, Recording, check, need, only_if

from ..oracle.answers import Answer, answer_of  # noqa: TID252 - suites lie together
from .exchanges import FORM, STORY
from .test_sizes import in_time, only_thought, refusable

CHAT = "openai:chat-streaming"


def same(whole: Recording, stream: Recording) -> None:
    """Fail unless a stream costs the prompt that the whole answer costs, and comes to an end."""
    refusable(whole, stream)
    in_time(stream)
    one, other = _read(whole), _read(stream)
    need(one.usage, f"{whole.key} has no usage")
    ends = [choice.finish for choice in other.choices]

    assert other.usage, f"{stream.key} has no usage"
    assert other.usage[0] == (one.usage or (0,))[0], f"{other.usage[0]} tokens streamed, whole {one.usage}"
    assert all(len(finish) == 1 for finish in ends), f"finish reasons of the stream: {ends}"


def _read(one: Recording) -> Answer:
    found = answer_of(one)
    need(found, f"{one.key} cannot be read: {one.status or one.error}")
    assert found is not None
    return found


@check("sizes.streamed.prompt", MUST, spec=CHAT, needs=("chat", "tokenize", "stream"))
def test_prompt(sizes_prompt: Recording, sizes_prompt_streamed: Recording) -> None:
    """A long prompt costs the same in a stream, which comes to an end."""
    same(sizes_prompt, sizes_prompt_streamed)


@check("sizes.streamed.agent", MUST, spec=CHAT, needs=("chat", "tools", "stream"))
def test_agent(sizes_agent: Recording, sizes_agent_streamed: Recording) -> None:
    """An agent's chat costs the same in a stream, which comes to an end."""
    same(sizes_agent, sizes_agent_streamed)


@check("sizes.streamed.messages", MUST, spec="anthropic:messages", needs=("messages", "tools", "stream"))
def test_messages(sizes_agent_messages: Recording, sizes_agent_messages_streamed: Recording) -> None:
    """An agent's Messages cost the same in a stream, which comes to an end."""
    same(sizes_agent_messages, sizes_agent_messages_streamed)


@check(
    "sizes.streamed.responses", MUST, spec="openai:responses/create", needs=("responses", "tools", "stream")
)
def test_responses(sizes_agent_response: Recording, sizes_agent_response_streamed: Recording) -> None:
    """An agent's Responses cost the same in a stream, which comes to an end."""
    same(sizes_agent_response, sizes_agent_response_streamed)


@check("sizes.form", MUST, spec="openai:chat/create#response_format", needs=("chat", "structured-output"))
def test_form(sizes_form: Recording) -> None:
    """A form with a long text is filled in to its end."""
    only_if(sizes_form.status not in (400, 422), f"refused: {sizes_form.text[:120]}")
    (choice,) = sizes_form.ok["choices"]
    need(choice["finish_reason"] == "stop", f"it was ended by {choice['finish_reason']!r}")
    need(not only_thought(choice), "the model ended within its reasoning")
    text = choice["message"]["content"] or ""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise AssertionError(f"no JSON ({error}): {text[-80:]!r}") from error

    assert found == {"story": STORY, "end": FORM["properties"]["end"]["enum"][0]}, (
        f"filled in as {text[:200]!r}"
    )
