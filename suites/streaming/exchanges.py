"""Requests of the streaming suite.

Most of them ignore the end-of-sequence token, so that even a model with random weights answers in the
length that was asked for. Pairs of a streamed and a whole answer run alone: a greedy text may change with
the batch it is computed in. For the same reason the whole answer is asked for twice, which tells whether
this server repeats itself at all, and prompts stay shorter than a cache block.
"""

from typing import Any

from pytest_vllm import Case, Recording, Request, Server, cases, exchange, only_if

QUESTION = "Count from one to ten."
PROMPT = "One, two, three,"
TOKENS = 12
FEW = 6
USAGE = {"include_usage": True}

#: Characters of two, three and four bytes, most of which no vocabulary holds as one token.
LETTERS = "naïve żółć 東京 😀 नम end"

#: A text whose last letter few vocabularies hold as one token.
TORN = "Seven herons stand in shallow water \U000132f5"

NONCES = (
    "kestrel-4417",
    "walrus-9053",
    "gopher-2286",
    "ibex-7741",
    "marten-3608",
    "osprey-5192",
    "tapir-8830",
)
#: A tool that a model may call, or not.
OFFERED: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "tell_number",
        "description": "Tells the user a number.",
        "parameters": {
            "type": "object",
            "properties": {"number": {"type": "integer"}},
            "required": ["number"],
        },
    },
}
#: So many that a fault of one stream in six shows with a probability of 67 %: 1 - (5 / 6) ** 6.
drawn = cases("drawn", [{"id": str(seed), "seed": seed} for seed in range(1, 7)])
flowing = cases(
    "flowing",
    [
        {"id": f"{'chat' if chat else 'completion'}-{number}", "chat": chat, "text": text}
        for chat, text in ((True, QUESTION), (False, PROMPT))
        for number in (1, 2)
    ],
)
seeded = cases(
    "seeded",
    [
        {"id": f"{route}-{name}", "chat": route == "chat", "stream": name == "stream"}
        for route in ("chat", "completion")
        for name in ("whole", "again", "stream")
    ],
)
nonce = cases("nonce", [{"id": name, "text": name} for name in NONCES])

#: Token ids that any vocabulary of 1,200 entries has and that are neither bytes nor special tokens.
only_token = cases("only_token", [{"id": str(number), "token": number} for number in range(1100, 1156, 8)])


@exchange("streaming.chat-whole", alone=True)
def streaming_chat_whole(server: Server) -> Request:
    """A greedy chat answer, not streamed."""
    return server.chat(QUESTION, max_tokens=TOKENS)


@exchange("streaming.chat-again", alone=True)
def streaming_chat_again(server: Server, streaming_chat_whole: Recording) -> Request:
    """The same once more."""
    del streaming_chat_whole
    return server.chat(QUESTION, max_tokens=TOKENS)


@exchange("streaming.chat", alone=True)
def streaming_chat(server: Server, streaming_chat_again: Recording) -> Request:
    """The same, streamed."""
    del streaming_chat_again
    return server.chat(QUESTION, max_tokens=TOKENS, stream=True, stream_options=USAGE)


@exchange("streaming.completion-whole", alone=True)
def streaming_completion_whole(server: Server) -> Request:
    """A greedy completion, not streamed."""
    return server.completion(PROMPT, max_tokens=TOKENS, ignore_eos=True)


@exchange("streaming.completion-again", alone=True)
def streaming_completion_again(server: Server, streaming_completion_whole: Recording) -> Request:
    """The same once more."""
    del streaming_completion_whole
    return server.completion(PROMPT, max_tokens=TOKENS, ignore_eos=True)


@exchange("streaming.completion", alone=True)
def streaming_completion(server: Server, streaming_completion_again: Recording) -> Request:
    """The same, streamed."""
    del streaming_completion_again
    return server.completion(PROMPT, max_tokens=TOKENS, ignore_eos=True, stream=True, stream_options=USAGE)


