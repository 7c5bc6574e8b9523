"""What is right for a small request is right for a large one."""

from __future__ import annotations

from typing import Any

from pytest_vllm import (
    CAPABILITY,
    MUST,
    SHOULD,
    Case,
    Recording,
    Recordings,
    check,
    need,
    observe,
    only_if,
    server_errors,
    text_of,
)

from .exchanges import CHOICES, CODE, PLAIN

CHAT = "openai:chat/create"
VLLM = "vllm:serving/openai_compatible_server/"
COUNTED = ("chat", "tokenize")
#: What makes up the count of a prompt: Messages counts what a cache took part in apart from the rest.
COUNTS = ("prompt_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def refusable(*answers: Recording) -> None:
    """Raise NotRun where a server may refuse, and did."""
    for answer in answers:
        only_if(answer.status not in (400, 404, 422, 501), f"refused: {answer.text[:120]}")


def in_time(answer: Recording) -> None:
    """Raise Undecided where our patience ended, and not the stream."""
    need(not answer.late, f"{answer.key}: {answer.error}")


def only_thought(choice: dict[str, Any]) -> bool:
    """Whether a choice holds reasoning and nothing that follows it."""
    message = choice["message"]
    return bool(text_of(choice)) and not message.get("content") and not message.get("tool_calls")


def used(answer: Recording) -> int:
    """The tokens of the prompt, as the answer counts them."""
    usage = answer.ok.get("usage") or {}
    found = [usage[name] for name in COUNTS if isinstance(usage.get(name), int)]
    need(found, f"{answer.key} counts no tokens of its prompt")
    return sum(found)


def same_count(answer: Recording, counted: Recording, plain: Recording, plain_count: Recording) -> None:
    """Fail unless a prompt has as many tokens as `/tokenize` counts, where a plain question has."""
    small, few = used(plain), plain_count.ok["count"]
    need(small == few, f"a plain question has {small} tokens in the usage, /tokenize counts {few}")
    tokens, right = used(answer), counted.ok["count"]

    assert tokens == right, f"{tokens} tokens in the answer's usage, /tokenize counts {right}"


def stream_fault(stream: Recording, three: str, one: str) -> str:
    """What is wrong with a stream of the only token that is allowed; empty when nothing is.

    Args:
        stream: the stream.
        three: the text of three such tokens in a whole answer.
        one: the text of one more.
    """
    tokens = stream.request.json["max_tokens"]
    text, right = _spoken(stream), three + one * (tokens - 3)
    usage = [delta["usage"] for delta in stream.deltas if delta.get("usage")]
    said = usage[-1]["completion_tokens"] if usage else None
    if text != right:
        return f"{len(text)} characters of {len(right)}, of {tokens} tokens that are {one!r} each"
    if said != tokens:
        return f"{tokens} tokens were asked for, the usage says {said}"
    return "" if stream.events[-1].is_done else "the stream does not end in [DONE]"


@check("sizes.stream", MUST, spec=f"{CHAT}#stream", needs=("stream", *COUNTED))
def test_stream(sizes_stream: Recording, sizes_stream_short: Recording, fields_ids: Recording) -> None:
    """A stream of two thousand tokens brings each of them."""
    in_time(sizes_stream)
    three, eight = text_of(fields_ids.ok["choices"][0]), _spoken(sizes_stream_short)
    one = eight[len(three) : len(three) + (len(eight) - len(three)) // 5]
    short = stream_fault(sizes_stream_short, three, one)
    need(one and not short, f"a stream of eight tokens fails too: {short or eight!r}")
    observe("events", len(sizes_stream.events))
    fault = stream_fault(sizes_stream, three, one)

    assert not fault, fault


@check("sizes.prompt", MUST, spec=f"{CHAT}#messages", needs=COUNTED)
def test_prompt(
    sizes_prompt: Recording, sizes_prompt_count: Recording, chat_plain: Recording, tokenize_chat: Recording
) -> None:
    """A prompt near the context's end is read whole."""
    same_count(sizes_prompt, sizes_prompt_count, chat_plain, tokenize_chat)


@check("sizes.prompt.words", MUST, spec="fault:vllm-project/vllm/issues/2064", needs=["chat"])
def test_prompt_words(sizes_prompt: Recording, sizes_prompt_short: Recording) -> None:
    """Behind a text that fills the context an answer is neither empty nor one word."""
    short, said = (text_of(one.ok["choices"][0]) for one in (sizes_prompt_short, sizes_prompt))
    only_if(CODE in short, f"behind a short text the code is not repeated either: {short!r}")
    observe("the code is repeated behind a long text", CODE in said)
    lost = not said.strip() and sizes_prompt.ok["usage"]["completion_tokens"] > 1

    assert not lost, f"nothing, for {sizes_prompt.ok['usage']}; behind a short text {short!r}"
    assert not _stuck(said), f"{said!r}, behind a short text {short!r}"


@check("sizes.prompt.code", SHOULD, spec=f"{CHAT}#messages", family=CAPABILITY, needs=["chat"])
def test_prompt_code(sizes_prompt: Recording, sizes_prompt_short: Recording) -> None:
    """A code is repeated behind a text that fills the context as behind a short one."""
    short, said = (text_of(one.ok["choices"][0]) for one in (sizes_prompt_short, sizes_prompt))
    only_if(CODE in short, f"behind a short text the code is not repeated either: {short!r}")

    assert CODE in said, f"{said!r}, behind a short text {short!r}"


@check("sizes.prompt.written", MUST, spec=VLLM, needs=["completions", "structured-output", "logprobs"])
def test_prompt_written(sizes_prompt_written: Recording, sizes_plain: Recording) -> None:
    """A constraint is kept behind a text that is read in several steps."""
    plain, text = (one.ok["choices"][0]["text"] for one in (sizes_plain, sizes_prompt_written))
    need(plain.strip() == PLAIN, f"behind a short text too: {plain!r}")

    assert text.strip() == PLAIN, f"{text!r}, only {PLAIN!r} was possible"


@check("sizes.turns", MUST, spec=f"{CHAT}#messages", needs=COUNTED)
def test_turns(
    talk: Case,
    sizes_talk: Recording,
    sizes_talk_count: Recording,
    chat_plain: Recording,
    tokenize_chat: Recording,
) -> None:
    """Each turn of a long conversation becomes part of the prompt."""
    del talk
    same_count(sizes_talk, sizes_talk_count, chat_plain, tokenize_chat)


@check("sizes.agent", MUST, spec=f"{CHAT}#messages", needs=(*COUNTED, "tools"))
def test_agent(
    sizes_agent: Recording, sizes_agent_count: Recording, chat_plain: Recording, tokenize_chat: Recording
) -> None:
    """Each of twelve tool results becomes part of a chat prompt."""
    refusable(sizes_agent, sizes_agent_count)
    same_count(sizes_agent, sizes_agent_count, chat_plain, tokenize_chat)


@check("sizes.agent.messages", MUST, spec="anthropic:messages", needs=("messages", "tools"))
def test_agent_messages(sizes_agent_messages: Recording, sizes_agent_messages_count: Recording) -> None:
    """Each of twelve tool results becomes part of a Messages prompt."""
    refusable(sizes_agent_messages, sizes_agent_messages_count)
    tokens, right = used(sizes_agent_messages), sizes_agent_messages_count.ok["input_tokens"]

    assert tokens == right, f"{tokens} tokens in the answer's usage, count_tokens counts {right}"


@check("sizes.agent.responses", MUST, spec="openai:responses/create", needs=("responses", "tools"))
def test_agent_responses(sizes_agent_response: Recording, sizes_agent_response_less: Recording) -> None:
    """The last of twelve tool results becomes part of a Responses prompt."""
    refusable(sizes_agent_response, sizes_agent_response_less)
    more, less = used(sizes_agent_response), used(sizes_agent_response_less)

    assert more > less, f"{more} tokens with the last call and its result, {less} without"


@check("sizes.tools", MUST, spec=f"{CHAT}#tools", needs=(*COUNTED, "tools"))
def test_tools(
    sizes_tools: Recording, sizes_tools_count: Recording, chat_plain: Recording, tokenize_chat: Recording
) -> None:
    """Each of many tools becomes part of the prompt."""
    observe("tools", len(sizes_tools.request.json["tools"]))
    same_count(sizes_tools, sizes_tools_count, chat_plain, tokenize_chat)


@check("sizes.tools.last", MUST, spec=f"{CHAT}#tool_choice", needs=("chat", "tools"))
def test_tools_last(sizes_tools_last: Recording) -> None:
    """The last of many tools can be called."""
    last = sizes_tools_last.request.json["tool_choice"]["function"]["name"]

    assert sizes_tools_last.status == 200, f"{last}: {sizes_tools_last.status} {sizes_tools_last.text[:160]}"
    choice = sizes_tools_last.ok["choices"][0]
    need(choice["finish_reason"] != "length", "thinking took all tokens")
    need(not only_thought(choice), "the model ended within its reasoning")
    names = [call["function"]["name"] for call in choice["message"].get("tool_calls") or ()]

    assert names == [last], f"{last} was forced, called were {names}"


@check("sizes.choices", MUST, spec=f"{CHAT}#n", needs=["chat"])
def test_choices(sizes_choices: Recording, chat_n: Recording) -> None:
    """Sixteen choices come back, numbered, counted, and not copies of each other."""
    few = [text_of(choice) for choice in chat_n.ok["choices"]]
    need(len(few) == 3 and len(set(few)) > 1, f"three choices fail too: {few}")
    answer = sizes_choices.ok
    _sixteen({choice["index"]: text_of(choice) for choice in answer["choices"]}, answer["usage"])


@check("sizes.choices.stream", MUST, spec=f"{CHAT}#n", needs=["chat", "stream"])
def test_choices_stream(sizes_choices_stream: Recording, streaming_two: Recording) -> None:
    """Sixteen choices are streamed, numbered, counted, and not copies of each other."""
    in_time(sizes_choices_stream)
    few, few_usage = _streamed(streaming_two)
    need(sorted(few) == [0, 1] and all(few.values()), f"two choices fail too: {few}")
    need(few_usage.get("completion_tokens") == 2 * 6, f"the usage of two choices is wrong too: {few_usage}")
    _sixteen(*_streamed(sizes_choices_stream))


@check("sizes.script", MUST, spec=VLLM, needs=["completions", "structured-output"])
def test_script(script: Case, sizes_script: Recording, sizes_plain: Recording) -> None:
    """An answer in any script has each of its letters."""
    plain = sizes_plain.ok["choices"][0]["text"]
    need(plain.strip() == PLAIN, f"a plain word fails too: {plain!r}")
    text = sizes_script.ok["choices"][0]["text"]

    assert text.strip() == script["text"], f"{text!r}, only {script['text']!r} was possible"


@check("sizes.script.stream", MUST, spec=VLLM, needs=["completions", "structured-output", "stream"])
def test_script_stream(
    script: Case,
    sizes_script_stream: Recording,
    sizes_plain_stream: Recording,
    streaming_letters: Recording,
    streaming_letters_whole: Recording,
) -> None:
    """A streamed answer in any script has each of its letters."""
    letters, right = _joined(streaming_letters), streaming_letters_whole.ok["choices"][0]["text"]
    need(letters == right, f"letters of two bytes fail too: {letters!r}, whole {right!r}")
    plain, text = _joined(sizes_plain_stream), _joined(sizes_script_stream)
    need(plain.strip() == PLAIN, f"a plain word fails too: {plain!r}")

    assert text.strip() == script["text"], f"{text!r}, only {script['text']!r} was possible"


@check("sizes.script.prompt", MUST, spec=f"{CHAT}#messages", needs=COUNTED)
def test_script_prompt(
    script: Case,
    sizes_script_chat: Recording,
    sizes_script_count: Recording,
    chat_plain: Recording,
    tokenize_chat: Recording,
) -> None:
    """A question in any script is read whole."""
    del script
    same_count(sizes_script_chat, sizes_script_count, chat_plain, tokenize_chat)


@check("sizes.headers", MUST, spec=VLLM, needs=["chat"])
def test_headers(client_headers: Case, sizes_headers: Recording, chat_plain: Recording) -> None:
    """A request with the headers of common clients and proxies is answered."""
    sizes_headers.answered()
    need(chat_plain.status == 200, f"one without such headers is answered with {chat_plain.status}")
    status, names = sizes_headers.status, sorted(client_headers["headers"])

    assert status == 200, f"with {names}: {status} {sizes_headers.text[:160]}"


@check("sizes.served", MUST, spec="openai:chat/object", needs=["chat"], exchanges=["sizes."])
def test_served(vllm_recordings: Recordings) -> None:
    """No request is so large or rare that it ends in a server error."""
    wrong = server_errors(vllm_recordings.of("sizes."))

    assert not wrong, f"{len(wrong)} requests: {'; '.join(wrong[:3])}"


def _spoken(stream: Recording) -> str:
    """All text of the first choice, thinking included."""
    choices = [choice for delta in stream.deltas for choice in delta.get("choices") or ()]
    return "".join(_piece(choice.get("delta") or {}) for choice in choices)


def _joined(stream: Recording) -> str:
    """The text of a streamed completion."""
    return "".join(
        choice.get("text") or "" for delta in stream.deltas for choice in delta.get("choices") or ()
    )


def _streamed(stream: Recording) -> tuple[dict[int, str], dict[str, Any]]:
    """The text of each streamed choice, and the usage."""
    texts: dict[int, str] = {}
    for delta in stream.deltas:
        for choice in delta.get("choices") or ():
            texts[choice["index"]] = texts.get(choice["index"], "") + _piece(choice.get("delta") or {})
    usage = [delta["usage"] for delta in stream.deltas if delta.get("usage")]
    return texts, usage[-1] if usage else {}


def _piece(delta: dict[str, Any]) -> str:
    thought = delta.get("reasoning") or delta.get("reasoning_content") or ""
    return f"{thought}{delta.get('content') or ''}"


def _sixteen(texts: dict[int, str], usage: dict[str, Any]) -> None:
    """Fail unless there are sixteen choices; at this temperature a fourth of them may be alike by chance."""
    different = len(set(texts.values()))

    assert sorted(texts) == list(range(CHOICES)), f"indices {sorted(texts)} for n={CHOICES}"
    assert usage.get("completion_tokens") == 6 * CHOICES, f"{CHOICES} times 6 tokens, the usage says {usage}"
    assert different > CHOICES * 3 // 4, f"{different} of {CHOICES} texts differ"


def _stuck(text: str) -> bool:
    """Whether a text says one word or a few characters over and over, none of the prompt's numbers."""
    words, visible = text.split(), "".join(text.split())
    few = (len(words) >= 8 and len(set(words)) <= 2) or (len(visible) >= 12 and len(set(visible)) <= 3)
    return few and not any(character.isdigit() for character in visible)
