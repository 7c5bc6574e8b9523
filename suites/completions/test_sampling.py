"""Sampling parameters have an effect: none of them is silently ignored."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pytest_vllm import (
    MUST,
    SHOULD,
    Case,
    Recording,
    Recordings,
    Server,
    check,
    need,
    only_if,
    parting,
    text_of,
)

from .exchanges import BEAMS, CROWD

CREATE = "openai:completions/create"
VLLM = "vllm:serving/openai_compatible_server/#completions-api"
NEEDS = ["completions"]
FORCED = ["completions", "tokenize"]
#: Two log probabilities that are no further apart than this may change places from batch to batch.
TIED = 0.3


@check("completions.allowed-token-ids", MUST, spec=VLLM, needs=FORCED)
def test_allowed(completions_forced: Recording) -> None:
    """Where one token is allowed, nothing else is generated."""
    tokens = _tokens(completions_forced)

    assert len(set(tokens)) == 1, f"one token id is allowed, generated were {tokens}"


@check("completions.logit-bias", MUST, spec=f"{CREATE}#logit_bias", needs=FORCED)
def test_logit_bias(completions_bias_to_first: Recording, completions_bias_to_second: Recording) -> None:
    """A bias of 100 decides between two tokens, or is refused by name."""
    if _refused(completions_bias_to_first, "logit_bias"):
        return
    first, second = _tokens(completions_bias_to_first), _tokens(completions_bias_to_second)

    assert len(set(first)) == 1, f"biased to one token, generated were {first}"
    assert len(set(second)) == 1, f"biased to one token, generated were {second}"
    assert first != second, f"biased either way, generated were {first}"


@check(
    "completions.logit-bias.against",
    MUST,
    spec=f"{CREATE}#logit_bias",
    needs=FORCED,
    exchanges=["crowd.alone["],
)
def test_logit_bias_against(vllm_recordings: Recordings) -> None:
    """Of two allowed tokens the one is drawn that no bias of -100 is against."""
    first, second = (vllm_recordings.get(f"crowd.alone[against-{one}]") for one in ("first", "second"))
    only_if(400 not in (first.status, second.status), "the server refuses biases or allowed tokens")

    assert _text(first) != _text(second), (
        f"biased against one token and the other: {_text(first)!r} each time"
    )


@check("completions.frequency-penalty", MUST, spec=f"{CREATE}#frequency_penalty", needs=FORCED)
def test_frequency_penalty(completions_pair: Recording, completions_frequency_penalty: Recording) -> None:
    """A frequency penalty of 2 breaks the repetition of one token."""
    plain, penalised = _tokens(completions_pair), _tokens(completions_frequency_penalty)
    only_if(len(set(plain)) == 1, f"the server's own settings break it without a penalty: {plain}")

    assert len(set(penalised)) == 2, f"still one token of two: {penalised}"


@check("completions.penalty-begins", MUST, spec="fault:vllm-project/vllm-metal/pull/69", needs=FORCED)
def test_penalty_begins(
    completions_pair: Recording, completions_frequency_penalty: Recording, vllm_server: Server
) -> None:
    """A frequency penalty leaves the first token alone: it is on what was generated."""
    plain, penalised = _tokens(completions_pair)[0], _tokens(completions_frequency_penalty)[0]
    chances = [_chosen(one)[0] for one in (completions_pair, completions_frequency_penalty)]
    tied = plain != penalised and None not in chances and abs(chances[0] - chances[1]) < TIED
    need(vllm_server.simulated or not tied, f"{plain!r} and {penalised!r} are about equally likely")

    assert plain == penalised, f"{penalised!r} for {plain!r}, which only the prompt has repeated"


@check("completions.bad-words", MUST, spec="fault:vllm-project/vllm/pull/31908", needs=FORCED)
def test_bad_words(
    completions_pair: Recording, completions_barred: Recording, tokenize_repeated: Recording
) -> None:
    """A bad word is not drawn, or bad words are refused by name."""
    if _refused(completions_barred, "bad_words"):
        return
    plain, ids = _tokens(completions_pair), tokenize_repeated.ok["tokens"]
    allowed = completions_barred.request.json["allowed_token_ids"]
    only_if(len(ids) == 1 and ids[0] in allowed, f"{plain[0]!r} by itself is other tokens")
    found = _tokens(completions_barred)

    assert plain[0] not in found, f"the bad word {plain[0]!r} is in {found}"


@check("completions.bad-words.each", MUST, spec="fault:vllm-project/vllm/pull/31908", needs=FORCED)
def test_bad_words_each(
    barred_at: Case,
    completions_pair: Recording,
    completions_barred: Recording,
    completions_barred_among: Recording,
    tokenize_repeated: Recording,
) -> None:
    """Each of several bad words is kept from each choice, the first and the last."""
    del barred_at
    only_if(not _refused(completions_barred, "bad_words"), "this server refuses bad words")
    plain, ids = _tokens(completions_pair), tokenize_repeated.ok["tokens"]
    allowed = completions_barred.request.json["allowed_token_ids"]
    only_if(len(ids) == 1 and ids[0] in allowed, f"{plain[0]!r} by itself is other tokens")
    need(plain[0] not in _tokens(completions_barred), "this word is drawn where it is the only bad one")
    words, rows = completions_barred_among.request.json["bad_words"], completions_barred_among.ok["choices"]
    found = [token for row in rows for token in row["logprobs"]["tokens"]]

    assert plain[0] not in found, f"{plain[0]!r}, of the bad words {words}, is in {found}"


@check("completions.narrowing", MUST, spec=VLLM, needs=["completions", "logprobs"])
def test_narrowing(narrowing: Case, completions_narrowed: Recording) -> None:
    """What leaves only the best token outdoes any temperature, or is refused by name."""
    if _refused(completions_narrowed, *narrowing["params"]):
        return
    found = completions_narrowed.ok["choices"][0]["logprobs"]
    rows = list(zip(found["tokens"], found["token_logprobs"], found["top_logprobs"], strict=True))
    worse = [row for row in rows if max(row[2].values()) > row[1] + 1e-3]

    assert not worse, f"{narrowing['params']}: drawn {worse[0][0]!r} at {worse[0][1]}, of {worse[0][2]}"


@check("completions.seed.repeats", MUST, spec=f"{CREATE}#seed", needs=NEEDS)
def test_seed_repeats(completions_seed_first: Recording, completions_seed_again: Recording) -> None:
    """The same seed draws the same first tokens."""
    first, again = _tokens(completions_seed_first), _tokens(completions_seed_again)

    assert again[:2] == first[:2], f"seed 17 drew {first}, then {again}"


@check("completions.seed.repeats-throughout", SHOULD, spec=f"{CREATE}#seed", needs=NEEDS)
def test_seed_throughout(completions_seed_first: Recording, completions_seed_again: Recording) -> None:
    """The same seed, alone on the server, gives the same text."""
    first, again = (text_of(one.ok["choices"][0]) for one in (completions_seed_first, completions_seed_again))
    same = parting(first, again)

    assert first == again, f"after {first[:same]!r}: {first[same:]!r}, then {again[same:]!r}"


@check("completions.seed.matters", MUST, spec=f"{CREATE}#seed", needs=NEEDS)
def test_seed_matters(
    completions_seed_first: Recording,
    completions_seed_other: Recording,
    completions_seed_third: Recording,
    completions_seed_fourth: Recording,
) -> None:
    """At temperature 2 at least 1 of 3 other seeds gives another text."""
    first = _tokens(completions_seed_first)
    others = [
        _tokens(one) for one in (completions_seed_other, completions_seed_third, completions_seed_fourth)
    ]

    assert any(other != first for other in others), f"seeds 17, 18, 19 and 4711 drew the same {first}"


@check(
    "completions.seed.crowd",
    MUST,
    spec="fault:vllm-project/vllm/issues/51226",
    needs=NEEDS,
    exchanges=["completions.drawn-crowd"],
)
def test_seed_crowd(completions_seeded_crowd: Recording) -> None:
    """Of eight texts drawn at once with one seed most are the same."""
    texts = Counter(text_of(choice) for choice in completions_seeded_crowd.ok["choices"])
    usual, count = texts.most_common(1)[0]

    assert 2 * count >= CROWD, f"{len(texts)} texts of {CROWD}, the most frequent {count} times: {usual!r}"


@check("completions.drawn.crowd", MUST, spec=f"{CREATE}#temperature", needs=NEEDS)
def test_drawn_crowd(completions_drawn_crowd: Recording) -> None:
    """Of eight texts drawn at once without a seed not all are the same."""
    texts = [text_of(choice) for choice in completions_drawn_crowd.ok["choices"]]

    assert len(texts) == CROWD, f"{len(texts)} texts of {CROWD}"
    assert len(set(texts)) > 1, f"{CROWD} times {texts[0]!r}"


@check("completions.special-tokens.hidden", MUST, spec=VLLM, needs=FORCED)
def test_special_hidden(completions_special_hidden: Recording, completions_special_shown: Recording) -> None:
    """A special token is not part of the text unless it is asked for."""
    hidden, shown = _text(completions_special_hidden), _text(completions_special_shown)

    assert not _marked(hidden), f"{hidden!r} with skip_special_tokens, {shown!r} without"


@check("completions.special-tokens.shown", SHOULD, spec=VLLM, needs=FORCED)
def test_special_shown(completions_special_hidden: Recording, completions_special_shown: Recording) -> None:
    """`skip_special_tokens: false` puts special tokens into the text."""
    hidden, shown = _text(completions_special_hidden), _text(completions_special_shown)

    assert len(shown) > len(hidden), f"{shown!r} without skip_special_tokens, {hidden!r} with"


@check("completions.beams", MUST, spec=VLLM, needs=NEEDS)
def test_beams(completions_beams: Recording) -> None:
    """A search with four beams ends in four texts, and not all of them are the same."""
    only_if(completions_beams.status != 400, f"refused: {completions_beams.text[:120]}")
    texts = [text_of(choice) for choice in completions_beams.ok["choices"]]

    assert len(texts) == BEAMS, f"{len(texts)} texts of {BEAMS} beams"
    assert len(set(texts)) > 1, f"all beams say {texts[0]!r:.100}"


def _refused(answer: Recording, name: str) -> bool:
    """Whether a parameter was refused. Refusing is allowed, in a 400 that names it."""
    answer.answered()
    by_name = answer.status == 400 and name in answer.text

    assert answer.status == 200 or by_name, f"{name}: {answer.status} {answer.text[:200]}"
    return by_name


def _marked(text: str) -> bool:
    """Whether a text is written like a special token: `<|im_start|>`, `<s>`, `[INST]`."""
    return text.strip().startswith(("<", "[")) and text.strip().endswith((">", "]"))


def _text(answer: Recording) -> str:
    return text_of(answer.ok["choices"][0])


def _chosen(answer: Recording) -> list[Any]:
    found: list[Any] = answer.ok["choices"][0]["logprobs"]["token_logprobs"]
    return found


def _tokens(answer: Recording) -> list[Any]:
    found: list[Any] = answer.ok["choices"][0]["logprobs"]["tokens"]
    return found
