"""What a stream's text may not do: split characters, leak stop strings, lose log probabilities."""

from itertools import pairwise

from pytest_vllm import MUST, SHOULD, Recording, Server, check, need, only_if

from .chunks import choices, finishes, joined, piece
from .exchanges import FEW, LETTERS, stop_of

VLLM = "vllm:serving/openai_compatible_server/#completions-api"


@check(
    "stream.text.unicode",
    MUST,
    spec="fault:vllm-project/vllm/issues/8627",
    needs=("stream", "completions", "structured-output"),
)
def test_unicode(
    vllm_server: Server, streaming_letters_whole: Recording, streaming_letters: Recording
) -> None:
    """Characters of several tokens come whole, in the stream as in the whole answer."""
    whole, stream = streaming_letters_whole.ok["choices"][0]["text"], joined(streaming_letters)
    only_if(
        whole == LETTERS or not vllm_server.can("reasoning"), "this server constrains after the thinking only"
    )
    need(whole == LETTERS, f"the constraint has no effect: {whole[:40]!r}")

    assert stream == LETTERS, f"streamed {stream!r}, whole {whole!r}"


@check("stream.stop.honoured", MUST, spec="openai:chat/create#stop", needs=("stream", "completions"))
def test_stop_honoured(streaming_completion_again: Recording, streaming_stop: Recording) -> None:
    """A stop string never appears in a stream, however its tokens are cut."""
    stop, text = stop_of(streaming_completion_again), joined(streaming_stop)
    need(choices(streaming_stop), "the stream held no choice")

    assert stop not in text, f"the stop string {stop!r} is in {text!r}"


@check("stream.stop.named", MUST, spec=VLLM, needs=("stream", "completions"))
def test_stop_named(streaming_completion_again: Recording, streaming_stop: Recording) -> None:
    """A stream that a string stops names it as `stop_reason`."""
    need(finishes(streaming_stop) == ["stop"], f"the stream finished with {finishes(streaming_stop)}")
    told = [one.get("stop_reason") for one in choices(streaming_stop) if one.get("finish_reason")]

    assert told == [stop_of(streaming_completion_again)], f"stop_reason {told}"


@check("stream.stop.no-leak", MUST, spec="openai:chat/create#stop", needs=("stream", "completions"))
def test_stop_no_leak(streaming_completion_again: Recording, streaming_stop: Recording) -> None:
    """A stream that a string stops holds the text before it, no more, no less."""
    need(finishes(streaming_stop) == ["stop"], f"the stream finished with {finishes(streaming_stop)}")
    whole, stop = streaming_completion_again.ok["choices"][0]["text"], stop_of(streaming_completion_again)
    before, text = whole.partition(stop)[0], joined(streaming_stop)

    assert text == before, f"stopped by {stop!r}, streamed {text!r}, the text before it is {before!r}"


@check(
    "stream.stop.unmatched", MUST, spec="fault:vllm-project/vllm/pull/8468", needs=("stream", "completions")
)
def test_stop_unmatched(
    streaming_completion_whole: Recording,
    streaming_completion_again: Recording,
    streaming_stop_unmatched: Recording,
) -> None:
    """A stream with a stop string that never comes holds its text to the last letter."""
    wholes = (streaming_completion_whole, streaming_completion_again)
    first, again = (one.ok["choices"][0]["text"] for one in wholes)
    need(first == again, "the server does not repeat its own greedy answers")
    text = joined(streaming_stop_unmatched)
    need(finishes(streaming_stop_unmatched) == ["length"], "the stream did not use up its tokens")

    assert not (len(text) < len(again) and again.startswith(text)), f"it ends {text[-40:]!r}, whole {again!r}"


def with_logprobs(stream: Recording) -> list[tuple[str, list[float]]]:
    """Each piece of text with the log probabilities that came along."""
    found = []
    for choice in choices(stream):
        given = choice.get("logprobs") or {}
        chat = [entry["logprob"] for entry in given.get("content") or []]
        found.append((piece(choice), chat or list(given.get("token_logprobs") or [])))
    return found


