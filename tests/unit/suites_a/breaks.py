"""For every check one wrong answer that it must catch: an edit of what a real server answered."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_vllm.wire.recording import Recording

    Edit = Callable[[Any], object]
    Change = Callable[[Mapping[str, Recording]], dict[str, Recording]]


@dataclass(frozen=True)
class Break:
    """A wrong answer and the check that catches it.

    Args:
        check: the check's id, with its case where one is meant.
        change: the recordings with the wrong answer among them.
        fault: the wrong answer in words.
    """

    check: str
    change: Change
    fault: str


def edited(key: str, edit: Edit) -> Change:
    """One recording's JSON body, edited in place."""
    return everywhere(lambda one: one == key, edit)


def everywhere(wanted: Callable[[str], bool], edit: Edit) -> Change:
    """The JSON bodies of all recordings whose key is wanted, edited in place."""

    def change(recordings: Mapping[str, Recording]) -> dict[str, Recording]:
        keys = [key for key in recordings if wanted(key) and recordings[key].status == 200]
        assert keys, "the edit touches no recording"
        return {**recordings, **{key: _edited(recordings[key], edit) for key in keys}}

    return change


def answered(key: str, status: int, text: str = '{"error": {"message": "no"}}') -> Change:
    """One recording with another status and body."""
    return lambda recordings: {
        **recordings,
        key: recordings[key].with_response(status=status, chunks=((0.1, text.encode()),)),
    }


def replaced(key: str, old: str, new: str) -> Change:
    """One recording with a text replaced in everything that came."""

    def change(recordings: Mapping[str, Recording]) -> dict[str, Recording]:
        chunks = [(at, data.replace(old.encode(), new.encode())) for at, data in recordings[key].chunks]
        assert tuple(chunks) != recordings[key].chunks, f"{old!r} is not in {key}"
        return {**recordings, key: recordings[key].with_response(chunks=tuple(chunks))}

    return change


def headed(key: str, **headers: str) -> Change:
    """One recording with other headers."""
    pairs = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return lambda recordings: {**recordings, key: recordings[key].with_response(headers=pairs)}


def said(text: str) -> Edit:
    """The first choice says something else."""

    def edit(body: Any) -> None:
        choice = body["choices"][0]
        if "message" in choice:
            choice["message"]["content"] = text
        else:
            choice["text"] = text

    return edit


def first(**fields: Any) -> Edit:
    """Fields of the first choice."""
    return lambda body: body["choices"][0].update(fields)


def usage(**fields: Any) -> Edit:
    """Fields of usage."""
    return lambda body: body["usage"].update(fields)


def like(source: str, *targets: str) -> Change:
    """Recordings answered like another: a parameter without effect."""
    return lambda recordings: {
        **recordings,
        **{
            target: recordings[target].with_response(
                status=recordings[source].status,
                chunks=recordings[source].chunks,
            )
            for target in targets
        },
    }


def _edited(recording: Recording, edit: Edit) -> Recording:
    body = json.loads(recording.body)
    edit(body)
    return recording.with_response(chunks=((0.1, json.dumps(body).encode()),))
