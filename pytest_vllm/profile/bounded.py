"""Files that people hand over, read within limits: regular files or a pipe that speaks, of a bounded size."""

from __future__ import annotations

import os
import select
import stat
import time
from typing import TYPE_CHECKING

from pytest_vllm.profile.errors import ProfileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Bytes of a file that describes a deployment. The largest rendered charts, definitions included, have 2 MiB.
MOST = 4 * 2**20
#: Seconds for which a pipe may stay silent, and that it may take altogether.
SILENCE, LONGEST = 60.0, 300.0
_STREAMS = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
#: First bytes -> what such a file is.
_MAGIC = {
    b"\x7fELF": "a program (ELF)",
    b"PK\x03\x04": "a zip archive",
    b"\x1f\x8b": "a gzip archive",
    b"\xfd7zXZ": "an xz archive",
    b"(\xb5/\xfd": "a zstd archive",
    b"%PDF": "a PDF",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GGUF": "a model's weights (GGUF)",
    b"SQLite format 3": "a SQLite database",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}


class Unreadable(ProfileError):  # noqa: N818 - what a person has, not what broke
    """A file that is not read: `str()` is the reason, without the file's name."""


def read_bounded(path: Path, most: int = MOST) -> str:
    """The UTF-8 text of a file, line ends and byte order mark made plain.

    Raises Unreadable for what is not text of at most `most` bytes: a folder, a pipe nobody writes to, a
    binary. Opening never blocks.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise Unreadable(f"cannot be read: {getattr(error, 'strerror', None) or error}") from error
    try:
        kind = os.fstat(descriptor).st_mode
        stream = str(path).startswith(_STREAMS)
        if stat.S_ISDIR(kind):
            raise Unreadable("is a folder; name a file in it")
        if not stat.S_ISREG(kind) and not (stream and stat.S_ISFIFO(kind)):
            raise Unreadable("is not a regular file; write its content to one, or pipe it in: -")
        return decoded(read_descriptor(descriptor, most))
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from error
    finally:
        os.close(descriptor)


def read_descriptor(descriptor: int, most: int = MOST, silence: float = SILENCE) -> bytes:
    """All bytes of an open file or pipe. Raises Unreadable for too many of them, and for a silent pipe."""
    parts, size = [], 0
    for part in _parts(descriptor, silence):
        parts.append(part)
        size += len(part)
        if size > most:
            raise Unreadable(f"holds more than {most / 2**20:g} MiB; give the part of it that starts vLLM")
    return b"".join(parts)


def _parts(descriptor: int, silence: float) -> Iterator[bytes]:
    until = time.monotonic() + LONGEST
    while time.monotonic() < until:
        ready, _, _ = select.select([descriptor], [], [], silence)
        if not ready:
            raise Unreadable(f"nothing was written to it for {silence:g} s; what feeds it?")
        part = os.read(descriptor, 2**16)
        if not part:
            return
        yield part
    raise Unreadable(f"was still being written after {LONGEST:g} s; write it to a file first")


def decoded(raw: bytes) -> str:
    """The text of bytes. Raises Unreadable for what is not UTF-8 text, with what it looks like."""
    kind = next((name for magic, name in _MAGIC.items() if raw.startswith(magic)), "")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        said = f"it looks like {kind}" if kind else f"byte {error.start}"
        raise Unreadable(f"not UTF-8 text ({said})") from error
    if kind or "\0" in text:
        said = f"it looks like {kind}" if kind else f"a NUL at byte {raw.index(0)}"
        raise Unreadable(f"not a text file ({said})")
    return text.replace("\r\n", "\n")


def depth(value: object, most: int) -> int:
    """How deep lists and tables are nested, `most` + 1 at most. Iterative: depth is what is in doubt."""
    level, found = [value], 0
    while level and found <= most:
        inner: list[object] = []
        for one in level:
            inner += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        level = [one for one in inner if isinstance(one, dict | list)]
        found += 1
    return found
