"""Recordings on disk: one file of JSON lines per exchange, readable while others are still being written."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_vllm.wire.recording import dump, load

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_vllm.wire.recording import Recording

SUFFIX = ".jsonl"
#: Bytes of recordings that are kept in memory, and of the largest of them. A gate's have about 20 MiB.
HELD, LARGE = 64 * 1024 * 1024, 1024 * 1024
_PLAIN = re.compile(r"[a-z0-9_][a-z0-9._-]{0,99}")


class RecordingStore:
    """The recordings of one server, by key. Several processes may read while one writes.

    Args:
        folder: made on the first save.
    """

    def __init__(self, folder: Path) -> None:
        """Nothing is read until it is asked for."""
        self.folder = folder
        self._read: dict[str, Recording] = {}
        self._sizes: dict[str, int] = {}
        self._held = 0
        self._counting = threading.Lock()
        self._key_of_file: dict[str, str] = {}
        #: File -> what is wrong with it; `set_damaged_aside` fills it.
        self.damaged: dict[str, str] = {}

    def set_damaged_aside(self) -> None:
        """Read every file once; those that cannot be read count as recordings that are not there."""
        for path in sorted(self.folder.glob(f"*{SUFFIX}")):
            if not _is_recording(path.name):
                continue
            try:
                self.load(_key_in(path))
            except ValueError as error:
                self.damaged[path.name] = str(error)

    def save(self, recording: Recording) -> Path:
        """Write one recording; no reader ever sees half of it. The file's path."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / file_name(recording.key)
        fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
        text = dump(recording)
        fresh.write_text(text, "utf-8")
        os.replace(fresh, path)  # noqa: PTH105 - the atomic one
        self._hold(recording, len(text))
        self._key_of_file[path.name] = recording.key
        return path

    def load(self, key: str) -> Recording:
        """Read a recording from disk.

        Raises LookupError when there is none of that key, ValueError naming the file when it is damaged or
        was written by a newer version.
        """
        path = self.folder / file_name(key)
        if path.name in self.damaged:
            raise LookupError(f"the recording of {key!r} is damaged: {self.damaged[path.name]}")
        try:
            text = path.read_text("utf-8")
        except FileNotFoundError:
            raise LookupError(self._missing(key)) from None
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not UTF-8 at byte {error.start}, so the file is damaged") from error
        try:
            recording = load(text)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
        if recording.key != key:
            raise ValueError(f"{path}: holds the recording of {recording.key!r} instead of {key!r}")
        self._hold(recording, len(text))
        return recording

    def get(self, key: str) -> Recording:
        """The recording of that key, read once. Raises as `load` does."""
        return self._read.get(key) or self.load(key)

    def _hold(self, recording: Recording, size: int) -> None:
        """Keep it in memory, unless that has become too much: then it is read from disk when asked for."""
        with self._counting:  # one thread may write while another reads
            self._held -= self._sizes.pop(recording.key, 0)
            self._read.pop(recording.key, None)
            if size <= LARGE and self._held + size <= HELD:
                self._read[recording.key] = recording
                self._sizes[recording.key] = size
                self._held += size

    def __contains__(self, key: str) -> bool:
        """Whether there is a recording of that key, on disk or already read."""
        if key in self._read:
            return True
        path = self.folder / file_name(key)
        return path.name not in self.damaged and path.is_file()

    def keys(self) -> tuple[str, ...]:
        """The keys of all recordings that are on disk now, sorted. Raises ValueError on a damaged file."""
        if not self.folder.is_dir():
            return ()
        entries = [entry.name for entry in os.scandir(self.folder) if _is_recording(entry.name)]
        names = [name for name in entries if name not in self.damaged]
        for name in names:
            if name not in self._key_of_file:
                self._key_of_file[name] = _key_in(self.folder / name)
        return tuple(sorted(self._key_of_file[name] for name in names))

    def _missing(self, key: str) -> str:
        near = difflib.get_close_matches(key, self.keys(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"no recording of {key!r} in {self.folder}{hint}"


class MemoryStore(RecordingStore):
    """Recordings that are not written down, as a store of them."""

    def __init__(self, rows: Iterable[Recording] = ()) -> None:
        """Keys are unique."""
        super().__init__(Path())
        self._rows = {one.key: one for one in rows}

    def save(self, recording: Recording) -> Path:
        """Keep it; no file is written."""
        self._rows[recording.key] = recording
        return self.folder

    def get(self, key: str) -> Recording:
        """The recording of that key. Raises LookupError when there is none."""
        return self._rows[key]

    def __contains__(self, key: str) -> bool:
        """Whether there is one of that key."""
        return key in self._rows

    def keys(self) -> tuple[str, ...]:
        """The keys of all, in order of saving."""
        return tuple(self._rows)


def file_name(key: str) -> str:
    """The file of a key: the key itself where any file system takes it, else made safe, and unique."""
    if _PLAIN.fullmatch(key):
        return key + SUFFIX
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    safe = re.sub(r"[^a-z0-9._-]+", "_", key.lower()).strip("._")[:80]
    return f"{safe or 'key'}~{digest}{SUFFIX}"


def _is_recording(name: str) -> bool:
    return name.endswith(SUFFIX) and not name.startswith(".")


def _key_in(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as lines:
        first = lines.readline()
    try:
        return str(json.loads(first)["key"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: its first line names no key, so it is not a recording ({error!r})"
        ) from error
