"""Recordings and forms for the simulator that transcribes."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

RATE = 8000
BOUNDARY = "a-boundary-of-a-form"


def wav(words: str, *, seconds: float = 1.0, loud: bool = True) -> bytes:
    """A tone, or silence, with the words in the file's comment."""
    height = 8000 if loud else 0
    count = int(RATE * seconds)
    samples = struct.pack(f"<{count}h", *(int(height * math.sin(at / 9)) for at in range(count)))
    comment = words.encode() + b"\0"
    comment += b"\0" * (len(comment) % 2)
    parts = [(b"fmt ", struct.pack("<HHIIHH", 1, 1, RATE, 2 * RATE, 2, 16)), (b"data", samples)]
    parts += [(b"LIST", b"INFO" + _chunk(b"ICMT", comment))] if words else []
    body = b"WAVE" + b"".join(_chunk(name, content) for name, content in parts)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def form(fields: Mapping[str, str | bytes]) -> tuple[bytes, str]:
    """A form, bytes being files; and its content type."""
    lines = []
    for name, value in fields.items():
        file = '; filename="sound.wav"' if isinstance(value, bytes) else ""
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode()
        lines.append(head + (value if isinstance(value, bytes) else value.encode()) + b"\r\n")
    return b"".join(lines) + f"--{BOUNDARY}--\r\n".encode(), f"multipart/form-data; boundary={BOUNDARY}"


def _chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack("<I", len(content)) + content
