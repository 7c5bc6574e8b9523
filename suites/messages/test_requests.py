"""What a request may look like, how an answer ends, and what is refused."""

from pytest_vllm import (
    MUST,
    SHOULD,
    Case,
    Profile,
    Recording,
    Recordings,
    Server,
    check,
    listed,
    need,
    only_if,
)

from .blocks import blocks, names_stops, prompt_tokens, spoken, wholes
from .exchanges import stop_of

SPEC = "anthropic:messages"
ERRORS = "anthropic:errors"
AGENTS = "fault:vllm-project/vllm/issues/44000"
NEEDS = ("messages",)
#: Tokens by which two prompts of one text may differ: fewer than a program's notation of a block adds.
MARKS = 6


def tokens(recording: Recording) -> int:
    """The tokens of the prompt. Raises Undecided where they are not reported."""
    found = prompt_tokens(recording.ok.get("usage"))
    need(found, f"{recording.key} counts no tokens of the prompt")
    return found


@check("messages.input.parts", MUST, spec=SPEC, needs=NEEDS)
def test_parts(messages_cut: Recording, messages_parts: Recording) -> None:
    """A text and a block of the same text make the same prompt."""
    text, parts = tokens(messages_cut), tokens(messages_parts)

    assert text == parts, f"{text} tokens as a text, {parts} in a block"


@check("messages.input.system", MUST, spec=SPEC, needs=NEEDS)
def test_system(messages_system: Recording, messages_system_twice: Recording) -> None:
    """The system text becomes part of the prompt."""
    refused = messages_system.status == 400
    only_if(not refused, f"the chat template refuses it: {messages_system.text[:120]}")
    once, twice = tokens(messages_system), tokens(messages_system_twice)

    assert twice > once, f"{once} tokens with a system text, {twice} with one twice as long"


@check("messages.input.system-blocks", MUST, spec=SPEC, needs=NEEDS)
def test_system_blocks(messages_system: Recording, messages_system_block: Recording) -> None:
    """A system text and a block of it make the same prompt."""
    refused = messages_system.status == 400
    only_if(not refused, f"the chat template refuses it: {messages_system.text[:120]}")
    text, parts = tokens(messages_system), tokens(messages_system_block)

    assert text == parts, f"{text} tokens as a text, {parts} in a block"


@check("messages.agent", MUST, spec=AGENTS, needs=NEEDS)
def test_agent(
    vllm_server: Server, agent_request: Case, messages_agent: Recording, messages_system: Recording
) -> None:
    """What agents send is served."""
    since = agent_request.get("since", "0")
    only_if(vllm_server.at_least(since), f"vLLM takes it from {since} on")
    only_if(vllm_server.can("tools") or not agent_request.get("tools"), "the server has no tools")
    systemless = messages_system.status == 400 and agent_request.get("system")
    only_if(not systemless, f"the chat template takes no system text: {messages_system.text[:120]}")
    messages_agent.rendered()
    status = messages_agent.status

    assert status == 200, f"{agent_request.id}: answered with {status}: {messages_agent.text[:160]}"


@check("messages.agent.context", SHOULD, spec="fault:vllm-project/vllm/issues/44576", needs=NEEDS)
def test_context(vllm_profile: Profile, vllm_server: Server, messages_models: Recording) -> None:
    """A server that promises messages and tools has a context that agents can use."""
    promised = {"messages", "tools"} <= set(vllm_profile.expect.capabilities)
    only_if(promised, "the profile does not promise messages with tools")
    told = {row.get("id"): row.get("max_model_len") for row in messages_models.ok.get("data") or []}
    length = int(told.get(vllm_server.model) or 0)
    only_if(length, "the server does not report its context length")

    assert length >= 32768, f"max_model_len is {length}; agents send prompts of 20,000 tokens and more"


@check(
    "messages.result.told",
    MUST,
    spec="fault:BerriAI/litellm/issues/22841",
    needs=("messages", "tools"),
    exchanges=("messages.result[",),
)
def test_result(vllm_recordings: Recordings) -> None:
    """A tool's result is passed on to the model, as a text and in blocks."""
    short, *longer = (vllm_recordings.get(f"messages.result[{form}]") for form in ("short", "long", "blocks"))
    only_if(short.status != 400, f"this template takes no results: {short.text[:120]}")
    least = tokens(short)
    wrong = [f"{one.key}: {tokens(one)}" for one in longer if one.status != 400 and tokens(one) <= least]

    assert not wrong, f"prompt tokens with the shorter result {least}, {'; '.join(wrong)}"


@check(
    "messages.result.blocks",
    MUST,
    spec="fault:vllm-project/vllm/pull/34053",
    needs=("messages", "tools"),
    exchanges=("messages.result[",),
)
def test_result_blocks(vllm_recordings: Recordings) -> None:
    """A tool's result in a block of text is the prompt that its text is."""
    text, blocks = (vllm_recordings.get(f"messages.result[{form}]") for form in ("long", "blocks"))
    only_if(text.status != 400, f"this template takes no results: {text.text[:120]}")
    only_if(blocks.status != 400, f"this template takes no blocks: {blocks.text[:120]}")
    told = tokens(text), tokens(blocks)

    assert abs(told[1] - told[0]) < MARKS, f"{told[0]} prompt tokens as a text, {told[1]} in a block"


