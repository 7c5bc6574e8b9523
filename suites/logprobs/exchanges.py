"""Requests of the logprobs suite."""

from __future__ import annotations

from typing import Any

from pytest_vllm import Recording, Request, Server, exchange, only_if

from ..oracle.neutral import UNPENALISED  # noqa: TID252 - suites lie together

QUESTION = "What is the capital of France?"
OPENING = "The quick brown fox jumps over"
LINES = "The quick\nbrown fox\n\njumps over"
#: Candidates at most, in OpenAI's interface.
MOST = 20
#: Letters of two, three and four bytes, most of which no vocabulary holds as one token.
LETTERS = "naïve żółć 東京 😀 नम"
#: Tokens of a long prompt at most, and those beyond the step that it begins in.
DEEP, PAST = 2200, 80
#: More than a block of the cache, for any tokenizer.
LONGER = " ".join(f"Chapter {number}: the river rose again in spring." for number in range(1, 9))


#: Alone: in another batch a real server rounds otherwise, by tenths of a nat, and these two are compared.
@exchange("logprobs.chat", alone=True)
def logprobs_chat(server: Server) -> Request:
    """The plain question of the chat suite with three candidates for each token."""
    return server.chat(QUESTION, max_tokens=12, logprobs=True, top_logprobs=3, **UNPENALISED)


@exchange("logprobs.chat-stream", alone=True)
def logprobs_chat_stream(server: Server) -> Request:
    """The same, streamed."""
    return server.chat(QUESTION, max_tokens=12, logprobs=True, top_logprobs=3, stream=True, **UNPENALISED)


@exchange("logprobs.chat-no-top")
def logprobs_chat_no_top(server: Server) -> Request:
    """Log probabilities without candidates."""
    return server.chat("Hi", max_tokens=2, logprobs=True, top_logprobs=0)


@exchange("logprobs.completion")
def logprobs_completion(server: Server) -> Request:
    """A continuation with three candidates for each token."""
    return server.completion(OPENING, max_tokens=8, logprobs=3, return_token_ids=True, **UNPENALISED)


@exchange("logprobs.tokenized")
def logprobs_tokenized(server: Server) -> Request:
    """The tokens of the continuation's prompt."""
    return server.post("/tokenize", {"prompt": OPENING}, expect=200 if server.can("tokenize") else None)


@exchange("logprobs.detokenized")
def logprobs_detokenized(server: Server, logprobs_completion: Recording) -> Request:
    """The text of prompt and continuation, read back from their token ids."""
    choice = logprobs_completion.ok["choices"][0]
    ids = (choice.get("prompt_token_ids") or []) + (choice.get("token_ids") or [])
    return server.post("/detokenize", {"tokens": ids}, expect=200 if server.can("tokenize") else None)


@exchange("logprobs.echo")
def logprobs_echo(server: Server) -> Request:
    """The log probabilities of a prompt with line ends."""
    return server.completion(LINES, max_tokens=1, logprobs=1, echo=True)


@exchange("logprobs.sampled")
def logprobs_sampled(server: Server) -> Request:
    """Echo, log probabilities and narrow sampling together."""
    narrow: dict[str, Any] = {"temperature": 1.0, "top_k": 1, "top_p": 0.1}
    return server.completion(OPENING, max_tokens=2, logprobs=1, echo=True, **narrow)


@exchange("logprobs.prompt")
def logprobs_prompt(server: Server) -> Request:
    """The same, asked for in vLLM's own way."""
    return server.completion(LINES, max_tokens=1, prompt_logprobs=1)


@exchange("logprobs.rescored")
def logprobs_rescored(server: Server, logprobs_completion: Recording) -> Request:
    """The prompt and its continuation, read again as one prompt."""
    choice = logprobs_completion.ok["choices"][0]
    ids = (choice.get("prompt_token_ids") or []) + (choice.get("token_ids") or [])
    return server.completion(ids or OPENING, max_tokens=1, logprobs=1, echo=True)


