"""What holds for the usage of one answer holds on every route, whole or streamed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Recordings, check, listed, observe, only_if

from ..oracle.answers import CHAT, COMPLETIONS, ROUTES, Answer, answer_of, usages  # noqa: TID252 - suites lie together

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_vllm import Recording

SPEC = "openai:chat/object#usage"
#: A part of the usage, and the count that it is a part of.
PARTS = (
    ("prompt_tokens_details", "cached_tokens", "prompt_tokens"),
    ("input_tokens_details", "cached_tokens", "input_tokens"),
    ("completion_tokens_details", "reasoning_tokens", "completion_tokens"),
    ("output_tokens_details", "reasoning_tokens", "output_tokens"),
)


@check("usage.every.part", MUST, spec=SPEC, exchanges=["*"])
def test_part(vllm_recordings: Recordings) -> None:
    """Cached tokens are part of the prompt, reasoning of the answer, on any route."""
    rows = [(one.key, *row) for one in _read(vllm_recordings) for use in _settled(one) for row in _parts(use)]
    only_if(rows, "no answer tells a part of its tokens")
    observe("parts told", len(rows))
    wrong = [f"{key}: {part} {name} of {whole}" for key, name, part, whole in rows if not 0 <= part <= whole]

    assert not wrong, listed(wrong)


@check("usage.every.thought", MUST, spec=SPEC, exchanges=["*"])
def test_thought(vllm_recordings: Recordings) -> None:
    """An answer that holds text is not billed as reasoning alone.

    Left out is what goes on with a message: vLLM's streams do not ask whether its prompt ended the reasoning.
    """
    rows = [(one, *row) for one in _read(vllm_recordings) for use in _last(one) for row in _parts(use)]
    told = [(one, part, whole) for one, name, part, whole in rows if name == "reasoning_tokens"]
    only_if(told, "no answer tells how many of its tokens are reasoning")
    wrong = [
        f"{one.key}: {part} of {whole} tokens"
        for one, part, whole in told
        for answer in [answer_of(one)]
        if answer and part and part == whole and not _goes_on(one) and _written(answer)
    ]

    assert not wrong, f"answers with text, of which all is reasoning: {listed(wrong)}"


@check("usage.every.running", MUST, spec=SPEC, exchanges=["*"])
def test_running(vllm_recordings: Recordings) -> None:
    """A usage that goes along with a stream grows up to what is billed."""
    streams = [one for one in _read(vllm_recordings) if one.request.streams and _counts_along(one)]
    only_if(streams, "no stream tells its usage as it goes")
    wrong = [f"{one.key}: {fault}" for one in streams if (fault := _standing(one.deltas))]

    assert not wrong, listed(wrong)


@check("usage.every.streamed", MUST, spec="openai:chat-streaming", exchanges=["*"])
def test_streamed(vllm_recordings: Recordings) -> None:
    """Asked for usage, a stream tells it, whatever else was asked."""
    streams = [one for one in _read(vllm_recordings) if one.request.streams and _wanted(one)]
    only_if(streams, "no stream was asked for its usage")
    observe("streams asked for their usage", len(streams))
    wrong = [one.key for one in streams if not any(usages(one))]

    assert not wrong, f"no usage in {listed(wrong)}"


def _wanted(one: Recording) -> bool:
    """Whether usage was asked for, of a route on which it is told only then."""
    options = (one.request.json or {}).get("stream_options")
    asked = isinstance(options, dict) and bool(options.get("include_usage"))
    return asked and one.request.path in (CHAT, COMPLETIONS)


def _read(recordings: Recordings) -> list[Recording]:
    found = [one for one in recordings.of("") if one.request.path.partition("?")[0] in ROUTES]
    return [one for one in found if answer_of(one)]


def _parts(usage: dict[str, Any]) -> Iterator[tuple[str, int, int]]:
    """Name, count and whole of every part that a usage tells."""
    for details, name, whole in PARTS:
        part = (usage.get(details) or {}).get(name)
        if isinstance(part, int) and isinstance(usage.get(whole), int):
            yield name, part, usage[whole]


def _counts_along(one: Recording) -> bool:
    """Whether a stream of one choice tells its usage as it goes; of several each tells its own."""
    asked = one.request.json or {}
    along = bool((asked.get("stream_options") or {}).get("continuous_usage_stats"))
    alone = not _several(asked) and not _echoes(one)
    return one.request.path in (CHAT, COMPLETIONS) and along and alone


def _echoes(one: Recording) -> bool:
    """Whether the text of an answer begins with what was sent, which nobody is billed for as an answer."""
    return bool((one.request.json or {}).get("echo"))


def _goes_on(one: Recording) -> bool:
    """Whether an answer begins within what was sent: an echo, or a message that it goes on with."""
    return _echoes(one) or bool((one.request.json or {}).get("continue_final_message"))


def _written(answer: Answer) -> bool:
    """Whether an answer has text beside its reasoning."""
    return any(choice.content.strip() for choice in answer.choices)


def _several(asked: dict[str, Any]) -> bool:
    """Whether an answer has several choices."""
    prompts = asked.get("prompt")
    return (asked.get("n") or 1) > 1 or (isinstance(prompts, list) and not all(map(_is_id, prompts)))


def _settled(one: Recording) -> list[dict[str, Any]]:
    """What an answer tells of its usage; of several choices that are streamed the last alone is of all."""
    told = [*usages(one)]
    return told[-1:] if one.request.streams and _several(one.request.json or {}) else told


def _last(one: Recording) -> list[dict[str, Any]]:
    """The usage of a whole answer, of text that it made itself: a stream's begin may be reasoning alone."""
    return [*usages(one)][-1:] if not (one.request.json or {}).get("echo") else []


def _is_id(part: object) -> bool:
    return isinstance(part, int)


def _standing(parts: Sequence[dict[str, Any]]) -> str:
    """How a running usage does not go along with its stream; empty where it does."""
    said, told, prompts, ended = False, 0, set(), -1
    for part in parts:
        rows = part.get("choices") or ()
        said = said or any(map(_says, rows))
        usage = part.get("usage")
        if not usage:
            continue
        if any(row.get("finish_reason") for row in rows):
            ended = usage["completion_tokens"]
        prompts.add(usage["prompt_tokens"])
        if usage["completion_tokens"] < told:
            return f"{usage['completion_tokens']} tokens after {told}"
        told = usage["completion_tokens"]
        if said and not told:
            return "no tokens, and text was sent"
        if usage["total_tokens"] != usage["prompt_tokens"] + told:
            return f"a total of {usage['total_tokens']}, of {usage['prompt_tokens']} and {told}"
    if -1 < ended < told:
        return f"{ended} tokens at the end of the text, {told} are billed"
    return f"prompts of {sorted(prompts)} tokens" if len(prompts) > 1 else ""


def _says(choice: dict[str, Any]) -> bool:
    words = choice.get("delta") or choice
    return any(
        words.get(name) for name in ("content", "text", "reasoning", "reasoning_content", "tool_calls")
    )
