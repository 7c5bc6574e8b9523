"""A picture that cannot be read is the client's mistake, and the server goes on seeing."""

from __future__ import annotations

from pytest_vllm import MUST, SHOULD, Case, Recording, Recordings, check, need, only_if

INPUTS = "vllm:features/multimodal_inputs/"
NEEDS = ("chat", "vision")


@check("vision.cut.refused", MUST, spec=INPUTS, needs=NEEDS)
def test_cut(vision_cut: Recording) -> None:
    """A picture whose second half is missing is refused as the client's mistake."""
    vision_cut.answered()
    status = vision_cut.status or 0

    assert 400 <= status < 500, f"answered with {status}: {vision_cut.text[:200]}"


@check("vision.odd.survived", MUST, spec=INPUTS, needs=NEEDS)
def test_odd(picture_odd: Case, vision_odd: Recording) -> None:
    """A picture of an odd shape is served or refused, but breaks nothing."""
    vision_odd.answered()
    status = vision_odd.status or 0
    shape = f"{picture_odd['width']} x {picture_odd['height']} pixels"

    assert status == 200 or 400 <= status < 500, f"{shape}: {status}: {vision_odd.text[:200]}"


@check("vision.alive", MUST, spec=INPUTS, needs=NEEDS, exchanges=("vision.after-",))
def test_alive(vision_image: Recording, vllm_recordings: Recordings) -> None:
    """After a cut, an odd or a refused picture a good one is still answered."""
    need(vision_image.status == 200, "a good picture was not answered before")
    sent = [one for one in vllm_recordings.of("vision.after-") if one.request.path]
    need(sent, "no cut or odd picture was answered")
    dead = [f"{one.key}: {one.status or one.error}" for one in sent if one.status != 200]

    assert not dead, f"a picture was sent afterwards and not answered: {'; '.join(dead)}"


@check("vision.address.refused", SHOULD, spec="fault:vllm-project/vllm/issues/21254", needs=NEEDS)
def test_address(security_media_url: Recording) -> None:
    """A picture that cannot be fetched is the client's mistake."""
    security_media_url.answered()
    status = security_media_url.status or 0
    only_if(status != 501, "pictures are fetched from nowhere")

    assert 400 <= status < 500, f"answered with {status}: {security_media_url.text[:160]}"
