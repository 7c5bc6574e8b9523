"""What is right for a small request is right for a large one."""

from __future__ import annotations

from typing import Any

from pytest_vllm import MUST, Case, Recording, check, need, observe, only_if, text_of

from .exchanges import CHOICES

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
    need(answer.failure is None or not answer.failure.slow, f"{answer.key}: {answer.error}")


def used(answer: Recording) -> int:
    """The tokens of the prompt, as the answer counts them."""
    usage = answer.ok.get("usage") or {}
    found = [usage[name] for name in COUNTS if isinstance(usage.get(name), int)]
    need(found, f"{answer.key} counts no tokens of its prompt")
    return sum(found)


def same_count(answer: Recording, counted: Recording) -> None:
    """Fail unless a prompt has as many tokens as `/tokenize` counts."""
    tokens, right = used(answer), counted.ok["count"]

    assert tokens == right, f"{tokens} tokens in the answer's usage, /tokenize counts {right}"


@check("sizes.stream", MUST, spec=f"{CHAT}#stream", needs=("chat", "stream", "logprobs", *COUNTED))
def test_stream(sizes_stream: Recording, completions_forced: Recording) -> None:
    """A stream of two thousand tokens brings each of them."""
    tokens = sizes_stream.request.json["max_tokens"]
    in_time(sizes_stream)
    observe("events", len(sizes_stream.events))
    forced = completions_forced.ok["choices"][0]
    one, six = str(forced["logprobs"]["tokens"][-1]), str(forced["text"])
    need(
        one and six.endswith(one * 5),
        f"six times one token give {six!r:.80}: what they are cannot be foreseen",
    )
    text = _spoken(sizes_stream)
    right = six + one * (tokens - 6)
    usage = [delta["usage"] for delta in sizes_stream.deltas if delta.get("usage")]
    said = usage[-1]["completion_tokens"] if usage else None

    assert text == right, f"{len(text)} characters of {len(right)}, of {tokens} tokens that are {one!r} each"
    assert said == tokens, f"{tokens} tokens were asked for, the usage says {said}"
    assert sizes_stream.events[-1].is_done, "the stream does not end in [DONE]"


@check("sizes.prompt", MUST, spec=f"{CHAT}#messages", needs=COUNTED)
def test_prompt(sizes_prompt: Recording, sizes_prompt_count: Recording) -> None:
    """A prompt near the context's end is read whole."""
    same_count(sizes_prompt, sizes_prompt_count)


@check("sizes.turns", MUST, spec=f"{CHAT}#messages", needs=COUNTED)
def test_turns(talk: Case, sizes_talk: Recording, sizes_talk_count: Recording) -> None:
    """Each turn of a long conversation becomes part of the prompt."""
    del talk
    same_count(sizes_talk, sizes_talk_count)


@check("sizes.agent", MUST, spec=f"{CHAT}#messages", needs=(*COUNTED, "tools"))
def test_agent(sizes_agent: Recording, sizes_agent_count: Recording) -> None:
    """Each of twelve tool results becomes part of a chat prompt."""
    refusable(sizes_agent, sizes_agent_count)
    same_count(sizes_agent, sizes_agent_count)


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
def test_tools(sizes_tools: Recording, sizes_tools_count: Recording) -> None:
    """Each of many tools becomes part of the prompt."""
    observe("tools", len(sizes_tools.request.json["tools"]))
    same_count(sizes_tools, sizes_tools_count)


@check("sizes.tools.last", MUST, spec=f"{CHAT}#tool_choice", needs=("chat", "tools"))
def test_tools_last(sizes_tools_last: Recording) -> None:
    """The last of many tools can be called."""
    last = sizes_tools_last.request.json["tool_choice"]["function"]["name"]

    assert sizes_tools_last.status == 200, f"{last}: {sizes_tools_last.status} {sizes_tools_last.text[:160]}"
    choice = sizes_tools_last.ok["choices"][0]
    need(choice["finish_reason"] != "length", "thinking took all tokens")
    names = [call["function"]["name"] for call in choice["message"].get("tool_calls") or ()]

    assert names == [last], f"{last} was forced, called were {names}"


@check("sizes.choices", MUST, spec=f"{CHAT}#n", needs=["chat"])
def test_choices(sizes_choices: Recording) -> None:
    """Sixteen choices come back, numbered, counted, and not copies of each other."""
    answer = sizes_choices.ok
    _sixteen({choice["index"]: text_of(choice) for choice in answer["choices"]}, answer["usage"])


@check("sizes.choices.stream", MUST, spec=f"{CHAT}#n", needs=["chat", "stream"])
def test_choices_stream(sizes_choices_stream: Recording) -> None:
    """Sixteen choices are streamed, numbered, counted, and not copies of each other."""
    in_time(sizes_choices_stream)
    texts: dict[int, str] = {}
    for delta in sizes_choices_stream.deltas:
        for choice in delta.get("choices") or ():
            texts[choice["index"]] = texts.get(choice["index"], "") + _piece(choice.get("delta") or {})
    usage = [delta["usage"] for delta in sizes_choices_stream.deltas if delta.get("usage")]
    _sixteen(texts, usage[-1] if usage else {})


@check("sizes.script", MUST, spec=VLLM, needs=["completions", "structured-output"])
def test_script(script: Case, sizes_script: Recording) -> None:
    """An answer in any script has each of its letters."""
    text = sizes_script.ok["choices"][0]["text"]

    assert text.strip() == script["text"], f"{text!r}, only {script['text']!r} was possible"


@check("sizes.script.stream", MUST, spec=VLLM, needs=["completions", "structured-output", "stream"])
def test_script_stream(script: Case, sizes_script_stream: Recording) -> None:
    """A streamed answer in any script has each of its letters."""
    pieces = [choice.get("text") or "" for delta in sizes_script_stream.deltas for choice in delta["choices"]]
    text = "".join(pieces)

    assert text.strip() == script["text"], f"{text!r}, only {script['text']!r} was possible"


@check("sizes.script.prompt", MUST, spec=f"{CHAT}#messages", needs=COUNTED)
def test_script_prompt(script: Case, sizes_script_chat: Recording, sizes_script_count: Recording) -> None:
    """A question in any script is read whole."""
    del script
    same_count(sizes_script_chat, sizes_script_count)


@check("sizes.headers", MUST, spec=VLLM, needs=["chat"])
def test_headers(client_headers: Case, sizes_headers: Recording) -> None:
    """A request with the headers of common clients and proxies is answered."""
    sizes_headers.answered()
    status, names = sizes_headers.status, sorted(client_headers["headers"])

    assert status == 200, f"with {names}: {status} {sizes_headers.text[:160]}"


def _spoken(stream: Recording) -> str:
    """All text of the first choice, thinking included."""
    choices = [choice for delta in stream.deltas for choice in delta.get("choices") or ()]
    return "".join(_piece(choice.get("delta") or {}) for choice in choices)


def _piece(delta: dict[str, Any]) -> str:
    thought = delta.get("reasoning") or delta.get("reasoning_content") or ""
    return f"{thought}{delta.get('content') or ''}"


def _sixteen(texts: dict[int, str], usage: dict[str, Any]) -> None:
    """Fail unless there are sixteen choices; at this temperature a fourth of them may be alike by chance."""
    different = len(set(texts.values()))

    assert sorted(texts) == list(range(CHOICES)), f"indices {sorted(texts)} for n={CHOICES}"
    assert usage.get("completion_tokens") == 6 * CHOICES, f"{CHOICES} times 6 tokens, the usage says {usage}"
    assert different > CHOICES * 3 // 4, f"{different} of {CHOICES} texts differ"
