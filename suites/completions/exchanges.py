"""Requests of the completions suite.

Many of them leave the model one token to choose (`allowed_token_ids`): what comes out is then known
beforehand, for any model and any weights, and stopping, counting and slicing can be judged exactly.
"""

from __future__ import annotations

from typing import Any

from pytest_vllm import Case, Recording, Request, Server, case_file, cases, exchange, only_if

OPENING = "The capital of France is"
UNICODE = "Ça va? 東京 👍🏽 naïve—yes:"
BATCH = ("One two three", "Red green blue yellow")
BEAMS = 4
HELLOS = " hello hello hello hello hello hello"
FAVOURITE = "My favourite words are"
#: Answers at once in one request.
CROWD = 8

#: No sampling default of the model's own may narrow what these parameters open, or move its likeliest token.
HOT: dict[str, Any] = {
    "temperature": 2.0,
    "top_p": 1.0,
    "top_k": -1,
    "repetition_penalty": 1.0,
    "presence_penalty": 0,
    "frequency_penalty": 0,
}

#: The id that two requests at once bring.
SHARED = "gate-twins-5b1e"

narrowing = cases("narrowing", case_file("narrowing"))
barred_at = cases("barred_at", [{"id": "first", "at": 0}, {"id": "last", "at": 2}])


@exchange("completions.plain")
def completions_plain(server: Server) -> Request:
    """A short greedy continuation."""
    return server.completion(OPENING, max_tokens=8)


@exchange("completions.default-length")
def completions_default_length(server: Server) -> Request:
    """A request that names no limit."""
    return server.completion(OPENING, ignore_eos=True)


@exchange("completions.request-id")
def completions_request_id(server: Server) -> Request:
    """A request that brings its own id, by the last name of the list of models."""
    name = server.models[-1] if server.models else server.model
    request = server.completion("Hi", model=name, max_tokens=1)
    headers = {**request.headers, "X-Request-Id": "gate-completion-91cd"}
    return Request(request.method, request.path, json=request.json, headers=headers)


twin = cases("twin", [{"id": "first", "at": 0}, {"id": "second", "at": 1}])


@exchange("completions.twin")
def completions_twin(
    server: Server, twin: Case, tokenize_word: Recording, tokenize_other_word: Recording
) -> Request:
    """One of two requests at once that bring the same id; each is allowed a token of its own."""
    only_if(server.at_least("0.15.0"), "before 0.15 vLLM takes a client's id for its own")
    only = (tokenize_word, tokenize_other_word)[twin["at"]].ok["tokens"][-1:]
    more: dict[str, Any] = {"max_tokens": 32, "logprobs": 0, "return_tokens_as_token_ids": True}
    request = server.completion("Say", allowed_token_ids=only, ignore_eos=True, expect=None, **more)
    headers = {**request.headers, "X-Request-Id": SHARED}
    return Request(request.method, request.path, json=request.json, headers=headers, expect=None)


@exchange("completions.ids")
def completions_ids(server: Server, tokenize_opening: Recording) -> Request:
    """The same prompt as token ids."""
    return server.completion(tokenize_opening.ok["tokens"], max_tokens=8)


@exchange("completions.rendered")
def completions_rendered(server: Server, tokenize_chat: Recording) -> Request:
    """The plain question of the chat suite as the chat template renders it."""
    return server.completion(tokenize_chat.ok["tokens"], max_tokens=12)


@exchange("completions.bare")
def completions_bare(server: Server) -> Request:
    """The same prompt without special tokens."""
    return server.completion(OPENING, add_special_tokens=False, max_tokens=1)


@exchange("completions.truncated")
def completions_truncated(server: Server) -> Request:
    """A prompt of which three tokens are to be read."""
    return server.completion(HELLOS, truncate_prompt_tokens=3, max_tokens=1)


@exchange("completions.echo")
def completions_echo(server: Server) -> Request:
    """A prompt in several scripts, echoed."""
    return server.completion(UNICODE, echo=True, max_tokens=1)


@exchange("completions.echo-only")
def completions_echo_only(server: Server) -> Request:
    """A prompt echoed with nothing generated; refusing that is allowed too."""
    return server.completion(OPENING, echo=True, max_tokens=0, expect=None)


@exchange("completions.batch")
def completions_batch(server: Server) -> Request:
    """Two prompts, two choices each, echoed so that each choice tells its prompt."""
    sampled: dict[str, Any] = {"n": 2, "temperature": 1.0, "max_tokens": 2}
    return server.completion(list(BATCH), echo=True, ignore_eos=True, **sampled)


@exchange("completions.batch-ids")
def completions_batch_ids(server: Server, tokenize_word: Recording, tokenize_opening: Recording) -> Request:
    """Two prompts as token ids."""
    return server.completion([tokenize_word.ok["tokens"], tokenize_opening.ok["tokens"]], max_tokens=1)


@exchange("completions.forced")
def completions_forced(server: Server, tokenize_word: Recording) -> Request:
    """Six times the only token that is allowed."""
    return server.completion("Say", logprobs=0, **_forced(tokenize_word))


