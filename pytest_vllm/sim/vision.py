"""What a model that sees makes of a picture: prompt tokens by its size, the colour of its first pixel.

Sizes are counted as Qwen's processors do (transformers, `smart_resize` of qwen2_vl): both sides become
multiples of a token's side, the area is brought between a least and a most.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.errors import ApiError, Invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

START, PAD, END = "<|vision_start|>", "<|image_pad|>", "<|vision_end|>"
#: Pictures that a prompt may have unless `--limit-mm-per-prompt` says otherwise.
LIMIT = 999
#: How many times as long as wide a picture may be.
LONGEST = 200
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
#: Samples of a pixel by PNG's colour type; palettes have one, which is no colour.
_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
COLOURS = {
    "red": (255, 0, 0), "green": (0, 128, 0), "blue": (0, 0, 255), "yellow": (255, 255, 0),
    "black": (0, 0, 0), "white": (255, 255, 255), "grey": (128, 128, 128), "orange": (255, 165, 0),
}  # fmt: skip
Json = dict[str, Any]


@dataclass(frozen=True)
class Picture:
    """A picture that was read. Sizes in pixels."""

    width: int
    height: int
    colour: str


@dataclass(frozen=True)
class Vision:
    """How a model sees: `side` pixels of a token's side, least and most pixels of a picture."""

    side: int
    least: int
    most: int
    limit: int = LIMIT

    def admit(self, count: int) -> None:
        """Refuse more pictures than a prompt may have. Raises Invalid."""
        if count > self.limit:
            text = (
                f"At most {self.limit} image(s) may be provided in one prompt. Set `--limit-mm-per-prompt` "
            )
            raise Invalid(f"{text}to increase this limit.", "image")

    def tokens(self, picture: Picture) -> int:
        """Prompt tokens of a picture, its two marks left out. Raises ApiError for one that is too narrow."""
        height, width, side = picture.height, picture.width, self.side
        ratio = max(height, width) / min(height, width)
        if ratio > LONGEST:
            raise ApiError(f"absolute aspect ratio must be smaller than {LONGEST}, got {ratio}")
        rows, columns = round(height / side), round(width / side)
        if rows * columns * side * side > self.most:
            scale = math.sqrt(height * width / self.most)
            rows, columns = (max(1, math.floor(length / scale / side)) for length in (height, width))
        elif rows * columns * side * side < self.least:
            scale = math.sqrt(self.least / (height * width))
            rows, columns = (math.ceil(length * scale / side) for length in (height, width))
        return rows * columns

    def text(self, url: Any) -> str:
        """What stands for a picture in the prompt. Raises ApiError for one that cannot be read."""
        return f"{START}{PAD * self.tokens(read(url))}{END}"


def pictures(messages: Any) -> Iterator[Json]:
    """The picture parts of messages, in order."""
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") == "image_url":
                yield part


def url_of(part: Json) -> Any:
    """The address of a picture part."""
    found = part.get("image_url")
    return found.get("url") if isinstance(found, dict) else found


def marks(messages: Any) -> tuple[str, ...]:
    """One mark per picture of messages: two prompts that show different ones share no cached prefix."""
    urls = (str(url_of(part)) for part in pictures(messages))
    return tuple(hashlib.sha256(url.encode(errors="replace")).hexdigest()[:16] for url in urls)


def read(url: Any) -> Picture:
    """The picture of a data URL. Raises ApiError as vLLM does; nothing is fetched from anywhere."""
    text = str(url)
    if text.startswith(("http://", "https://")):
        raise ApiError(f"The URL must be from one of the allowed domains: []. Input URL: {text[:80]}")
    head, comma, data = text.partition(",")
    if not (head.startswith("data:") and comma):
        raise ApiError("The URL must be either a HTTP, data or file URL.")
    if not head.endswith(";base64"):
        raise ApiError("Only base64 data URLs are supported for now.")
    try:
        return _png(base64.b64decode(data, validate=True))
    except binascii.Error as error:
        raise ApiError(str(error)) from None


def _png(data: bytes) -> Picture:
    if not data.startswith(_SIGNATURE) or data[12:16] != b"IHDR" or b"IDAT" not in data:
        raise ApiError("Failed to load image: cannot identify image file <_io.BytesIO object>")
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    inflate, pixels, at = zlib.decompressobj(), b"", 8
    while at + 12 <= len(data):
        (size,), name = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        if name == b"IDAT":
            try:
                pixels += inflate.decompress(data[at + 8 : at + 8 + size])
            except zlib.error:
                break
        at += 12 + size
    samples = _SAMPLES.get(kind, 1)
    if len(pixels) < height * (1 + (width * samples * depth + 7) // 8):
        raise ApiError("Failed to load image: image file is truncated")
    return Picture(width, height, _colour(pixels[1 : 1 + samples], kind) if depth == 8 else "")


def _colour(pixel: bytes, kind: int) -> str:
    """The nearest colour's name; of the first pixel, which no filter of PNG changes."""
    seen = tuple(pixel[:3]) if kind in (2, 6) else (pixel[0],) * 3
    return min(COLOURS, key=lambda name: math.dist(COLOURS[name], seen))
