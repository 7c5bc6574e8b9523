"""A whole answer: its shape, its identity, its counts."""

from pytest_vllm import (
    INFO,
    MUST,
    SHOULD,
    Recording,
    Recordings,
    Server,
    check,
    listed,
    need,
    only_if,
    parting,
    shape_faults,
    unexpected,
)

from .blocks import blocks, prompt_tokens, spoken, wholes, words
from .exchanges import TOKENS

SPEC = "anthropic:messages"
NEEDS = ("messages",)
AREA = ("messages.",)
COUNTING = "0.17.0"


@check("messages.answered", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_answered(vllm_recordings: Recordings) -> None:
    """Every valid request that is not streamed is answered with 200."""
    asked = [r for r in vllm_recordings.of("messages.") if not r.request.streams]
    wrong = unexpected(r for r in asked if not r.key.startswith("messages.call"))

    assert not wrong, listed(wrong)


@check("messages.schema", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_schema(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """An answer has the fields and types that clients rely on."""
    wrong = shape_faults("message", wholes(vllm_recordings), vllm_server.version, MUST)

    assert not wrong, listed(wrong)


@check("messages.schema-fully", SHOULD, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_schema_fully(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """An answer has the fields that Anthropic always sends."""
    wrong = shape_faults("message", wholes(vllm_recordings), vllm_server.version, SHOULD)

    assert not wrong, listed(wrong)


@check("messages.known-fields", INFO, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_known_fields(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """No answer has a field that neither Anthropic nor this vLLM is known to send."""
    wrong = shape_faults("message", wholes(vllm_recordings), vllm_server.version, INFO)

    assert not wrong, listed(wrong)


@check("messages.id.unique", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_unique(vllm_recordings: Recordings) -> None:
    """No two answers share an id."""
    answers = wholes(vllm_recordings)
    need(len(answers) > 1, f"{len(answers)} requests were answered")
    ids = [str(r.ok.get("id")) for r in answers]

    assert len(set(ids)) == len(ids), f"{len(ids) - len(set(ids))} of {len(ids)} ids were given before"


@check("messages.id.prefix", INFO, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_prefix(vllm_recordings: Recordings) -> None:
    """The id of an answer begins with `msg_`."""
    answers = wholes(vllm_recordings)
    need(answers, "no request was answered")
    wrong = [f"{r.key}: {r.ok.get('id')!r}" for r in answers if not str(r.ok.get("id")).startswith("msg_")]

    assert not wrong, listed(wrong)


@check("messages.model", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_model(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """An answer names the model that was asked for, or another name of it."""
    answers = wholes(vllm_recordings)
    need(answers, "no request was answered")
    known = {vllm_server.model, *vllm_server.models}
    wrong = [f"{r.key}: {r.ok.get('model')!r}" for r in answers if r.ok.get("model") not in known]

    assert not wrong, listed(wrong)


@check("messages.content.filled", MUST, spec=SPEC, needs=NEEDS)
def test_filled(messages_plain: Recording) -> None:
    """An answer of a dozen tokens holds a block that says something."""
    need((messages_plain.ok.get("usage") or {}).get("output_tokens") != 1, "the model ended at once")

    assert words(messages_plain.ok).strip(), f"content is {messages_plain.ok.get('content')!r:.120}"


@check("messages.usage.counted", MUST, spec="fault:BerriAI/litellm/issues/24176", needs=NEEDS)
def test_counted(messages_plain: Recording) -> None:
    """Prompt and answer tokens are counted, and no more than were asked for."""
    usage = messages_plain.ok.get("usage") or {}

    assert prompt_tokens(usage) > 0, f"usage is {usage}"
    assert 0 < (usage.get("output_tokens") or 0) <= TOKENS, f"usage is {usage}, max_tokens was {TOKENS}"


@check("messages.usage.like-chat", MUST, spec=SPEC, needs=("messages", "chat"))
def test_like_chat(messages_cut: Recording, messages_chat: Recording) -> None:
    """The same question has as many tokens as over chat."""
    ours, chat = prompt_tokens(messages_cut.ok.get("usage")), messages_chat.ok["usage"]["prompt_tokens"]
    need(ours, "no tokens of the prompt were counted")

    assert ours == chat, f"{ours} here, {chat} over chat"


@check("messages.text.like-chat", SHOULD, spec=SPEC, needs=("messages", "chat"))
def test_text_like_chat(
    messages_plain: Recording, messages_again: Recording, messages_chat: Recording
) -> None:
    """A greedy answer says the same as over chat."""
    ours, again = spoken(messages_plain.ok), spoken(messages_again.ok)
    chat = str(messages_chat.ok["choices"][0]["message"].get("content") or "")
    need(
        ours and ours == again, "the server does not repeat its own greedy answers, or they are all reasoning"
    )

    assert ours == chat, f"they part at character {parting(ours, chat)}: here {ours!r:.60}, chat {chat!r:.60}"


@check("messages.count.answered", MUST, spec="anthropic:messages-count-tokens", needs=NEEDS)
def test_count_answered(vllm_server: Server, messages_count: Recording) -> None:
    """Tokens are counted without an answer."""
    only_if(vllm_server.at_least(COUNTING), f"vLLM counts from {COUNTING} on")
    messages_count.answered()

    assert messages_count.status == 200, f"answered with {messages_count.status}: {messages_count.text[:120]}"


@check("messages.count.agrees", MUST, spec="fault:BerriAI/litellm/issues/30043", needs=NEEDS)
def test_count_agrees(vllm_server: Server, messages_count: Recording, messages_cut: Recording) -> None:
    """A count of tokens is what the same prompt costs."""
    only_if(vllm_server.at_least(COUNTING), f"vLLM counts from {COUNTING} on")
    counted, paid = messages_count.ok.get("input_tokens"), prompt_tokens(messages_cut.ok.get("usage"))
    need(paid, "no tokens of the prompt were counted")

    assert counted == paid, f"counted {counted}, the answer's usage says {paid}"


@check("messages.count.tools", MUST, spec="anthropic:messages-count-tokens", needs=("messages", "tools"))
def test_count_tools(vllm_server: Server, messages_count_tools: Recording, messages_tools: Recording) -> None:
    """A count of tokens includes the tools."""
    only_if(vllm_server.at_least(COUNTING), f"vLLM counts from {COUNTING} on")
    counted, paid = messages_count_tools.ok.get("input_tokens"), prompt_tokens(messages_tools.ok.get("usage"))
    need(paid, "no tokens of the prompt were counted")

    assert counted == paid, f"counted {counted}, the answer's usage says {paid}"


@check("messages.content.blocks", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_blocks(vllm_recordings: Recordings) -> None:
    """An answer holds a block, even when the model said nothing."""
    answers = wholes(vllm_recordings)
    need(answers, "no request was answered")
    wrong = [f"{r.key}: {r.ok.get('content')!r}" for r in answers if not blocks(r.ok)]

    assert not wrong, listed(wrong)


@check(
    "messages.thinking.answered",
    MUST,
    spec="fault:QwenLM/Qwen3.8/issues/162",
    needs=(*NEEDS, "chat", "reasoning"),
)
def test_thought(messages_thought: Recording, reasoning_plain: Recording) -> None:
    """What follows a chat's reasoning follows it over Messages, too."""
    only_if(messages_thought.status not in (400, 404), f"refused: {messages_thought.text[:120]}")
    (chat,) = reasoning_plain.ok["choices"]
    only_if(chat["finish_reason"] == "stop" and chat["message"].get("content"), "the chat says nothing")
    body = messages_thought.ok
    only_if(body.get("stop_reason") == "end_turn", "the answer was cut")
    said = "".join(str(block.get("text") or "") for block in body.get("content") or ())
    kinds = [block.get("type") for block in body.get("content") or ()]

    assert said.strip(), f"over chat {chat['message']['content'].strip()[:60]!r}, here blocks of {kinds}"
