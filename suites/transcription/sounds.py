"""Recordings made here, and forms that send them."""

from __future__ import annotations

import math
import struct
from functools import cache
from typing import Any

from pytest_vllm import Request, Server

PATH = "/v1/audio/transcriptions"
BOUNDARY = "pytest-vllm-form"
#: Samples a second: what telephones have, which any server reads.
RATE = 8000
#: Pitches of the tones, one a third of a second.
PITCHES = (220, 277, 330, 247, 294, 196, 262)


@cache
def _melody() -> bytes:
    """Every pitch once, as samples."""
    length = len(PITCHES) * RATE // 3
    samples = (
        6000
        * math.sin(2 * math.pi * PITCHES[at * 3 // RATE % len(PITCHES)] * at / RATE)
        * abs(math.sin(3 * math.pi * at / RATE))
        for at in range(length)
    )
    return struct.pack(f"<{length}h", *map(int, samples))


@cache
def wave(seconds: float, more: int = 0) -> bytes:
    """A file of so many seconds: tones that swell and fade, as a voice does, of one channel, 16 bits.

    `more` bytes behind them are of a kind that readers pass over.
    """
    size = 2 * round(seconds * RATE)
    data = (_melody() * (size // len(_melody()) + 1))[:size]
    rest = struct.pack("<4sI", b"JUNK", more) + bytes(more) if more else b""
    room = 36 + len(data) + len(rest)
    head = struct.pack("<4sI4s4sIHHIIHH", b"RIFF", room, b"WAVE", b"fmt ", 16, 1, 1, RATE, 2 * RATE, 2, 16)
    return head + struct.pack("<4sI", b"data", len(data)) + data + rest


def form(fields: dict[str, Any], file: bytes | None) -> str:
    """The text of a form; bytes that are no text as lone surrogates, which stand for them."""
    parts = [
        f'--{BOUNDARY}\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    if file is not None:
        head = 'content-disposition: form-data; name="file"; filename="sound.wav"\r\ncontent-type: audio/wav'
        parts.append(f"--{BOUNDARY}\r\n{head}\r\n\r\n".encode() + file + b"\r\n")
    return b"".join([*parts, f"--{BOUNDARY}--\r\n".encode()]).decode("utf-8", "surrogateescape")


def heard(
    server: Server, file: bytes | None, *, expect: int | None = 200, path: str = PATH, **fields: Any
) -> Request:
    """A recording, to be written down greedily."""
    given = {"model": server.model, "temperature": 0, "language": "en", **fields}
    content = form(given, file)
    headers = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
    return Request("POST", path, content=content, headers=headers, expect=expect)
