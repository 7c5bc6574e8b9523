"""Thoughts in shapes that models produce and nobody wants: nothing is lost, and nothing made of them."""

from __future__ import annotations

from pytest_vllm import MUST, SHOULD, Case, Recording, check

from .answers import Said, listed, said, short, squeezed
from .tools import UNKNOWN

SPEC = "vllm:features/reasoning_outputs"
NEEDS = ("chat", "scripted", "reasoning")
STREAM = (*NEEDS, "stream")

#: Words that must come back, by shape: of the thoughts, of the content; in either where it is not decided.
WORDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "unclosed": ((), (), ("one two",)),
    "empty": ((), ("Done.",), ()),
    "blank": ((), ("Done.",), ()),
    "edges": (("one",), ("two",), ()),
    "twice": (("one",), ("two", "four"), ("three",)),
    "call-inside": (("one", "two"), ("Done.",), ()),
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
    if shape.startswith("call-") and found.calls:
        wrong.append(f"a call within the thoughts is made: {found.calls[0].name} {found.calls[0].arguments}")
    return wrong


@check("scripted.shape.whole", MUST, spec=SPEC, needs=NEEDS)
def test_whole(scripted_shape: Case, scripted_shape_whole: Recording) -> None:
    """A whole answer loses no thought and no text, and makes no call of a thought."""
    wrong = lost(scripted_shape.id, said(scripted_shape_whole))

    assert not wrong, listed(wrong)


@check("scripted.shape.stream", MUST, spec=SPEC, needs=STREAM)
def test_stream(scripted_shape: Case, scripted_shape_stream: Recording) -> None:
    """A stream loses no thought and no text, and makes no call of a thought."""
    wrong = lost(scripted_shape.id, said(scripted_shape_stream))

    assert not wrong, listed(wrong)


@check("scripted.shape.alike", SHOULD, spec=SPEC, needs=STREAM)
def test_alike(
    scripted_shape: Case, scripted_shape_whole: Recording, scripted_shape_stream: Recording
) -> None:
    """Thoughts in an odd shape are told apart the same way, streamed or whole."""
    del scripted_shape
    whole, stream = said(scripted_shape_whole), said(scripted_shape_stream)
    one, other = (
        (squeezed(each.thoughts), squeezed(each.content), len(each.calls)) for each in (whole, stream)
    )

    assert one == other, f"(reasoning, content, calls) whole {one}, streamed {other}"


@check("scripted.unknown.whole", MUST, spec="vllm:features/tool_calling", needs=("chat", "scripted"))
def test_unknown(scripted_unknown_whole: Recording) -> None:
    """A call of a tool that nobody offered is not lost in a whole answer."""
    found = said(scripted_unknown_whole)

    assert UNKNOWN in [call.name for call in found.calls] or UNKNOWN in found.content, f"{found}"


@check(
    "scripted.unknown.stream", MUST, spec="vllm:features/tool_calling", needs=("chat", "scripted", "stream")
)
def test_unknown_stream(scripted_unknown_stream: Recording) -> None:
    """A call of a tool that nobody offered is not lost in a stream."""
    found = said(scripted_unknown_stream)

    assert UNKNOWN in [call.name for call in found.calls] or UNKNOWN in found.content, f"{found}"
