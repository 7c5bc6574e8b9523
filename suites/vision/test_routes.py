"""Pictures over routes other than chat."""

from __future__ import annotations

from pytest_vllm import MUST, Case, Recording, check, only_if

from .test_pictures import prompt_tokens

#: Tokens of a picture below which a lost one can't be told from another notation.
LEAST = 4


@check("vision.routes.counted", MUST, spec="openai:responses/create#input", needs=("chat", "vision"))
def test_counted(
    other_route: Case, vision_image: Recording, vision_pair: Recording, vision_pair_over: Recording
) -> None:
    """Each of two pictures becomes part of the prompt, over other routes as over chat."""
    only_if(vision_pair.status != 400, f"two pictures are refused: {vision_pair.text[:120]}")
    refused = vision_pair_over.status in (400, 404, 422, 501)
    only_if(not refused, f"this route takes no pictures: {vision_pair_over.text[:120]}")
    one, two = prompt_tokens(vision_image), prompt_tokens(vision_pair)
    only_if(two - one >= LEAST, f"a picture weighs {two - one} tokens")
    usage = vision_pair_over.ok["usage"]
    cached = (usage.get("cache_read_input_tokens") or 0) + (usage.get("cache_creation_input_tokens") or 0)
    over = usage["input_tokens"] + cached

    assert abs(over - two) < (two - one) / 2, (
        f"{other_route.id}: {over} prompt tokens with two pictures, over chat {two}, and {one} with one"
    )
