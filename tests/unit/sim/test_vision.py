"""Pictures: read, counted as Qwen's processors count them, told apart, and refused as vLLM refuses them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.declare.pictures import picture, png
from pytest_vllm.sim.errors import ApiError
from pytest_vllm.sim.vision import Picture, Vision, read

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.sim.client import Client

VISION = Vision(32, 65_536, 16_777_216)
SEES = ("--sim-model", "qwen35-35b-a3b-fp8", "--enable-prompt-tokens-details", "--block-size", "16")
RED, GREEN = (255, 0, 0), (0, 128, 0)
#: What transformers 5's `smart_resize` of qwen2_vl gives for such sides and areas.
COUNTED = [
    (32, 32, 64),
    (100, 200, 72),
    (336, 336, 100),
    (300, 500, 144),
    (640, 480, 300),
    (1920, 1080, 2040),
    (5000, 5000, 16384),
    (1, 1, 64),
    (640, 4, 102),
]


@pytest.mark.parametrize(("width", "height", "tokens"), COUNTED)
def test_sizes_are_counted_as_transformers_does(width: int, height: int, tokens: int) -> None:
    assert VISION.tokens(Picture(width, height, "")) == tokens


def test_a_picture_of_the_suites_is_read() -> None:
    assert read(picture(30, 20, RED)) == Picture(30, 20, "red")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("data:image/png;base64,AAAA", "cannot identify image file"),
        ("data:image/png;base64," + base64.b64encode(png(64, 64)[:60]).decode(), "image file is truncated"),
        ("data:image/png;base64,A", "Incorrect padding|base64"),
        ("data:image/png,AAAA", "Only base64"),
        ("http://127.0.0.1:9/a.png", "allowed domains"),
        ("ftp://somewhere/a.png", "HTTP, data or file"),
    ],
)
def test_what_is_no_picture_is_refused(url: str, words: str) -> None:
    with pytest.raises(ApiError, match=words):
        read(url)


def test_a_strip_is_refused() -> None:
    with pytest.raises(ApiError, match="aspect ratio must be smaller than 200, got 320"):
        VISION.tokens(Picture(640, 2, ""))


def asked(client: Client, *urls: str, text: str = "Hi") -> Any:
    """The answer to a chat with pictures."""
    shown = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    content = [{"type": "text", "text": text}, *shown]
    kwargs = {"enable_thinking": False}
    body = {"messages": [{"role": "user", "content": content}], "chat_template_kwargs": kwargs}
    return client.ask("POST", "/v1/chat/completions", {**body, "temperature": 0, "max_tokens": 20})


def test_usage_counts_pictures(simulated: Callable[..., Client]) -> None:
    client = simulated(*SEES)
    plain, seen = asked(client).json["usage"], asked(client, picture(640, 480)).json["usage"]

    # its marks and the line break before it, too
    assert seen["prompt_tokens"] - plain["prompt_tokens"] == 300 + 3
    assert seen["prompt_tokens_details"]["multimodal_tokens"] == {"image": 300}
    assert plain["prompt_tokens_details"]["multimodal_tokens"] is None


def test_pictures_of_one_size_share_no_prefix(simulated: Callable[..., Client]) -> None:
    client = simulated(*SEES)
    cached = [
        asked(client, picture(2560, 1440, colour)).json["usage"]["prompt_tokens_details"]["cached_tokens"]
        for colour in (RED, RED, GREEN)
    ]

    assert cached[0] == cached[2] == 0
    assert cached[1] > 0


def test_the_colour_is_told(simulated: Callable[..., Client]) -> None:
    answer = asked(simulated(*SEES), picture(64, 64, GREEN), text="What colour is this?")

    assert answer.json["choices"][0]["message"]["content"] == "The colour is green."


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--language-model-only",), "At most 0 image(s)"),
        (("--limit-mm-per-prompt", '{"image": 1}'), "At most 1 image(s) may be provided in one prompt. Set"),
    ],
)
def test_more_pictures_than_allowed_are_refused(
    simulated: Callable[..., Client], flags: tuple[str, ...], words: str
) -> None:
    answer = asked(simulated(*SEES, *flags), picture(8, 8), picture(8, 8))

    assert answer.status == 400
    assert words in answer.body.decode()
    assert asked(simulated(*SEES, *flags)).status == 200


def test_a_model_that_sees_nothing_refuses(sim: Client) -> None:
    answer = asked(sim, picture(8, 8))

    assert answer.status == 400
    assert "is not a multimodal model" in answer.body.decode()
