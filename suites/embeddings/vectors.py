"""How this suite reads vectors."""

from __future__ import annotations

import base64
import math
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm import Recording, Recordings

Vector = tuple[float, ...]


def answers(recordings: Recordings) -> list[Recording]:
    """Every answer of this suite that holds vectors as numbers."""
    return [
        r
        for r in recordings.of("embeddings.")
        if r.request.path == "/v1/embeddings" and r.status == 200 and not r.key.endswith("base64")
    ]


def rows(recording: Recording) -> list[dict[str, Any]]:
    """The rows of an answer."""
    found = recording.ok.get("data")
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def vector(row: dict[str, Any]) -> Vector:
    """The vector of a row; empty when it is none."""
    found = row.get("embedding")
    if isinstance(found, str):
        raw = base64.b64decode(found)
        return struct.unpack(f"<{len(raw) // 4}f", raw[: len(raw) // 4 * 4])
    good = isinstance(found, list) and all(isinstance(value, int | float) for value in found)
    return tuple(found) if good and found else ()


def vectors(recording: Recording) -> list[Vector]:
    """The vectors of an answer, in its order."""
    return [vector(row) for row in rows(recording)]


def length(values: Sequence[float]) -> float:
    """The length of a vector."""
    return math.sqrt(sum(value * value for value in values))


def likeness(left: Sequence[float], right: Sequence[float]) -> float:
    """The cosine of two vectors; 0 where one of them is null or they differ in size."""
    if len(left) != len(right) or not length(left) or not length(right):
        return 0.0
    return sum(a * b for a, b in zip(left, right, strict=True)) / (length(left) * length(right))