@exchange("streaming.stop", alone=True)
def streaming_stop(server: Server, streaming_completion_again: Recording) -> Request:
    """The same, streamed, stopped by a piece of its own text that spans tokens."""
    return server.completion(
        PROMPT,
        max_tokens=TOKENS,
        ignore_eos=True,
        stream=True,
        stop=[stop_of(streaming_completion_again)],
    )


@exchange("streaming.stop-unmatched", alone=True)
def streaming_stop_unmatched(server: Server, streaming_completion_again: Recording) -> Request:
    """The same, streamed, with a stop string that never comes and is longer than the answer."""
    del streaming_completion_again
    return server.completion(PROMPT, max_tokens=TOKENS, ignore_eos=True, stream=True, stop=["never " * 12])


def stop_of(whole: Recording) -> str:
    """The middle five characters of a completion's text."""
    text = str(whole.ok["choices"][0]["text"])
    middle = max(len(text) // 2 - 2, 0)
    return text[middle : middle + 5] or " "


@exchange("streaming.chat-bare")
def streaming_chat_bare(server: Server) -> Request:
    """A chat stream that asks for no usage."""
    return server.chat(QUESTION, max_tokens=FEW, ignore_eos=True, stream=True)


@exchange("streaming.completion-bare")
def streaming_completion_bare(server: Server) -> Request:
    """A completion stream that says that it wants no usage."""
    off = {"include_usage": False}
    return server.completion(PROMPT, max_tokens=FEW, ignore_eos=True, stream=True, stream_options=off)


@exchange("streaming.options-empty")
def streaming_options_empty(server: Server) -> Request:
    """A completion stream with empty stream options."""
    return server.completion(PROMPT, max_tokens=2, ignore_eos=True, stream=True, stream_options={})


@exchange("streaming.options-without-stream")
def streaming_options_without_stream(server: Server) -> Request:
    """Stream options on a request that does not stream."""
    return server.chat("Hi", max_tokens=1, stream_options=USAGE, expect=None)


@exchange("streaming.continuous")
def streaming_continuous(server: Server) -> Request:
    """A completion stream with usage in every chunk."""
    every = {"include_usage": True, "continuous_usage_stats": True}
    return server.completion(PROMPT, max_tokens=FEW, ignore_eos=True, stream=True, stream_options=every)


@exchange("streaming.one-token")
def streaming_one_token(server: Server) -> Request:
    """A chat stream of a single token."""
    return server.chat(QUESTION, max_tokens=1, ignore_eos=True, stream=True, stream_options=USAGE)


@exchange("streaming.two")
def streaming_two(server: Server) -> Request:
    """A chat stream of two sampled choices."""
    sampled = {"n": 2, "temperature": 1, "seed": 7}
    return server.chat(
        QUESTION, max_tokens=FEW, ignore_eos=True, stream=True, stream_options=USAGE, **sampled
    )


@exchange("streaming.batch")
def streaming_batch(server: Server) -> Request:
    """A completion stream of two prompts."""
    prompts = [PROMPT, "Red, green,"]
    return server.completion(prompts, max_tokens=FEW, ignore_eos=True, stream=True, stream_options=USAGE)


@exchange("streaming.long-prompt")
def streaming_long_prompt(server: Server) -> Request:
    """A stream after a prompt of more than 512 tokens, as far as the context holds them."""
    words = min(600, (server.max_model_len or 4096) // 5)  # four characters each, a token each at most
    return server.completion(
        " ".join(str(number) for number in range(words)), max_tokens=FEW, ignore_eos=True, stream=True
    )


@exchange("streaming.logprobs")
def streaming_logprobs(server: Server) -> Request:
    """A completion stream with log probabilities."""
    return server.completion(
        PROMPT, max_tokens=FEW, ignore_eos=True, logprobs=2, stream=True, stream_options=USAGE
    )


@exchange("streaming.chat-logprobs")
def streaming_chat_logprobs(server: Server) -> Request:
    """A chat stream with log probabilities."""
    return server.chat(QUESTION, max_tokens=FEW, ignore_eos=True, logprobs=True, top_logprobs=5, stream=True)


@exchange("streaming.drawn")
def streaming_drawn(server: Server, drawn: Case, tools_thinking_off: Recording) -> Request:
    """A stream that offers a tool and is drawn: what the model writes differs from one to the next."""
    only_if(server.can("tools"), "the server has no tools")
    asked = "Count to three, then tell the number seven with tell_number."
    given: dict[str, Any] = {"temperature": 1.0, "seed": drawn["seed"], "max_tokens": 96, "stream": True}
    if server.can("reasoning") and tools_thinking_off.status == 200:
        given["chat_template_kwargs"] = tools_thinking_off.request.json["chat_template_kwargs"]
    return server.chat(asked, tools=[OFFERED], **given)


@exchange("streaming.letters-whole")
def streaming_letters_whole(server: Server) -> Request:
    """A text of multi-byte characters that a constraint makes the model write, not streamed."""
    return letters(server)


@exchange("streaming.letters")
def streaming_letters(server: Server) -> Request:
    """The same, streamed."""
    return letters(server, stream=True)


def letters(server: Server, **params: Any) -> Request:
    """A completion that can only be LETTERS; the tag ends the thinking of servers that constrain after it."""
    constraint: dict[str, Any] = {"structured_outputs": {"choice": [LETTERS]}}
    if not server.at_least("0.11.0"):
        constraint = {"guided_choice": [LETTERS]}
    return server.completion("<think>\n</think>\nWrite:", max_tokens=64, **constraint, **params)


@exchange("streaming.nonce")
def streaming_nonce(server: Server, nonce: Case) -> Request:
    """A stream that begins with its own prompt, a word that no other request has."""
    prompt = f"The word is {nonce['text']}."
    return server.completion(prompt, max_tokens=2, ignore_eos=True, echo=True, stream=True)


@exchange("streaming.only-token")
def streaming_only_token(server: Server, only_token: Case) -> Request:
    """A stream that may use a single token of the vocabulary, and names it by its id."""
    return server.completion(
        PROMPT,
        max_tokens=FEW,
        ignore_eos=True,
        allowed_token_ids=[only_token["token"]],
        logprobs=1,
        return_tokens_as_token_ids=True,
        stream=True,
    )


@exchange("streaming.torn-ids")
def streaming_torn_ids(server: Server) -> Request:
    """The tokens of a text whose last letter few vocabularies hold as one token."""
    return server.post("/tokenize", {"prompt": TORN, "add_special_tokens": False})


@exchange("streaming.torn-text")
def streaming_torn_text(server: Server, streaming_torn_ids: Recording) -> Request:
    """The text of these tokens without the last one."""
    return server.post("/detokenize", {"tokens": streaming_torn_ids.ok["tokens"][:-1]})


@exchange("streaming.torn")
def streaming_torn(server: Server, streaming_torn_ids: Recording) -> Request:
    """A stream that goes on from the middle of a letter."""
    given = streaming_torn_ids.ok["tokens"][:-1]
    return server.completion(given, max_tokens=6, ignore_eos=True, stream=True)


@exchange("streaming.flow", alone=True)
def streaming_flow(server: Server, flowing: Case) -> Request:
    """A longer stream that nothing runs beside."""
    ask = server.chat if flowing["chat"] else server.completion
    return ask(flowing["text"], max_tokens=2 * TOKENS, ignore_eos=True, stream=True)


@exchange("streaming.seeded", alone=True)
def streaming_seeded(server: Server, seeded: Case) -> Request:
    """A text that a seed draws, whole twice and streamed."""
    ask, said = (server.chat, QUESTION) if seeded["chat"] else (server.completion, PROMPT)
    streams = {"stream": True} if seeded["stream"] else {}
    drawn: dict[str, Any] = {"temperature": 1.2, "top_p": 1.0, "seed": 4711, "ignore_eos": True}
    return ask(said, max_tokens=FEW, **drawn, **streams)