@exchange("completions.stop")
def completions_stop(server: Server, tokenize_word: Recording, completions_forced: Recording) -> Request:
    """A stop string that begins in one token and ends in the next."""
    return server.completion("Say", stop=seam(completions_forced), **_forced(tokenize_word))


@exchange("completions.stop-included")
def completions_stop_included(
    server: Server, tokenize_word: Recording, completions_forced: Recording
) -> Request:
    """The same stop string, wanted in the text."""
    included: dict[str, Any] = {"stop": [seam(completions_forced)], "include_stop_str_in_output": True}
    return server.completion("Say", **included, **_forced(tokenize_word))


@exchange("completions.stop-list")
def completions_stop_list(server: Server, tokenize_word: Recording, completions_forced: Recording) -> Request:
    """Three stop strings: one that never comes, one that comes late, one that comes early."""
    early, text = seam(completions_forced), forced_text(completions_forced)
    return server.completion("Say", stop=["\x00never", text, early], **_forced(tokenize_word))


@exchange("completions.stop-unmatched")
def completions_stop_unmatched(server: Server, tokenize_word: Recording) -> Request:
    """A stop string that never comes, longer than the answer."""
    return server.completion("Say", stop=["never " * 12], **_forced(tokenize_word))


@exchange("completions.twice")
def completions_twice(server: Server, tokenize_rule: Recording) -> Request:
    """A stop string that one token holds several times, where the vocabulary has such a token."""
    rule, ids = tokenize_rule.request.json["prompt"], tokenize_rule.ok["tokens"]
    only_if(len(ids) == 1, f"{rule!r} is {len(ids)} tokens")
    return server.completion("Say", allowed_token_ids=ids, max_tokens=4, stop=rule[0], logprobs=0)


@exchange("completions.stop-token")
def completions_stop_token(server: Server, tokenize_word: Recording) -> Request:
    """The only token that is allowed is also the one that stops."""
    return server.completion("Say", stop_token_ids=tokenize_word.ok["tokens"][-1:], **_forced(tokenize_word))


@exchange("completions.min-tokens")
def completions_min_tokens(
    server: Server, tokenize_word: Recording, completions_forced: Recording
) -> Request:
    """A stop string that comes before the answer may end."""
    return server.completion("Say", stop=seam(completions_forced), min_tokens=4, **_forced(tokenize_word))


@exchange("completions.min-tokens-exact")
def completions_min_tokens_exact(
    server: Server, tokenize_word: Recording, tokenize_other_word: Recording
) -> Request:
    """Two tokens are allowed; the favoured one ends the answer, which may not end before `min_tokens`.

    The prompt is longer than that. Speculative decoding may refuse the bias.
    """
    pair = [tokenize_word.ok["tokens"][-1], tokenize_other_word.ok["tokens"][-1]]
    bound: dict[str, Any] = {"allowed_token_ids": pair, "logit_bias": {str(pair[0]): 100}}
    ends: dict[str, Any] = {"stop_token_ids": pair[:1], "min_tokens": 4, "max_tokens": 12}
    return server.completion(HELLOS, expect=None, **bound, **ends)


@exchange("completions.nulls")
def completions_nulls(server: Server, tokenize_word: Recording) -> Request:
    """Optional parameters as null, and an end after the first token."""
    unset: dict[str, Any] = dict.fromkeys(
        ("max_tokens", "stop", "seed", "suffix", "logprobs", "user", "top_p", "logit_bias")
    )
    last = tokenize_word.ok["tokens"][-1:]
    return server.completion("Say", allowed_token_ids=last, stop_token_ids=last, **unset)


@exchange("completions.bias-to-first")
def completions_bias_to_first(
    server: Server, tokenize_word: Recording, tokenize_other_word: Recording
) -> Request:
    """Two tokens are allowed and the first is favoured; speculative decoding may refuse the bias."""
    return _biased(server, tokenize_word, tokenize_other_word, toward=0)


@exchange("completions.bias-to-second")
def completions_bias_to_second(
    server: Server, tokenize_word: Recording, tokenize_other_word: Recording
) -> Request:
    """Two tokens are allowed and the second is favoured; speculative decoding may refuse the bias."""
    return _biased(server, tokenize_word, tokenize_other_word, toward=1)


@exchange("completions.pair")
def completions_pair(server: Server, tokenize_word: Recording, tokenize_other_word: Recording) -> Request:
    """Two tokens are allowed after a prompt that repeats the first."""
    return server.completion(HELLOS, logprobs=0, **_pair(tokenize_word, tokenize_other_word))


@exchange("completions.barred")
def completions_barred(
    server: Server, tokenize_word: Recording, tokenize_other_word: Recording, completions_pair: Recording
) -> Request:
    """The same two tokens, of which the one that was repeated is a bad word."""
    word = str(completions_pair.ok["choices"][0]["logprobs"]["tokens"][0])
    only: dict[str, Any] = {"bad_words": [word], "logprobs": 0}
    return server.completion(HELLOS, expect=None, **only, **_pair(tokenize_word, tokenize_other_word))


