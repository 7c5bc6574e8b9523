"""What a model that transcribes hears: the length of a WAV file, and the words that its comment holds.

A simulator has no ears. The words are those of the file's comment (`LIST INFO ICMT`, where sound editors keep
notes); without one a sentence that only depends on the samples; silence has no words.
"""

from __future__ import annotations

import random
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_vllm.sim.errors import ApiError
from pytest_vllm.sim.persona.words import sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

UNREADABLE = "Invalid or unsupported audio file."
PCM = 1
#: Samples of sixteen bits that are nearer to nothing than this are silence.
QUIET = 40
#: Words of a segment.
SPOKEN = 8


@dataclass(frozen=True)
class Sound:
    """A recording: seconds, and the words in it."""

    seconds: float
    words: str

    def segments(self) -> list[tuple[float, float, str]]:
        """(begin, end, words) of parts of a few words each, in seconds; none of silence."""
        words = self.words.split()
        parts = [" ".join(words[at : at + SPOKEN]) for at in range(0, len(words), SPOKEN)]
        step = self.seconds / len(parts) if parts else 0.0
        return [(at * step, (at + 1) * step, f" {part}") for at, part in enumerate(parts)]


def hear(content: bytes) -> Sound:
    """A WAV file of sixteen bits a sample. Raises ApiError for anything else."""
    if content[:4] != b"RIFF" or content[8:12] != b"WAVE":
        raise ApiError(UNREADABLE)
    chunks = dict(_chunks(content[12:]))
    head, samples = chunks.get(b"fmt ", b""), chunks.get(b"data")
    if len(head) < 16 or samples is None:
        raise ApiError(UNREADABLE)
    kind, channels, rate, _, _, bits = struct.unpack("<HHIIHH", head[:16])
    if kind != PCM or bits != 16 or not channels or not rate:
        raise ApiError(UNREADABLE)
    seconds = len(samples) / (2 * channels * rate)
    if not seconds:
        raise ApiError(UNREADABLE)
    return Sound(seconds, _words(samples, dict(_chunks(chunks.get(b"LIST", b"")[4:])).get(b"ICMT")))


def _words(samples: bytes, comment: bytes | None) -> str:
    heard = struct.unpack(f"<{len(samples) // 2}h", samples[: len(samples) // 2 * 2])
    if max(heard) < QUIET and min(heard) > -QUIET:
        return ""
    if comment:
        return comment.rstrip(b"\0").decode(errors="replace").strip()
    return sentence(random.Random(zlib.crc32(samples)))  # noqa: S311 - repeatable, not secret


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at + 8 <= len(content):
        name, size = content[at : at + 4], int.from_bytes(content[at + 4 : at + 8], "little")
        yield name, content[at + 8 : at + 8 + size]
        at += 8 + size + size % 2
