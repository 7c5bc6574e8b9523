"""Several choices, and answers that must be alike or must not."""

from __future__ import annotations

from pytest_vllm import MUST, SHOULD, Recording, check, near_tie, need, text_of

CREATE = "openai:chat/create"
VLLM = "vllm:serving/openai_compatible_server/#chat-api"
CHAT = ["chat"]
EVERY = ["chat", "completions", "tokenize", "logprobs"]


@check("chat.n.indices", MUST, spec=f"{CREATE}#n", needs=CHAT)
def test_indices(chat_n: Recording) -> None:
    """`n` choices come back, numbered from zero."""
    indices = [choice["index"] for choice in chat_n.ok["choices"]]

    assert sorted(indices) == [0, 1, 2], f"indices {indices} for n=3"


@check("chat.n.varied", MUST, spec=f"{CREATE}#temperature", needs=CHAT)
def test_varied(chat_n: Recording) -> None:
    """At temperature 2, unseeded, the choices of one request are not all the same."""
    texts = [text_of(choice) for choice in chat_n.ok["choices"]]

    assert len(set(texts)) > 1, f"{len(texts)} times {texts[0]!r}"


@check("chat.seed.repeats", MUST, spec=f"{CREATE}#seed", needs=["chat", "logprobs"])
def test_seed(chat_seed_first: Recording, chat_seed_again: Recording) -> None:
    """The same seed draws the same first tokens, over chat too."""
    first, again = (
        [row["token"] for row in one.ok["choices"][0]["logprobs"]["content"]]
        for one in (chat_seed_first, chat_seed_again)
    )

    assert again[:2] == first[:2], f"seed 17 drew {first}, then {again}"


@check("chat.greedy.repeats", SHOULD, spec=f"{CREATE}#temperature", needs=["chat", "logprobs"])
def test_repeats(chat_plain: Recording, chat_repeat: Recording, logprobs_chat: Recording) -> None:
    """At temperature 0 the same question gets the same answer, near-ties aside."""
    _alike(chat_plain, chat_repeat, logprobs_chat)


@check("chat.greedy.logprobs-change-nothing", SHOULD, spec=f"{CREATE}#logprobs", needs=["chat", "logprobs"])
def test_logprobs_change_nothing(chat_plain: Recording, logprobs_chat: Recording) -> None:
    """Asking for log probabilities does not change a greedy answer, near-ties aside."""
    _alike(chat_plain, logprobs_chat, logprobs_chat)


@check("chat.greedy.like-completions", SHOULD, spec=VLLM, needs=EVERY)
def test_like_completions(
    chat_plain: Recording, completions_rendered: Recording, logprobs_chat: Recording
) -> None:
    """The rendered question gets the chat answer from completions, near-ties aside."""
    message = chat_plain.ok["choices"][0]["message"]
    need(
        not message.get("reasoning") and not message.get("reasoning_content"),
        "a reasoning parser cuts the chat answer, so the two texts cannot be compared",
    )

    _alike(chat_plain, completions_rendered, logprobs_chat)


@check("chat.bad-words", SHOULD, spec=VLLM, needs=CHAT)
def test_bad_words(chat_plain: Recording, chat_bad_words: Recording) -> None:
    """An answer does not begin with a word that was forbidden."""
    (word,) = chat_bad_words.request.json["bad_words"]
    plain, text = text_of(chat_plain.ok["choices"][0]), text_of(chat_bad_words.ok["choices"][0])
    need(plain.split()[:1] == [word], f"the plain answer {plain!r} has no first word to forbid")

    assert text.split()[:1] != [word], f"{word!r} is forbidden, the answer is {text!r}"


def _alike(one: Recording, other: Recording, scored: Recording) -> None:
    """Two greedy texts are the same, or part where the model was undecided."""
    first, second = text_of(one.ok["choices"][0]), text_of(other.ok["choices"][0])
    entries = scored.ok["choices"][0]["logprobs"]["content"]

    assert first == second or near_tie(entries, first, second), f"{first!r} and {second!r}, and no near-tie"
