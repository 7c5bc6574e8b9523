"""A picture is answered whatever its size and place, again and beside others, and counted."""

from __future__ import annotations

import re

from pytest_vllm import (
    CAPABILITY,
    MUST,
    SHOULD,
    Recording,
    Recordings,
    Server,
    check,
    need,
    observe,
    only_if,
    text_of,
    unexpected,
)

INPUTS = "vllm:features/multimodal_inputs/"
SIZES = "fault:vllm-project/vllm/issues/8369"
TOGETHER = "fault:vllm-project/vllm/issues/43473"
AGAIN = "fault:vllm-project/vllm/issues/7797"
SEVERAL = "fault:vllm-project/vllm/pull/28525"
NEEDS = ("chat", "vision")
#: Words of a refusal that is for lack of room: one of the pictures is large.
LIMITS = re.compile(r"context|length|longer|too (?:long|large)|at most|max", re.IGNORECASE)


def prompt_tokens(recording: Recording) -> int:
    """Tokens of the prompt as `usage` reports them. Raises Undecided for a request that was not answered."""
    found: int = recording.ok["usage"]["prompt_tokens"]
    return found


@check("vision.answered", MUST, spec=INPUTS, needs=NEEDS)
def test_answered(vision_image: Recording) -> None:
    """A question with a picture is answered."""
    vision_image.answered()
    status = vision_image.status
    assert status == 200, f"answered with {status}: {vision_image.text[:200]}"
    written = vision_image.ok["usage"]["completion_tokens"]

    assert written > 0, "the answer has no tokens"


@check("vision.large", MUST, spec=INPUTS, needs=NEEDS)
def test_large(vision_image: Recording, vision_large: Recording) -> None:
    """A request of a megabyte and more is answered: photographs are as large."""
    need(vision_image.status == 200, "a small one is not answered")
    vision_large.answered()

    assert vision_large.status == 200, f"answered with {vision_large.status}: {vision_large.text[:200]}"


@check("vision.sizes.answered", MUST, spec=SIZES, needs=NEEDS, exchanges=("vision.sized[",))
def test_sizes(vllm_recordings: Recordings) -> None:
    """Pictures of many sizes are all answered."""
    sent = [one for one in vllm_recordings.of("vision.sized[") if one.request.path]
    need(sent, "no picture was sent")
    wrong = unexpected(sent)

    assert not wrong, "; ".join(wrong)


