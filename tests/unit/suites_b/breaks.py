"""Wrong answers: edits of what a real server answered."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_vllm.wire.recording import Recording

    Change = Callable[[Mapping[str, Recording]], dict[str, Recording]]
    Edit = Callable[[Any], object]
    Rewrite = Callable[[list[tuple[float, str]]], list[tuple[float, str]]]


@dataclass(frozen=True)
class Break:
    """A wrong answer and the checks that catch it.

    Args:
        fault: the wrong answer in words.
        change: the recordings with the wrong answer among them.
        checks: the ids of all checks that fail on it, and of no other.
    """

    fault: str
    change: Change
    checks: tuple[str, ...]


def changed(wanted: Callable[[str], bool], change: Callable[[Recording], Recording]) -> Change:
    """Every recording whose key is wanted, changed."""

    def apply(recordings: Mapping[str, Recording]) -> dict[str, Recording]:
        keys = [key for key in recordings if wanted(key)]
        assert keys, "the change touches no recording"
        return {**recordings, **{key: change(recordings[key]) for key in keys}}

    return apply


def one(key: str) -> Callable[[str], bool]:
    """The recording of that key."""
    return lambda found: found == key


def every(prefix: str) -> Callable[[str], bool]:
    """Every recording whose key begins so."""
    return lambda found: found.startswith(prefix)


def having(key: str, **parts: Any) -> Change:
    """One recording with other response parts."""
    return changed(one(key), lambda recording: recording.with_response(**parts))


def answered(key: str, status: int | None, text: str = '{"error": {"message": "no"}}') -> Change:
    """One recording with another status and body; None is no response at all."""
    if status is None:
        return having(key, status=None, chunks=(), error="ReadTimeout: no response")
    return having(key, status=status, chunks=((0.1, text.encode()),))


def edited(wanted: Callable[[str], bool] | str, edit: Edit) -> Change:
    """The JSON body of recordings, edited in place."""

    def change(recording: Recording) -> Recording:
        body = json.loads(recording.body)
        edit(body)
        return recording.with_response(chunks=((0.1, json.dumps(body).encode()),))

    return changed(one(wanted) if isinstance(wanted, str) else wanted, change)


def headed(wanted: Callable[[str], bool], **headers: str) -> Change:
    """Recordings with other headers."""
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return changed(wanted, lambda recording: recording.with_response(headers=pairs))


def streamed(wanted: Callable[[str], bool] | str, rewrite: Rewrite) -> Change:
    """The events of streams as (time, data), rewritten."""

    def change(recording: Recording) -> Recording:
        if not recording.request.streams or recording.status != 200:
            return recording
        events = rewrite([(event.at, event.data) for event in recording.events])
        chunks = tuple((at, f"data: {data}\n\n".encode()) for at, data in events)
        return recording.with_response(chunks=chunks)

    return changed(one(wanted) if isinstance(wanted, str) else wanted, change)


def each_chunk(wanted: Callable[[str], bool] | str, edit: Edit) -> Change:
    """Every JSON chunk of streams, edited in place."""

    def rewrite(events: list[tuple[float, str]]) -> list[tuple[float, str]]:
        return [(at, data if data == "[DONE]" else _edited(data, edit)) for at, data in events]

    return streamed(wanted, rewrite)


def raw(wanted: Callable[[str], bool] | str, old: str, new: str) -> Change:
    """The bytes of recordings, one piece of text replaced."""

    def change(recording: Recording) -> Recording:
        at = [chunk[0] for chunk in recording.chunks]
        body = recording.body.decode().replace(old, new).encode()
        return recording.with_response(chunks=((at[-1], body),))

    return changed(one(wanted) if isinstance(wanted, str) else wanted, change)


def scraped(key: str, old: str, new: str, *, before: bool = False) -> Change:
    """One scrape of a recording (the one after it, unless told otherwise), a piece of text replaced."""
    part = "metrics_before" if before else "metrics_after"

    def change(recording: Recording) -> Recording:
        text = getattr(recording, part)
        assert old in text, f"{old!r} is not in the scrape"
        return recording.with_response(**{part: text.replace(old, new)})

    return changed(one(key), change)


def _edited(data: str, edit: Edit) -> str:
    chunk = json.loads(data)
    edit(chunk)
    return json.dumps(chunk, ensure_ascii=False)
