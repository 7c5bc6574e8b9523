"""Text to tokens and back."""

from __future__ import annotations

import unicodedata

from pytest_vllm import MUST, SHOULD, Case, Recording, Recordings, check, unexpected

SPEC = "vllm:serving/openai_compatible_server/#tokenizer-api"
TEXTS = ("tokenize.text", "tokenize.opening", "tokenize.word", "tokenize.other-word")


@check("tokenize.answered", MUST, spec=SPEC, needs=["tokenize"], exchanges=TEXTS)
def test_answered(vllm_recordings: Recordings) -> None:
    """Every text is tokenized, and detokenized again."""
    wrong = unexpected(one for prefix in TEXTS for one in vllm_recordings.of(prefix))

    assert not wrong, "; ".join(wrong)


@check("tokenize.round-trip", MUST, spec=SPEC, needs=["tokenize"])
def test_round_trip(round_trip: Case, tokenize_text_back: Recording) -> None:
    """A text comes back from its tokens, up to Unicode's canonical form."""
    sent, back = _canonical(round_trip["text"]), _canonical(tokenize_text_back.ok["prompt"])

    assert back == sent, f"{back!r} came back, {sent!r} was sent"


@check("tokenize.round-trip-exact", SHOULD, spec=SPEC, needs=["tokenize"])
def test_round_trip_exact(round_trip: Case, tokenize_text_back: Recording) -> None:
    """A text comes back from its tokens unchanged."""
    sent, back = round_trip["text"], tokenize_text_back.ok["prompt"]

    assert back == sent, f"{back!r} came back, {sent!r} was sent"


def _canonical(text: str) -> str:
    """Tokenizers with an NFC normaliser compose marks; the text is the same to every reader."""
    return unicodedata.normalize("NFC", text)