@check("vision.together.answered", MUST, spec=TOGETHER, needs=NEEDS, exchanges=("vision.together[",))
def test_together(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Four pictures at once are all answered."""
    only_if(vllm_server.max_num_seqs != 1, "the server takes one request at a time")
    sent = [one for one in vllm_recordings.of("vision.together[") if one.request.path]
    need(sent, "no picture was sent")
    wrong = unexpected(sent)
    assert not wrong, "; ".join(wrong)
    beside = sum(one.sent < other.sent + other.seconds for one in sent[1:] for other in sent[:1])
    observe("sent while the first was being answered", f"{beside} of {len(sent) - 1}")

    need(beside, "they were sent one after the other: record more than one request at a time")


@check("vision.again.answered", MUST, spec=AGAIN, needs=NEEDS)
def test_again(vision_image: Recording, vision_again: Recording, vision_third: Recording) -> None:
    """The same picture is answered a second and a third time."""
    need(vision_image.status == 200, "the first time it was not answered")
    statuses = [one.status or one.error for one in (vision_again, vision_third)]

    assert statuses == [200, 200], f"then {statuses}: {vision_again.text[:200]}"


@check("vision.again.same-usage", MUST, spec=AGAIN, needs=NEEDS)
def test_same_usage(vision_image: Recording, vision_again: Recording, vision_third: Recording) -> None:
    """The same picture is billed the same each time, cached or not."""
    counts = [prompt_tokens(one) for one in (vision_image, vision_again, vision_third)]

    assert len(set(counts)) == 1, f"prompt tokens {counts}"


@check("vision.places.answered", MUST, spec=INPUTS, needs=NEEDS)
def test_places(vision_image: Recording, vision_before: Recording) -> None:
    """A picture may stand before the text as well as behind it."""
    need(vision_image.status == 200, "behind the text it was not answered")
    vision_before.answered()

    assert vision_before.status == 200, f"before it: {vision_before.status}: {vision_before.text[:200]}"


@check("vision.behind.answered", MUST, spec="fault:vllm-project/vllm/issues/18414", needs=NEEDS)
def test_behind(vision_image: Recording, vision_behind: Recording) -> None:
    """A picture may stand behind a text that is read in several steps."""
    need(vision_image.status == 200, "behind a short text it was not answered")
    vision_behind.answered()

    assert vision_behind.status == 200, f"answered with {vision_behind.status}: {vision_behind.text[:200]}"


@check("vision.several.answered", MUST, spec=SEVERAL, needs=NEEDS)
def test_several(vision_image: Recording, vision_pair: Recording, vision_several: Recording) -> None:
    """Two pictures in one request are answered, and both are counted."""
    need(vision_image.status == 200, "one alone was not answered")
    refused = 400 <= (vision_several.status or 0) < 500
    excused = vision_pair.status != 200 or LIMITS.search(vision_several.text)
    only_if(not refused or not excused, f"two are refused: {vision_several.text[:80]}")
    wrong = unexpected([vision_several])
    assert not wrong, "; ".join(wrong)
    one, both = prompt_tokens(vision_image), prompt_tokens(vision_several)

    assert both > one, f"{one} prompt tokens with one picture, {both} with two"


@check("vision.usage.counted", MUST, spec=INPUTS, needs=NEEDS)
def test_counted(vision_text: Recording, vision_image: Recording, vision_before: Recording) -> None:
    """A picture has prompt tokens, before the text as well as behind it."""
    plain = prompt_tokens(vision_text)
    counts = {one.key: prompt_tokens(one) for one in (vision_image, vision_before)}
    observe("prompt tokens", f"{plain} without a picture, {counts['vision.image']} with one")
    wrong = {key: count for key, count in counts.items() if count <= plain}

    assert not wrong, f"{plain} prompt tokens without a picture, with one {wrong}"


@check("vision.usage.sizes", MUST, spec=INPUTS, needs=NEEDS, exchanges=("vision.sized[",))
def test_counted_sizes(vision_text: Recording, vllm_recordings: Recordings) -> None:
    """A picture of any size has prompt tokens."""
    plain = prompt_tokens(vision_text)
    answered = [one for one in vllm_recordings.of("vision.sized[") if one.status == 200]
    need(answered, "no picture was answered")
    counts = {one.key: prompt_tokens(one) for one in answered}
    wrong = {key: count for key, count in counts.items() if count <= plain}

    assert not wrong, f"{plain} prompt tokens without a picture, with one {wrong}"


@check("vision.stream.same-usage", MUST, spec=INPUTS, needs=(*NEEDS, "stream"))
def test_streamed(vision_image: Recording, vision_stream: Recording) -> None:
    """Streamed, a picture is billed as it is otherwise."""
    whole = prompt_tokens(vision_image)
    vision_stream.answered()
    status = vision_stream.status
    assert status == 200, f"answered with {status}: {vision_stream.text[:200]}"
    usages = [chunk["usage"] for chunk in vision_stream.deltas if chunk.get("usage")]
    need(usages, "the stream gives no usage")

    assert usages[-1]["prompt_tokens"] == whole, f"{usages[-1]['prompt_tokens']} prompt tokens, else {whole}"


@check(
    "vision.colours.named",
    SHOULD,
    spec=INPUTS,
    family=CAPABILITY,
    needs=NEEDS,
    exchanges=("vision.named[",),
)
def test_colours(vllm_recordings: Recordings) -> None:
    """Of four one-coloured pictures at least two get their colour's name."""
    answers = {
        one.key.partition("[")[2].rstrip("]"): text_of(one.ok["choices"][0]).lower()
        for one in vllm_recordings.of("vision.named[")
    }
    named = [colour for colour, text in answers.items() if colour in text]
    observe("colours named", ", ".join(named))

    assert 2 * len(named) >= len(answers), f"{len(named)} of {len(answers)}: {answers}"