def _letters(server: Server, **more: Any) -> Request:
    """A chat answer in letters of several scripts, which a constraint makes the model write."""
    only_if(server.at_least("0.11.0"), "this version names its constraints otherwise")
    calm = {"chat_template_kwargs": {"enable_thinking": False}} if server.can("reasoning") else {}
    given: dict[str, Any] = {"structured_outputs": {"choice": [LETTERS]}, "max_tokens": 64, **calm}
    return server.chat("Write it.", logprobs=True, top_logprobs=2, **given, **more)


@exchange("logprobs.letters")
def logprobs_letters(server: Server) -> Request:
    """Letters of several bytes, with log probabilities."""
    return _letters(server)


@exchange("logprobs.letters-stream")
def logprobs_letters_stream(server: Server) -> Request:
    """The same, streamed."""
    return _letters(server, stream=True)


@exchange("logprobs.most-chat")
def logprobs_most_chat(server: Server) -> Request:
    """As many candidates as OpenAI's interface allows; servers may allow fewer."""
    return server.chat(QUESTION, max_tokens=2, logprobs=True, top_logprobs=MOST, expect=None)


@exchange("logprobs.most-completion")
def logprobs_most_completion(server: Server) -> Request:
    """The same of a completion."""
    return server.completion(OPENING, max_tokens=2, logprobs=MOST, expect=None)


@exchange("logprobs.echo-ids")
def logprobs_echo_ids(server: Server) -> Request:
    """An echoed prompt with log probabilities, and with the ids of all tokens."""
    only_if(server.takes("/v1/completions", "return_token_ids"), "this version returns no token ids")
    return server.completion(OPENING, max_tokens=1, logprobs=1, echo=True, return_token_ids=True)


@exchange("logprobs.echo-stream")
def logprobs_echo_stream(server: Server) -> Request:
    """The prompt's own log probabilities, streamed, and those of an answer of several tokens."""
    return server.completion(OPENING, max_tokens=4, ignore_eos=True, logprobs=1, echo=True, stream=True)


@exchange("logprobs.read")
def logprobs_read(server: Server) -> Request:
    """The log probabilities of a prompt that is longer than a block of the cache."""
    return server.completion(LONGER, max_tokens=1, prompt_logprobs=0)


@exchange("logprobs.read-again")
def logprobs_read_again(server: Server, logprobs_read: Recording) -> Request:
    """The same once more, with another end."""
    del logprobs_read
    return server.completion(f"{LONGER} A heron waits.", max_tokens=1, prompt_logprobs=0)


@exchange("logprobs.rendered", alone=True)
def logprobs_rendered(server: Server, tokenize_chat: Recording) -> Request:
    """The question as the chat template renders it, gone on with over completions."""
    ids = tokenize_chat.ok["tokens"]
    return server.completion(ids, max_tokens=12, logprobs=3, return_token_ids=True, **UNPENALISED)


@exchange("logprobs.deep", alone=True)
def logprobs_deep(server: Server, tokenize_opening_bare: Recording) -> Request:
    """A text drawn behind a prompt that is read in more than one step, as far as that is affordable."""
    step, room = str(server.args.get("max-num-batched-tokens")), server.max_model_len or DEEP
    length = min(int(step) + PAST if step.isdigit() else DEEP, DEEP, room // 2)
    opening = tokenize_opening_bare.ok["tokens"]
    ids = [*(opening * length)[:length], *opening]
    drawn: dict[str, Any] = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, **UNPENALISED}
    return server.completion(ids, max_tokens=24, logprobs=1, ignore_eos=True, return_token_ids=True, **drawn)


@exchange("logprobs.deep-read", alone=True)
def logprobs_deep_read(server: Server, logprobs_deep: Recording) -> Request:
    """The same text with that prompt, read as a prompt."""
    said = logprobs_deep.ok["choices"][0].get("token_ids") or []
    only_if(said, "the server gives no token ids to read again")
    ids = [*logprobs_deep.request.json["prompt"], *said]
    return server.completion(ids, max_tokens=1, logprobs=1, echo=True, prompt_logprobs=1)


@exchange("logprobs.scripts")
def logprobs_scripts(server: Server) -> Request:
    """A prompt in several scripts, echoed with its log probabilities."""
    return server.completion("Ça va? 東京 👍🏽 naïve—yes:", echo=True, logprobs=1, max_tokens=1)
