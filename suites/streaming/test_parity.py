"""A streamed answer is the whole answer, in pieces.

The three exchanges of a pair run alone on the server. Where even two whole answers differ, the server does
not repeat itself, and the stream is not to blame.
"""

from pytest_vllm import MUST, Recording, Recordings, check, need, text_of

from ..oracle.answers import answer_of  # noqa: TID252 - suites lie together
from .chunks import finishes, joined, usages

SPEC = "openai:chat-streaming"


def whole_text(first: Recording, second: Recording) -> str:
    """The text of a whole answer that came twice alike. Raises Undecided when it did not."""
    texts = [text_of(r.ok["choices"][0]) for r in (first, second)]
    need(texts[0] == texts[1], "this server gives another greedy answer each time")
    need(texts[0], "the answer is empty")
    return texts[0]


@check("stream.parity.chat-text", MUST, spec=SPEC, needs=("stream", "chat"))
def test_chat_text(
    streaming_chat_whole: Recording, streaming_chat_again: Recording, streaming_chat: Recording
) -> None:
    """The joined deltas of a chat stream are the text of the whole answer."""
    whole, stream = whole_text(streaming_chat_whole, streaming_chat_again), joined(streaming_chat)

    assert stream == whole, f"streamed {stream!r}, whole {whole!r}"


@check("stream.parity.completion-text", MUST, spec=SPEC, needs=("stream", "completions"))
def test_completion_text(
    streaming_completion_whole: Recording,
    streaming_completion_again: Recording,
    streaming_completion: Recording,
) -> None:
    """The joined pieces of a completion stream are the text of the whole completion."""
    whole = whole_text(streaming_completion_whole, streaming_completion_again)
    stream = joined(streaming_completion)

    assert stream == whole, f"streamed {stream!r}, whole {whole!r}"


@check("stream.parity.finish", MUST, spec=SPEC, needs=("stream", "chat"))
def test_finish(
    streaming_chat_whole: Recording, streaming_chat_again: Recording, streaming_chat: Recording
) -> None:
    """A stream finishes for the same reason as the whole answer."""
    whole_text(streaming_chat_whole, streaming_chat_again)
    whole, reasons = streaming_chat_again.ok["choices"][0]["finish_reason"], finishes(streaming_chat)
    need(reasons, "the stream gives no finish reason")

    assert reasons[0] == whole, f"streamed {reasons[0]!r}, whole {whole!r}"


@check("stream.parity.prompt-tokens", MUST, spec="fault:vllm-project/vllm/issues/8625", needs=("stream",))
def test_prompt_tokens(
    streaming_chat_again: Recording,
    streaming_chat: Recording,
    streaming_completion_again: Recording,
    streaming_completion: Recording,
) -> None:
    """A stream counts the prompt as the whole answer does."""
    pairs = ((streaming_chat_again, streaming_chat), (streaming_completion_again, streaming_completion))
    need(all(usages(stream) for _, stream in pairs), "a stream gives no usage")
    counts = [(whole.ok["usage"]["prompt_tokens"], usages(s)[-1]["prompt_tokens"]) for whole, s in pairs]
    wrong = [f"streamed {stream}, whole {whole}" for whole, stream in counts if stream != whole]

    assert not wrong, "; ".join(wrong)


@check("stream.parity.completion-tokens", MUST, spec="fault:vllm-project/vllm/issues/8625", needs=("stream",))
def test_completion_tokens(
    streaming_chat_whole: Recording,
    streaming_chat_again: Recording,
    streaming_chat: Recording,
    streaming_completion_again: Recording,
    streaming_completion: Recording,
) -> None:
    """A stream counts its tokens as the whole answer does."""
    whole_text(streaming_chat_whole, streaming_chat_again)
    pairs = ((streaming_chat_again, streaming_chat), (streaming_completion_again, streaming_completion))
    need(all(usages(stream) for _, stream in pairs), "a stream gives no usage")
    counts = [
        (whole.ok["usage"]["completion_tokens"], usages(s)[-1]["completion_tokens"]) for whole, s in pairs
    ]
    wrong = [f"streamed {stream}, whole {whole}" for whole, stream in counts if stream != whole]

    assert not wrong, "; ".join(wrong)


@check(
    "stream.parity.seeded",
    MUST,
    spec="openai:chat/create#seed",
    needs=("stream",),
    exchanges=("streaming.seeded[",),
)
def test_seeded(vllm_recordings: Recordings) -> None:
    """What a seed draws is the same whole and streamed, wherever it is twice the same."""
    said: dict[str, dict[str, str]] = {}
    for one in vllm_recordings.of("streaming.seeded["):
        route, _, name = one.key.partition("[")[2].rstrip("]").rpartition("-")
        answer = answer_of(one)
        said.setdefault(route, {})[name] = answer.text if answer else ""
    judged = {
        route: texts
        for route, texts in said.items()
        if texts.get("whole") and texts["whole"] == texts.get("again") and texts.get("stream")
    }
    need(judged, f"a seed draws no text twice: {said}")
    wrong = {route: texts for route, texts in judged.items() if texts["stream"] != texts["whole"]}

    assert not wrong, f"drawn with one seed: {wrong}"