@check("messages.stop.reason", MUST, spec=SPEC, needs=NEEDS, exchanges=("messages.",))
def test_reason(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """Answers stop for `max_tokens` if they used up their tokens, or the context."""
    answers = {
        r.key: (
            r.ok.get("stop_reason"),
            (r.ok.get("usage") or {}).get("output_tokens"),
            r.request.json.get("max_tokens"),
            prompt_tokens(r.ok.get("usage")) or 0,
        )
        for r in wholes(vllm_recordings)
    }
    need(answers, "no request was answered")
    early = [
        f"{key}: {made} of {most} tokens"
        for key, (reason, made, most, read) in answers.items()
        if made and reason == "max_tokens" and made != most
        if not vllm_server.max_model_len or read + made < vllm_server.max_model_len
    ]
    full = [reason for reason, made, most, _ in answers.values() if made == most]

    assert not early, f"stopped for max_tokens after {listed(early)}"
    assert "max_tokens" in full or not full, f"{len(full)} answers used up their tokens: {set(full)}"


@check("messages.stop.sequence", MUST, spec=SPEC, needs=NEEDS)
def test_sequence(
    vllm_server: Server, messages_plain: Recording, messages_again: Recording, messages_stopped: Recording
) -> None:
    """A stop sequence ends the answer, is named, and is left out of the text."""
    names_stops(vllm_server)
    stop = stop_of(messages_again)
    body = messages_stopped.ok
    whole, again = spoken(messages_plain.ok), spoken(messages_again.ok)
    only_if(whole, "the model answers with reasoning alone")
    need(stop in whole and whole == again, "the server does not repeat its own greedy answers")

    told = (body.get("stop_reason"), body.get("stop_sequence"))

    assert told == ("stop_sequence", stop), f"stop_reason and stop_sequence are {told}, not {stop!r}"
    assert stop not in spoken(body), f"{stop!r} is in the text: {spoken(body)!r:.80}"


@check("messages.stop.no-sequence", MUST, spec=SPEC, needs=NEEDS, exchanges=("messages.",))
def test_no_sequence(vllm_recordings: Recordings) -> None:
    """Only an answer that a stop sequence ended names one."""
    answers = wholes(vllm_recordings)
    need(answers, "no request was answered")
    wrong = [
        f"{r.key}: {r.ok.get('stop_reason')!r} with {r.ok['stop_sequence']!r}"
        for r in answers
        if r.ok.get("stop_sequence") is not None and r.ok.get("stop_reason") != "stop_sequence"
    ]

    assert not wrong, listed(wrong)


@check("messages.refused", MUST, spec=ERRORS, needs=NEEDS)
def test_refused(vllm_server: Server, message_refusal: Case, messages_refusal: Recording) -> None:
    """A request that makes no sense is refused as the client's fault."""
    since = message_refusal.get("since", "0")
    only_if(vllm_server.at_least(since), f"it is refused from {since} on")
    messages_refusal.answered()
    status = messages_refusal.status

    assert status in message_refusal["status"], f"answered with {status}: {messages_refusal.text[:120]}"


@check("messages.refused.envelope", MUST, spec=ERRORS, needs=NEEDS)
def test_envelope(message_refusal: Case, messages_refusal: Recording) -> None:
    """A refusal says why in an error object."""
    status = messages_refusal.status or 0
    messages_refusal.answered()
    only_if(400 <= status < 500, f"{message_refusal.id} was answered with {status}, no refusal")
    body = messages_refusal.json
    error = body.get("error") if isinstance(body, dict) else None

    assert isinstance(error, dict), f"the body is {messages_refusal.text[:120]!r}"
    assert error.get("message"), f"the error says nothing: {error}"


@check("messages.refused.shape", SHOULD, spec=ERRORS, needs=NEEDS, exchanges=("messages.refusal",))
def test_shape(vllm_recordings: Recordings) -> None:
    """Refusals are errors as Anthropic's clients read them, of type `error`."""
    found = [r for r in vllm_recordings.of("messages.refusal") if 400 <= (r.status or 0) < 500]
    need(found, "nothing was refused")
    wrong = [f"{r.key}: {r.text[:60]!r}" for r in found if '"type":"error"' not in r.text.replace(" ", "")]

    assert not wrong, listed(wrong, 2)


@check("messages.x-api-key", SHOULD, spec="fault:QuantumNous/new-api/issues/5491", needs=("messages", "auth"))
def test_x_api_key(vllm_server: Server, messages_x_api_key: Recording) -> None:
    """The key is taken where Anthropic's clients put it, in `x-api-key`."""
    only_if(vllm_server.api_key, "the key is not known")
    messages_x_api_key.answered()

    assert messages_x_api_key.status == 200, (
        f"answered with {messages_x_api_key.status}: {messages_x_api_key.text[:80]}"
    )


@check(
    "messages.stop.blocks",
    MUST,
    spec="fault:vllm-project/vllm/issues/42400",
    needs=NEEDS,
    exchanges=("messages.",),
)
def test_tool_blocks(vllm_recordings: Recordings) -> None:
    """An answer stops for `tool_use` just when it holds a call, or its tokens ran out."""
    answers = wholes(vllm_recordings)
    need(answers, "no request was answered")
    wrong = [
        f"{r.key}: {r.ok.get('stop_reason')!r} with {[b.get('type') for b in blocks(r.ok)]}"
        for r in answers
        if (r.ok.get("stop_reason") == "tool_use") != bool(blocks(r.ok, "tool_use"))
        and r.ok.get("stop_reason") != "max_tokens"
    ]

    assert not wrong, listed(wrong)
