"""What a stream begins with: clients build their message on it."""

from __future__ import annotations

from typing import Any

from pytest_vllm import MUST, Recording, Recordings, Server, check, listed, need, only_if

from .blocks import events, kind, streams

SPEC = "anthropic:messages-streaming"
NEEDS = ("messages", "stream")
AREA = ("messages.",)
SWITCHED = "fault:vllm-project/vllm/pull/50594"
#: Block type -> the fields that its deltas are added to, with what they begin as.
EMPTY: dict[str, dict[str, Any]] = {
    "text": {"text": ""},
    "thinking": {"thinking": ""},
    "tool_use": {"input": {}},
}


@check("messages.stream.begins-whole", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_begins_whole(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """A stream begins with a message of the model that has an id and says nothing yet."""
    found = [(one.key, event.get("message")) for one, event in _first(vllm_recordings, "message_start")]
    need(found, "no stream began with a message")
    wrong = [
        f"{key}: {fault}" for key, message in found if (fault := _message_fault(message, vllm_server.model))
    ]

    assert not wrong, listed(wrong)


@check("messages.stream.usage-begins", MUST, spec="anthropic:messages-streaming", needs=NEEDS, exchanges=AREA)
def test_usage_begins(vllm_recordings: Recordings) -> None:
    """The message that begins a stream counts tokens in whole numbers."""
    usages = [
        (one.key, (event.get("message") or {}).get("usage"))
        for one, event in _first(vllm_recordings, "message_start")
        if isinstance(event.get("message"), dict)
    ]
    need(usages, "no stream began with a message")
    wrong = [
        f"{key}: {usage!r}"
        for key, usage in usages
        if not isinstance(usage, dict)
        or not all(_count(usage.get(name)) for name in ("input_tokens", "output_tokens"))
    ]

    assert not wrong, listed(wrong)


@check("messages.stream.blocks-begin", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_blocks_begin(vllm_recordings: Recordings) -> None:
    """A block begins with the empty field that its deltas fill."""
    found = [
        (one.key, event.get("content_block")) for one, event in _first(vllm_recordings, "content_block_start")
    ]
    need(found, "no stream began a block")
    wrong = [f"{key}: {block!r}"[:200] for key, block in found if not _empty(block)]

    assert not wrong, listed(wrong)


def _first(recordings: Recordings, wanted: str) -> list[tuple[Recording, dict[str, Any]]]:
    return [(one, event) for one in streams(recordings) for event in events(one) if kind(event) == wanted]


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _message_fault(message: object, model: str) -> str:
    if not isinstance(message, dict):
        return f"it is {message!r}"
    wanted = {"type": "message", "role": "assistant", "content": [], "model": model}
    wrong = [f"{name} is {message.get(name)!r}" for name in wanted if message.get(name) != wanted[name]]
    if not (isinstance(message.get("id"), str) and message["id"]):
        wrong.append(f"id is {message.get('id')!r}")
    return ", ".join(wrong)


def _empty(block: object) -> bool:
    if not isinstance(block, dict):
        return False
    begun = EMPTY.get(str(block.get("type")), {})
    named = block.get("type") != "tool_use" or all(
        isinstance(block.get(name), str) and block[name] for name in ("id", "name")
    )
    return named and all(block.get(name) == value for name, value in begun.items())


@check("messages.stream.thinking", MUST, spec=SWITCHED, needs=(*NEEDS, "reasoning"))
def test_thinking(messages_thinking: Recording, messages_thinking_stream: Recording) -> None:
    """A stream puts reasoning into a block of its own where the whole answer does."""
    whole = [block.get("type") for block in _switched(messages_thinking)]
    only_if(whole[:1] == ["thinking"], f"the whole answer is made of {whole}")
    begun = [one.get("content_block") or {} for one in events(messages_thinking_stream)]
    kinds = [block["type"] for block in begun if "type" in block]
    need(kinds, "the stream begins no block")

    assert kinds[0] == "thinking", f"the whole answer begins with thinking, the stream with {kinds[0]}"


@check("messages.stream.thinking-said", MUST, spec=SWITCHED, needs=(*NEEDS, "reasoning"))
def test_thinking_said(messages_thinking: Recording, messages_thinking_stream: Recording) -> None:
    """A stream has words of reasoning where the whole answer has some."""
    whole = "".join(str(block.get("thinking") or "") for block in _switched(messages_thinking)).strip()
    deltas = [one.get("delta") or {} for one in events(messages_thinking_stream)]
    streamed = "".join(str(delta.get("thinking") or "") for delta in deltas).strip()
    only_if(whole or streamed, "nothing was thought")

    assert streamed, f"none streamed, the whole answer reasons {whole[:80]!r}"
    assert whole, f"none in the whole answer, {streamed[:80]!r} in the stream"


def _switched(whole: Recording) -> list[dict[str, Any]]:
    """The blocks of a whole answer with reasoning switched on. Raises NotRun where the switch is refused."""
    only_if(whole.status == 200, f"the switch is refused: {whole.text[:120]}")
    return [*(whole.ok.get("content") or ())]
