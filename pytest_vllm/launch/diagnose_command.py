"""`pytest-vllm diagnose LOG`: where a log comes from, and how its diagnosis is printed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from pytest_vllm.launch.diagnosis import Sure
from pytest_vllm.launch.places import Place, place_of
from pytest_vllm.profile.errors import ProfileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_vllm.launch.diagnosis import Diagnosis

#: Bytes of a log that are read: its begin and its end.
_HEAD, _TAIL, _PIECE = 16 * 1024 * 1024, 48 * 1024 * 1024, 1024 * 1024
_PATIENCE = 60


def read_log(source: str) -> list[str]:
    """The lines of a log. Raises ProfileError when it cannot be read.

    Args:
        source: a file, `-` for stdin, `container:NAME` or `unit:NAME`.
    """
    kind, _, name = source.partition(":")
    if source == "-":
        return lines_of(sys.stdin.buffer)
    if kind == "container" and name:
        return _container(name)
    if kind == "unit" and name:
        return said(("journalctl", "--no-pager", "--output=cat", f"--unit={name}"))
    path = Path(source)
    if not path.is_file():
        text = f"no log file {source}: name a file, - for stdin, container:NAME or unit:NAME"
        raise ProfileError(text)
    try:
        with path.open("rb") as file:
            return lines_of(file)
    except OSError as error:
        raise ProfileError(f"{source} cannot be read: {error.strerror}") from error


def lines_of(stream: IO[bytes], head: int = _HEAD, tail: int = _TAIL) -> list[str]:
    """The lines of a log of any length: `head` bytes of its begin and about `tail` of its end, in bytes.

    Lines between are empty, so that every line has its number.
    """
    begin = stream.read(head)
    end: deque[bytes] = deque()
    size = skipped = 0
    while piece := stream.read(min(_PIECE, tail)):
        end.append(piece)
        size += len(piece)
        if size - len(end[0]) >= tail:
            left_out = end.popleft()
            size -= len(left_out)
            skipped += left_out.count(b"\n")
    return _lines(b"".join((begin, b"\n" * skipped, *end)))


def rendered(found: Diagnosis) -> Iterator[str]:
    """The diagnosis for a terminal."""
    if found.sure is Sure.NO_FAULT:
        yield str(Sure.NO_FAULT)
    else:
        yield f"{found.sure}: {found.cause}" if found.cause else f"{found.sure}"
        yield f"  {found.means}"
    for number, text in found.quoted:
        yield f"  line {number}: {text}"
    for step in found.tries:
        yield f"  try: {step}"
    for fault in found.known:
        yield f"known fault: {fault.id} ({fault.thread})"
        yield f"  {fault.title}: {fault.effect}"
        yield f"  try: {fault.way_round}"
    for one in found.warnings:
        yield f"warning: {one.id} (line {one.number})"
        yield f"  {one.means}"
        for step in one.tries:
            yield f"  try: {step}"


def place_given(source: str, lines: Sequence[str]) -> Place:
    """Where the server runs, as far as the source, beside the log, says so."""
    kind, _, name = source.partition(":")
    if kind == "unit" and name:
        return place_of(lines) or Place.PROCESS
    if kind == "container" and name and not (shutil.which("docker") and shutil.which("podman")):
        return Place.DOCKER if shutil.which("docker") else Place.PODMAN
    return Place.UNKNOWN


def _container(name: str) -> list[str]:
    first: ProfileError | None = None
    for engine in ("docker", "podman"):
        try:
            return said((engine, "logs", name))
        except ProfileError as error:
            first = first or error
    raise first or ProfileError(f"no container {name}")


def said(
    words: Sequence[str], patience: float = _PATIENCE, head: int = _HEAD, tail: int = _TAIL
) -> list[str]:
    """The lines that a program writes, of any length, as `lines_of` reads them.

    Args:
        words: the program and its arguments.
        patience: seconds until it is ended.
        head: bytes of the begin that are read.
        tail: about that many bytes of the end.

    Raises ProfileError when it is missing, fails or does not end in time.
    """
    program = shutil.which(words[0])
    if program is None:
        raise ProfileError(f"{words[0]} is not installed here: save the log as a file, and name that")
    with (
        subprocess.Popen(  # noqa: S603 - a list, no shell
            [program, *words[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as running
    ):
        late = threading.Event()
        clock = threading.Timer(patience, _end, (running, late))
        clock.start()
        try:
            lines = lines_of(cast("IO[bytes]", running.stdout), head, tail)
            running.wait()
        finally:
            clock.cancel()
    if late.is_set():
        raise ProfileError(f"{' '.join(words)} did not answer within {patience:g} s")
    if running.returncode:
        last = next((line.strip() for line in reversed(lines) if line.strip()), str(running.returncode))
        raise ProfileError(f"{' '.join(words)} failed: {last}")
    return lines


def _end(running: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    running.kill()


def _lines(content: bytes) -> list[str]:
    return content.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")