@exchange("completions.barred-among")
def completions_barred_among(
    server: Server,
    barred_at: Case,
    tokenize_word: Recording,
    tokenize_other_word: Recording,
    completions_pair: Recording,
) -> Request:
    """The same, where that word is one of several bad words: the first, the last; drawn twice."""
    word = str(completions_pair.ok["choices"][0]["logprobs"]["tokens"][0])
    words = ["quagga", "okapi"]
    words.insert(barred_at["at"], word)
    only: dict[str, Any] = {"bad_words": words, "logprobs": 0, "temperature": 1.0, "n": 2}
    return server.completion(HELLOS, expect=None, **only, **_pair(tokenize_word, tokenize_other_word))


@exchange("completions.frequency-penalty")
def completions_frequency_penalty(
    server: Server, tokenize_word: Recording, tokenize_other_word: Recording
) -> Request:
    """The same with the strongest penalty on repetition."""
    penalty: dict[str, Any] = {"frequency_penalty": 2.0, "logprobs": 0}
    return server.completion(HELLOS, **penalty, **_pair(tokenize_word, tokenize_other_word))


@exchange("completions.special-hidden")
def completions_special_hidden(server: Server, tokenize_chat: Recording) -> Request:
    """Only the special token that begins a rendered conversation is allowed."""
    return _special(server, tokenize_chat, skip=True)


@exchange("completions.special-shown")
def completions_special_shown(server: Server, tokenize_chat: Recording) -> Request:
    """The same with special tokens wanted in the text."""
    return _special(server, tokenize_chat, skip=False)


@exchange("completions.narrowed")
def completions_narrowed(server: Server, narrowing: Case) -> Request:
    """A high temperature with only the best token to choose from; speculative decoding may refuse `min_p`."""
    params = {**HOT, **narrowing["params"], "logprobs": 2}
    return server.completion(OPENING, max_tokens=8, ignore_eos=True, expect=None, **params)


@exchange("completions.seed-first", alone=True)
def completions_seed_first(server: Server) -> Request:
    """A seeded continuation at a high temperature."""
    return _seeded(server, 17)


@exchange("completions.seed-again", alone=True)
def completions_seed_again(server: Server, completions_seed_first: Recording) -> Request:  # noqa: ARG001
    """The same seed again."""
    return _seeded(server, 17)


@exchange("completions.seed-other", alone=True)
def completions_seed_other(server: Server) -> Request:
    """Another seed."""
    return _seeded(server, 18)


@exchange("completions.seed-third")
def completions_seed_third(server: Server) -> Request:
    """A third seed."""
    return _seeded(server, 19)


@exchange("completions.seed-fourth")
def completions_seed_fourth(server: Server) -> Request:
    """A fourth seed."""
    return _seeded(server, 4711)


@exchange("completions.drawn-crowd")
def completions_drawn_crowd(server: Server) -> Request:
    """Eight continuations of one text at once at a high temperature, without a seed."""
    return server.completion([FAVOURITE] * CROWD, max_tokens=16, ignore_eos=True, **HOT)


@exchange("completions.seeded-crowd")
def completions_seeded_crowd(server: Server) -> Request:
    """The same with one seed, beside those without."""
    return server.completion([FAVOURITE] * CROWD, max_tokens=4, ignore_eos=True, seed=17, **HOT)


def forced_text(forced: Recording) -> str:
    """The text of the forced answer."""
    return str(forced.ok["choices"][0]["text"])


def seam(forced: Recording) -> str:
    """A piece of the forced text that spans the border of two tokens."""
    token = str(forced.ok["choices"][0]["logprobs"]["tokens"][-1])
    return (token + token)[max(0, len(token) - 2) : len(token) + 2]


def _forced(word: Recording) -> dict[str, Any]:
    return {"allowed_token_ids": word.ok["tokens"][-1:], "max_tokens": 6}


def _pair(word: Recording, other: Recording) -> dict[str, Any]:
    return {"allowed_token_ids": [word.ok["tokens"][-1], other.ok["tokens"][-1]], "max_tokens": 16}


def _biased(server: Server, word: Recording, other: Recording, *, toward: int) -> Request:
    pair = [word.ok["tokens"][-1], other.ok["tokens"][-1]]
    bias = {str(pair[toward]): 100, str(pair[1 - toward]): -100}
    forced: dict[str, Any] = {"allowed_token_ids": pair, "max_tokens": 3, "logprobs": 0}
    return server.completion("Say", logit_bias=bias, expect=None, **forced)


def _special(server: Server, rendered: Recording, *, skip: bool) -> Request:
    forced: dict[str, Any] = {
        "allowed_token_ids": rendered.ok["tokens"][:1],
        "ignore_eos": True,
        "max_tokens": 2,
    }
    return server.completion("Say", skip_special_tokens=skip, **forced)


def _seeded(server: Server, seed: int) -> Request:
    drawn = {"seed": seed, "logprobs": 0, **HOT}
    return server.completion(FAVOURITE, max_tokens=6, ignore_eos=True, **drawn)


@exchange("completions.beams")
def completions_beams(server: Server) -> Request:
    """A search with four beams, which servers may refuse."""
    return server.completion(OPENING, max_tokens=8, use_beam_search=True, n=BEAMS, expect=None)
