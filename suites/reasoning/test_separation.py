"""Reasoning and answer come apart, each under its own key, in both modes."""

from pytest_vllm import (
    CAPABILITY,
    MUST,
    SHOULD,
    Recording,
    Recordings,
    Server,
    check,
    listed,
    need,
    only_if,
    short,
    unexpected,
)

from .thoughts import (
    appends,
    deltas,
    everything,
    expected_keys,
    marked,
    said,
    thought,
)

SPEC = "vllm:features/reasoning_outputs/"
FAULT = "fault:vllm-project/vllm/issues/46042"
NEEDS = ("reasoning",)
STREAM = ("reasoning", "stream")
#: Everything that thinks on its own terms; what is cut or switched off is judged apart.
AREA = ("reasoning.plain", "reasoning.two", "reasoning.hidden")
ON_PURPOSE = "an append_think parser leaves the reasoning in the content on purpose"
LEAST = 2


@check(
    "reasoning.answered", MUST, spec=SPEC, needs=NEEDS, exchanges=(*AREA, "reasoning.cut", "reasoning.typed")
)
def test_answered(vllm_recordings: Recordings) -> None:
    """A question to a thinking model is answered with 200."""
    prefixes = (*AREA, "reasoning.cut", "reasoning.typed")
    wrong = unexpected(one for prefix in prefixes for one in vllm_recordings.of(prefix))

    assert not wrong, listed(wrong)


@check("reasoning.given", SHOULD, spec=SPEC, family=CAPABILITY, needs=NEEDS)
def test_given(vllm_server: Server, reasoning_plain: Recording) -> None:
    """A question is thought about before it is answered."""
    only_if(not appends(vllm_server), ON_PURPOSE)
    answer = said(reasoning_plain)

    assert answer.thoughts, f"no reasoning; content {short(answer.content)}"


@check("reasoning.key", MUST, spec="fault:vllm-project/vllm/pull/27752", needs=NEEDS)
def test_key(vllm_server: Server, reasoning_plain: Recording) -> None:
    """Reasoning comes under the key of this version."""
    answer = said(reasoning_plain)
    need(answer.thoughts, "there was no reasoning")
    expected = expected_keys(vllm_server)

    assert answer.keys == set(expected), f"reasoning under {sorted(answer.keys)}, not under {expected}"


@check("reasoning.key-stream", MUST, spec="fault:vllm-project/vllm/pull/27752", needs=STREAM)
def test_key_stream(vllm_server: Server, reasoning_plain_stream: Recording) -> None:
    """Streamed reasoning comes under the key of this version."""
    answer = said(reasoning_plain_stream)
    need(answer.thoughts, "there was no reasoning")
    expected = expected_keys(vllm_server)

    assert answer.keys == set(expected), f"reasoning under {sorted(answer.keys)}, not under {expected}"


