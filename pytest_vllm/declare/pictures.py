"""Pictures made at run time, as PNG in a data URL: what every processor reads, and nothing is fetched."""

from __future__ import annotations

import base64
import struct
import zlib

GREY = (128, 128, 128)


def picture(width: int, height: int, colour: tuple[int, int, int] = GREY) -> str:
    """A one-coloured picture as a data URL; sizes in pixels, the colour as red, green, blue to 255."""
    return f"data:image/png;base64,{base64.b64encode(png(width, height, colour)).decode()}"


def png(width: int, height: int, colour: tuple[int, int, int] = GREY) -> bytes:
    """The same as the bytes of a file: 8 bits a sample, no filters."""
    rows = zlib.compress((b"\0" + bytes(colour) * width) * height)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = {b"IHDR": header, b"IDAT": rows, b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(_part(*part) for part in parts.items())


def _part(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
