"""What the tokenizer counts."""

from __future__ import annotations

from pytest_vllm import MUST, SHOULD, Case, Recording, Recordings, check, listed, need, only_if

SPEC = "vllm:serving/openai_compatible_server/#tokenizer-api"


@check("tokenize.count", MUST, spec=SPEC, needs=["tokenize"])
def test_count(round_trip: Case, tokenize_text: Recording) -> None:  # noqa: ARG001 - picks the case
    """`count` is the number of tokens."""
    body = tokenize_text.ok

    assert body["count"] == len(body["tokens"]), f"count {body['count']} of {len(body['tokens'])} tokens"


@check("tokenize.every.counted", MUST, spec=SPEC, needs=["tokenize"], exchanges=["sizes.prompt-count", "*"])
def test_every_counted(vllm_recordings: Recordings) -> None:
    """`count` is the number of tokens for every text and conversation of the run."""
    told = [one for one in vllm_recordings.of("") if one.request.path == "/tokenize" and one.status == 200]
    rows = [(one.key, one.json) for one in told if isinstance(one.json, dict)]
    only_if(rows, "nothing was tokenized")
    sizes = [(key, body.get("count"), len(body.get("tokens") or ())) for key, body in rows]
    wrong = [f"{key}: count {count} of {number} tokens" for key, count, number in sizes if count != number]

    assert not wrong, listed(wrong)


@check("tokenize.ids", MUST, spec=SPEC, needs=["tokenize"])
def test_ids(round_trip: Case, tokenize_text: Recording) -> None:  # noqa: ARG001 - picks the case
    """Tokens are ids, and a text that is not empty has some."""
    tokens = tokenize_text.ok.get("tokens")

    assert isinstance(tokens, list), f"tokens is {tokens!r}"
    odd = [token for token in tokens if type(token) is not int or token < 0]

    assert tokens, "no tokens"
    assert not odd, f"no token ids: {odd}"


@check("tokenize.strings", SHOULD, spec=SPEC, needs=["tokenize"])
def test_strings(tokenize_opening: Recording) -> None:
    """Asked for, every token comes with its string."""
    body = tokenize_opening.ok
    strings = body.get("token_strs")

    assert isinstance(strings, list), f"token_strs is {strings!r}"
    assert len(strings) == len(body["tokens"]), f"{len(strings)} strings for {len(body['tokens'])} tokens"


@check("tokenize.strings-own", MUST, spec=SPEC, needs=["tokenize", "chat"])
def test_strings_own(tokenize_opening: Recording, tokenize_chat_pieces: Recording) -> None:
    """A token has the same string wherever it stands."""
    pairs = [
        (id_, string)
        for body in (tokenize_opening.ok, tokenize_chat_pieces.ok)
        for id_, string in zip(body["tokens"], body.get("token_strs") or (), strict=False)
    ]
    only_if(pairs, "no strings are told")
    known: dict[int, str] = {}
    wrong = [
        f"{id_}: {known[id_]!r} and {text!r}" for id_, text in pairs if known.setdefault(id_, text) != text
    ]

    assert not wrong, f"tokens with several strings: {listed(wrong)}"


@check("tokenize.special-tokens", MUST, spec=SPEC, needs=["tokenize"])
def test_special_tokens(tokenize_opening: Recording, tokenize_opening_bare: Recording) -> None:
    """Special tokens stand around the tokens of the text and change none of them."""
    full, bare = tokenize_opening.ok["tokens"], tokenize_opening_bare.ok["tokens"]
    starts = [n for n in range(len(full) - len(bare) + 1) if full[n : n + len(bare)] == bare]

    assert starts, f"with special tokens {full}, without {bare}"


@check("tokenize.one-beginning", MUST, spec=SPEC, needs=["chat", "tokenize"])
def test_one_beginning(tokenize_chat: Recording) -> None:
    """A rendered conversation begins with one special token, not with two of the same."""
    tokens = tokenize_chat.ok["tokens"]
    need(len(tokens) > 1, "the rendered question is a single token")

    assert tokens[0] != tokens[1], f"the prompt begins {tokens[:4]}"
