"""Reasoning in shapes that models produce and nobody wants: nothing is lost, and nothing made of them."""

from __future__ import annotations

from pytest_vllm import MUST, SHOULD, Case, Recording, Recordings, check, listed, need, short

from .answers import Said, said, squeezed
from .forbidden import ODD_SHAPES, sayable
from .tools import UNKNOWN

SPEC = "vllm:features/reasoning_outputs"
NEEDS = ("chat", "scripted", "reasoning")
STREAM = (*NEEDS, "stream")

#: Words that must come back, by shape: of the reasoning, of the content; in either where it is not decided.
WORDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "unclosed": ((), (), ("one two",)),
    "empty": ((), ("Done.",), ()),
    "blank": ((), ("Done.",), ()),
    "edges": (("one",), ("two",), ()),
    "twice": (("one",), ("two", "four"), ("three",)),
    "call-inside": (("one",), (), ("two", "Done.")),
    "call-unclosed": ((), (), ("one",)),
}


def lost(shape: str, found: Said) -> list[str]:
    """What of a shape did not come back where it belongs."""
    thoughts, content, either = WORDS[shape]
    wrong = [f"error {one[:100]}" for one in found.errors]
    wrong += [
        f"{word!r} is not in the reasoning {short(found.thoughts)}"
        for word in thoughts
        if word not in found.thoughts
    ]
    wrong += [
        f"{word!r} is not in the content {short(found.content)}"
        for word in content
        if word not in found.content
    ]
    wrong += [f"{word!r} is lost" for word in either if word not in f"{found.thoughts} {found.content}"]
    return wrong


@check("scripted.shape.whole", MUST, spec=SPEC, needs=NEEDS)
def test_whole(scripted_shape: Case, scripted_shape_whole: Recording, scripted_forbidden: Recording) -> None:
    """A whole answer loses no reasoning and no text, in whatever shape reasoning is."""
    sayable(scripted_shape_whole, scripted_forbidden, may_be=scripted_shape.id in ODD_SHAPES)
    wrong = lost(scripted_shape.id, said(scripted_shape_whole))

    assert not wrong, listed(wrong)


@check("scripted.shape.stream", MUST, spec=SPEC, needs=STREAM)
def test_stream(
    scripted_shape: Case, scripted_shape_stream: Recording, scripted_forbidden: Recording
) -> None:
    """A stream loses no reasoning and no text, in whatever shape reasoning is."""
    sayable(scripted_shape_stream, scripted_forbidden, may_be=scripted_shape.id in ODD_SHAPES)
    wrong = lost(scripted_shape.id, said(scripted_shape_stream))

    assert not wrong, listed(wrong)


@check("scripted.shape.alike", SHOULD, spec=SPEC, needs=STREAM)
def test_alike(
    scripted_shape: Case, scripted_shape_whole: Recording, scripted_shape_stream: Recording
) -> None:
    """Reasoning in an odd shape is told apart the same way, streamed or whole."""
    del scripted_shape
    whole, stream = said(scripted_shape_whole), said(scripted_shape_stream)
    need(not whole.errors + stream.errors, "the server broke one of the answers off")
    one, other = (
        (squeezed(each.thoughts), squeezed(each.content), len(each.calls)) for each in (whole, stream)
    )

    assert one == other, f"(reasoning, content, calls) whole {one}, streamed {other}"


@check(
    "scripted.shape.call-in-thought",
    SHOULD,
    spec=SPEC,
    needs=STREAM,
    exchanges=("scripted.shape.whole[", "scripted.shape.stream["),
)
def test_call_in_thought(vllm_recordings: Recordings) -> None:
    """A call that stands within reasoning is reasoning, and is not made."""
    told = [
        *vllm_recordings.of("scripted.shape.whole[call-"),
        *vllm_recordings.of("scripted.shape.stream[call-"),
    ]
    answered = [one for one in told if one.status == 200]
    need(answered, "no reasoning with a call in it was answered")
    wrong = [f"{one.key}: {call.name} {call.arguments}" for one in answered for call in said(one).calls]

    assert not wrong, listed(wrong)


@check("scripted.unknown.whole", MUST, spec="vllm:features/tool_calling", needs=("chat", "scripted"))
def test_unknown(scripted_unknown_whole: Recording, scripted_forbidden: Recording) -> None:
    """A call of a tool that nobody offered is not lost in a whole answer."""
    sayable(scripted_unknown_whole, scripted_forbidden)
    found = said(scripted_unknown_whole)

    assert UNKNOWN in [call.name for call in found.calls] or UNKNOWN in found.content, f"{found}"


@check(
    "scripted.unknown.stream", MUST, spec="vllm:features/tool_calling", needs=("chat", "scripted", "stream")
)
def test_unknown_stream(scripted_unknown_stream: Recording, scripted_forbidden: Recording) -> None:
    """A call of a tool that nobody offered is not lost in a stream."""
    sayable(scripted_unknown_stream, scripted_forbidden)
    found = said(scripted_unknown_stream)

    assert UNKNOWN in [call.name for call in found.calls] or UNKNOWN in found.content, f"{found}"
