"""Calls over this interface."""

from typing import Any

from pytest_vllm import MUST, Recording, Recordings, check, need, only_if, unexpected

from ..oracle.answers import MESSAGES, answer_of  # noqa: TID252 - suites lie together
from ..oracle.numbering import THREE, misnumbered  # noqa: TID252 - suites lie together
from .blocks import arguments, blocks, delta, events, last_word, object_of, of, spoken
from .exchanges import ARGUMENTS, OTHER_TOOL, TOOL

SPEC = "anthropic:messages"
MIXED = "fault:maximhq/bifrost/issues/3638"
NEEDS = ("messages", "tools.required")
STREAMED = ("messages", "tools.required", "stream")
MARKS = ("<tool_call", "<function", "[TOOL_CALLS]", "<|python_tag|>", "<|tool_call", "<|channel|>")


def complete(recording: Recording) -> None:
    """Raise Undecided where the tokens ran out before the call was made."""
    reason = recording.ok.get("stop_reason")
    need(reason != "max_tokens", "the tokens ran out before the call was made")


@check("messages.call.answered", MUST, spec=SPEC, needs=NEEDS, exchanges=("messages.call",))
def test_answered(vllm_recordings: Recordings) -> None:
    """A request that forces a call is answered with 200."""
    wrong = unexpected(vllm_recordings.of("messages.call"))

    assert not wrong, "; ".join(wrong)


@check(
    "messages.every.numbered",
    MUST,
    spec="anthropic:messages-streaming",
    needs=["messages", "stream"],
    exchanges=THREE,
)
def test_numbered(vllm_recordings: Recordings) -> None:
    """The blocks of every stream are numbered from 0 on, each number for one of them."""
    wrong = misnumbered(vllm_recordings, MESSAGES)

    assert not wrong, wrong


@check("messages.call.named", MUST, spec=SPEC, needs=NEEDS)
def test_named(messages_named: Recording) -> None:
    """The tool that a request names is called, whatever was said."""
    only_if(messages_named.status != 400, f"refused: {messages_named.text[:120]}")
    complete(messages_named)
    made = [one.get("name") for one in blocks(messages_named.ok, "tool_use")]

    assert made == [OTHER_TOOL], f"called: {made}, content is {messages_named.ok.get('content')!r:.160}"


@check("messages.call.block", MUST, spec="fault:vllm-project/vllm/issues/42400", needs=NEEDS)
def test_block(messages_call: Recording) -> None:
    """A required call is a block of type `tool_use` that names the tool and an id."""
    complete(messages_call)
    made = blocks(messages_call.ok, "tool_use")

    assert made, f"content is {messages_call.ok.get('content')!r:.160}"
    assert all((b.get("name"), bool(b.get("id"))) == (TOOL, True) for b in made), f"called: {made!r:.160}"


@check("messages.call.input", MUST, spec=SPEC, needs=NEEDS)
def test_input(messages_call: Recording) -> None:
    """The input of a call is an object that the tool's schema allows."""
    made = blocks(messages_call.ok, "tool_use")
    complete(messages_call)
    need(made, "no call was made")

    assert made[0].get("input") == ARGUMENTS, f"input is {made[0].get('input')!r:.120}"


@check("messages.call.reason", MUST, spec=MIXED, needs=NEEDS)
def test_reason(messages_call: Recording) -> None:
    """An answer that holds a call stops for `tool_use`."""
    complete(messages_call)
    need(blocks(messages_call.ok, "tool_use"), "no call was made")

    assert messages_call.ok.get("stop_reason") == "tool_use", (
        f"stop_reason is {messages_call.ok.get('stop_reason')!r}"
    )


@check("messages.call.no-markup", MUST, spec=SPEC, needs=NEEDS)
def test_no_markup(messages_call: Recording) -> None:
    """The markup in which the model writes calls is not in the text."""
    said = spoken(messages_call.ok)

    assert not any(mark in said for mark in MARKS), f"text is {said!r:.120}"


@check("messages.calls.like-chat", MUST, spec=MIXED, needs=(*NEEDS, "chat"))
def test_like_chat(
    messages_calls: Recording, messages_calls_again: Recording, messages_calls_chat: Recording
) -> None:
    """Several calls have the names and the input that they have over chat."""
    here, again, chat = (_made(one) for one in (messages_calls, messages_calls_again, messages_calls_chat))
    need(here == again, "the server does not repeat itself")

    assert here == chat, f"called {here}, over chat {chat}"


@check("messages.calls.streamed", MUST, spec=MIXED, needs=STREAMED)
def test_calls_streamed(
    messages_calls: Recording, messages_calls_again: Recording, messages_calls_stream: Recording
) -> None:
    """A stream with several calls makes the ones of the whole answer."""
    here, again, stream = (
        _made(one) for one in (messages_calls, messages_calls_again, messages_calls_stream)
    )
    need(here == again, "the server does not repeat itself")

    assert here == stream, f"called {here}, streamed {stream}"


def _made(recording: Recording) -> list[tuple[str, Any]]:
    """Name and input of each call. Raises NotRun where such a request is refused."""
    recording.answered()
    only_if(recording.status != 400, f"refused: {recording.text[:120]}")
    answer = answer_of(recording)
    need(answer and answer.choices[0].calls, f"no call was made: {recording.text[:120]}")
    return [(name, object_of(given)) for name, given in answer.choices[0].calls]  # type: ignore[union-attr]


@check("messages.call.streamed", MUST, spec=MIXED, needs=STREAMED)
def test_streamed(messages_call_stream: Recording) -> None:
    """In a stream, too, a required call is a block, and the reason for which it stops."""
    need(events(messages_call_stream), "the stream held no event")
    reason = delta(last_word(messages_call_stream)).get("stop_reason")
    need(reason != "max_tokens", "the tokens ran out before the call was made")
    begun = [event.get("content_block") or {} for event in of(messages_call_stream, "content_block_start")]
    names = [block.get("name") for block in begun if block.get("type") == "tool_use" and block.get("id")]

    assert names == [TOOL], f"calls are {names} among {[block.get('type') for block in begun]}"
    assert reason == "tool_use", f"stop_reason is {reason!r}"


@check("messages.call.joined", MUST, spec="fault:BerriAI/litellm/issues/30043", needs=STREAMED)
def test_joined(messages_call: Recording, messages_call_stream: Recording) -> None:
    """The pieces of a call's input, joined, are the input that it has in one piece."""
    reason = delta(last_word(messages_call_stream)).get("stop_reason")
    need(reason != "max_tokens", "the tokens ran out before the call was made")
    whole = blocks(messages_call.ok, "tool_use")
    begun = [event.get("content_block") or {} for event in of(messages_call_stream, "content_block_start")]
    need(
        whole and any(block.get("type") == "tool_use" for block in begun),
        "no call was made in one of the two",
    )
    need(whole[0].get("input") == ARGUMENTS, f"the whole answer's input is {whole[0].get('input')!r:.80}")

    assert object_of(arguments(messages_call_stream)) == whole[0]["input"], (
        f"streamed {arguments(messages_call_stream)!r:.100}, whole {whole[0]['input']!r:.100}"
    )