@check("stream.logprobs.ride-along", MUST, spec="openai:chat-streaming", needs=("stream", "logprobs"))
def test_ride_along(streaming_logprobs: Recording, streaming_chat_logprobs: Recording) -> None:
    """Every piece of text comes with the log probabilities of its tokens."""
    pieces = [
        (r.key, *both) for r in (streaming_logprobs, streaming_chat_logprobs) for both in with_logprobs(r)
    ]
    need(any(text for _, text, _ in pieces), "the streams held no text")
    bare = [f"{key}: {text!r}" for key, text, values in pieces if text and not values]

    assert not bare, "; ".join(bare[:5])


@check("stream.logprobs.count", MUST, spec="openai:completions/object", needs=("stream", "logprobs"))
def test_logprobs_count(streaming_logprobs: Recording) -> None:
    """A stream gives as many log probabilities as it generated tokens."""
    need(finishes(streaming_logprobs) == ["length"], f"finished with {finishes(streaming_logprobs)}")
    values = [value for _, chunk in with_logprobs(streaming_logprobs) for value in chunk]

    assert len(values) == FEW, f"{len(values)} log probabilities for {FEW} tokens"


@check("stream.logprobs.possible", MUST, spec="openai:completions/object", needs=("stream", "logprobs"))
def test_logprobs_possible(
    streaming_logprobs: Recording, streaming_chat_logprobs: Recording, vllm_server: Server
) -> None:
    """A log probability in a stream is a number, zero at most."""
    both = (streaming_logprobs, streaming_chat_logprobs)
    values = [value for r in both for _, chunk in with_logprobs(r) for value in chunk]
    need(values, "the streams held no log probability")
    wrong = [value for value in values if not vllm_server.is_logprob(value)]

    assert not wrong, f"{wrong[:5]}"


@check(
    "stream.logprobs.not-all-alike",
    MUST,
    spec="fault:vllm-project/vllm/issues/52938",
    needs=("stream", "logprobs"),
)
def test_logprobs_not_all_alike(streaming_logprobs: Recording) -> None:
    """The log probabilities of a stream are not one value over and over."""
    values = [value for _, chunk in with_logprobs(streaming_logprobs) for value in chunk]
    need(len(values) > 2, f"only {len(values)} log probabilities")

    assert any(one != other for one, other in pairwise(values)), f"{len(values)} times {values[0]}"


@check(
    "stream.text.long-prompt",
    MUST,
    spec="fault:vllm-project/vllm/issues/10126",
    needs=("stream", "completions"),
)
def test_long_prompt(streaming_long_prompt: Recording) -> None:
    """A stream after a prompt of several chunks holds its text."""
    said = choices(streaming_long_prompt)
    need(finishes(streaming_long_prompt), "the stream did not finish")

    assert any(map(piece, said)), f"{len(said)} chunks, none with text"


@check("stream.text.single-token", SHOULD, spec="openai:chat-streaming", needs=("stream", "chat"))
def test_single_token(streaming_one_token: Recording) -> None:
    """A stream of one token has at most one piece of text."""
    pieces = [piece(choice) for choice in choices(streaming_one_token) if piece(choice)]
    need(choices(streaming_one_token), "the stream held no choice")

    assert len(pieces) <= 1, f"{len(pieces)} pieces: {pieces}"


@check(
    "stream.prompt-kept-out",
    SHOULD,
    spec="fault:vllm-project/vllm/issues/48853",
    needs=("stream", "completions", "tokenize"),
)
def test_prompt_kept_out(streaming_torn_text: Recording, streaming_torn: Recording) -> None:
    """A stream that goes on from the middle of a letter does not hold its prompt."""
    given = streaming_torn_text.ok["prompt"]
    only_if(given.endswith("\ufffd"), "the vocabulary holds the letter as one token")
    text = joined(streaming_torn)

    assert given[:20] not in text, f"the prompt begins {given[:20]!r}, the answer is {text[:80]!r}"