@check("reasoning.tags.content", MUST, spec=FAULT, needs=NEEDS, exchanges=AREA)
def test_tags_content(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """No tag of reasoning and no control token is in the text of an answer."""
    only_if(not appends(vllm_server), ON_PURPOSE)
    told = [one for one in everything(vllm_recordings, *AREA) if one.content]
    need(told, "no answer holds text")
    wrong = [f"{one.key}: {found} in {short(one.content)}" for one in told if (found := marked(one.content))]

    assert not wrong, listed(wrong)


@check(
    "reasoning.tags.thoughts", MUST, spec="fault:vllm-project/vllm/issues/48748", needs=NEEDS, exchanges=AREA
)
def test_tags_thoughts(vllm_recordings: Recordings) -> None:
    """No tag of reasoning and no control token is in the reasoning."""
    told = [one for one in everything(vllm_recordings, *AREA) if one.thoughts]
    need(told, "no answer holds reasoning")
    wrong = [
        f"{one.key}: {found} in {short(one.thoughts)}" for one in told if (found := marked(one.thoughts))
    ]

    assert not wrong, listed(wrong)


@check(
    "reasoning.content.given",
    MUST,
    spec="fault:QwenLM/Qwen3/issues/1297",
    family=CAPABILITY,
    needs=NEEDS,
    exchanges=AREA,
)
def test_content(vllm_recordings: Recordings) -> None:
    """An answer that the model ended has text, and not reasoning alone."""
    told = [one for one in everything(vllm_recordings, *AREA) if one.ended]
    only_if(told, "the model ended no answer by itself")
    wrong = [
        f"{one.key}: reasoning {short(one.thoughts, 60)}"
        for one in told
        if not one.content.strip() and one.usage.get("completion_tokens", 0) > LEAST
    ]

    assert not wrong, f"finish_reason stop, but no content: {listed(wrong)}"


@check("reasoning.order", MUST, spec="fault:open-webui/open-webui/issues/24697", needs=STREAM)
def test_order(reasoning_plain_stream: Recording) -> None:
    """In a stream all reasoning comes before the text."""
    spoken = [(bool(thought(p)), bool(p.get("content"))) for p in deltas(reasoning_plain_stream)]
    need(any(one for one, _ in spoken), "there was no reasoning")
    first = next((number for number, (_, text) in enumerate(spoken) if text), len(spoken))
    late = sum(one for one, _ in spoken[first + 1 :])

    assert not late, f"{late} deltas of reasoning after the first of the text"


def repeated(whole: Recording, again: Recording) -> None:
    """Undecided when the server does not repeat itself."""
    one, other = said(whole), said(again)
    need(
        (one.thoughts, one.content) == (other.thoughts, other.content),
        "the server does not repeat itself, so its modes can't be compared",
    )


@check("reasoning.parity.thoughts", MUST, spec="fault:vllm-project/vllm/issues/41691", needs=STREAM)
def test_parity_thoughts(
    reasoning_plain: Recording, reasoning_plain_again: Recording, reasoning_plain_stream: Recording
) -> None:
    """The reasoning of a stream is that of the whole answer."""
    repeated(reasoning_plain, reasoning_plain_again)
    whole, stream = said(reasoning_plain).thoughts, said(reasoning_plain_stream).thoughts
    need(whole or stream, "there was no reasoning")

    assert stream == whole, f"streamed {short(stream)}, whole {short(whole)}"


@check("reasoning.parity.content", MUST, spec="fault:vllm-project/vllm/issues/46042", needs=STREAM)
def test_parity_content(
    reasoning_plain: Recording, reasoning_plain_again: Recording, reasoning_plain_stream: Recording
) -> None:
    """The text of a stream is that of the whole answer, beside reasoning."""
    repeated(reasoning_plain, reasoning_plain_again)
    whole, stream = said(reasoning_plain), said(reasoning_plain_stream)
    need(whole.thoughts or stream.thoughts, "there was no reasoning")

    assert stream.content == whole.content, f"streamed {short(stream.content)}, whole {short(whole.content)}"


@check("reasoning.stop.apart", MUST, spec="fault:vllm-project/vllm/issues/51641", needs=STREAM)
def test_stop_apart(
    reasoning_plain: Recording,
    reasoning_plain_again: Recording,
    reasoning_plain_stream: Recording,
    reasoning_stop_stream: Recording,
) -> None:
    """A stop string that never comes leaves reasoning and text of a stream apart."""
    repeated(reasoning_plain, reasoning_plain_again)
    plain, stopped = said(reasoning_plain_stream), said(reasoning_stop_stream)
    need(plain.thoughts, "there was no reasoning")
    told = (plain.thoughts, plain.content)
    need("".join(told) == said(reasoning_plain).thoughts + said(reasoning_plain).content, "the modes differ")

    assert (stopped.thoughts, stopped.content) == told, (
        f"reasoning {short(stopped.thoughts)}, text {short(stopped.content)}; "
        f"without a stop string {short(plain.thoughts)}, {short(plain.content)}"
    )


@check("reasoning.two.apart", MUST, spec=SPEC, needs=NEEDS, exchanges=("reasoning.two",))
def test_two(vllm_recordings: Recordings) -> None:
    """Each of two choices has its own reasoning and its own text."""
    told = [one for one in everything(vllm_recordings, "reasoning.two") if one.ended]
    only_if(told, "the model ended no choice by itself")
    need(any(one.thoughts and one.content for one in told), "no choice came to its end with reasoning")
    wrong = [f"{one.key}: content {short(one.content, 60)}" for one in told if not one.thoughts]

    assert not wrong, f"a choice without reasoning: {listed(wrong)}"


@check(
    "reasoning.after-result",
    MUST,
    spec="fault:vllm-project/vllm/issues/39885",
    needs=("reasoning", "tools", "stream"),
)
def test_after_result(reasoning_after_result: Recording, reasoning_after_result_stream: Recording) -> None:
    """After a tool's result a stream keeps reasoning apart, as the whole answer does."""
    only_if(reasoning_after_result.status != 400, "this template takes no such conversation")
    whole, stream = said(reasoning_after_result), said(reasoning_after_result_stream)
    only_if(whole.thoughts and not whole.content, "the whole answer does not begin with reasoning")
    need(stream.thoughts or stream.content, "the stream said nothing")

    said_so = f"the whole answer thinks {short(whole.thoughts)}"

    assert not stream.content, f"streamed as text: {short(stream.content)}; {said_so}"


@check(
    "reasoning.result.answered-stream",
    MUST,
    spec="fault:vllm-project/vllm/issues/49717",
    needs=("reasoning", "tools", "stream"),
)
def test_result(reasoning_result: Recording, reasoning_result_stream: Recording) -> None:
    """What follows a tool's result is text in a stream, too."""
    only_if(reasoning_result.status != 400, "this template takes no such conversation")
    whole, stream = said(reasoning_result), said(reasoning_result_stream)
    only_if(whole.ended, "the model does not end the whole answer by itself")
    need(whole.content.strip(), "the whole answer does not come to a text")
    need(stream.ended and not stream.called, f"finish_reason {stream.finish!r}")

    assert stream.content.strip(), f"no text; reasoning {short(stream.thoughts)}"
