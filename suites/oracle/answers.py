"""Every answer of a run in one shape, whatever the route, whole or streamed."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_vllm import error_in, only_if, undecided

from . import apis

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm import Recording, Recordings

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
RESPONSES, MESSAGES = "/v1/responses", "/v1/messages"
ROUTES = (CHAT, COMPLETIONS, RESPONSES, MESSAGES)
#: Requests that make no sense on purpose: what is said to them is judged where they are asked.
ODD = (
    "chat.empty-user", "classify.nothing", "embeddings.empty", "embeddings.refusal", "embeddings.too-long",
    "errors.", "explore.", "messages.refusal", "reasoning.history.shape", "responses.refusal", "security.",
    "structured.awkward", "structured.refused", "tools.history.shape", "tools.oddity", "tools.refusal",
    "transcription.refusal", "transcription.unreadable", "vision.cut", "vision.odd", "vision.too-long",
)  # fmt: skip

#: Recording (by its address) -> what was read from it; no answer is read twice.
_READ: dict[int, tuple[Any, Answer | None]] = {}


@dataclass(frozen=True)
class Answer:
    """What an answer says.

    Args:
        key: of its recording.
        path: the route, without a query.
        asked: the request's body.
        streams: whether it came as a stream.
        ids: every id that the answer or an event of it calls itself, in order, None where it has none.
        models: every model that it names.
        created: every time of making that it names.
        usage: prompt, completion and total tokens; total None where the route has none; None without usage.
        choices: what was said, by index.
        items: the ids of a response's items, at their end -> in the last event.
    """

    key: str
    path: str
    asked: dict[str, Any]
    streams: bool
    ids: tuple[Any, ...] = ()
    models: tuple[Any, ...] = ()
    created: tuple[Any, ...] = ()
    usage: tuple[int, int, int | None] | None = None
    choices: tuple[apis.Choice, ...] = ()
    items: tuple[tuple[Any, Any], ...] = field(default=())

    @property
    def text(self) -> str:
        """All text of all choices."""
        return "\n".join(choice.text for choice in self.choices)


def answers(recordings: Recordings) -> list[Answer]:
    """Every answer with status 200 of a route that generates, that can be read.

    What cannot be read (no JSON, no choices) is judged by the checks of its route. Raises NotRun where
    nothing was asked of such a route or all was refused, Undecided where all that was asked came to nothing.
    """
    asked = [one for one in recordings.of("") if one.request.path.partition("?")[0] in ROUTES]
    only_if([one for one in asked if one.request.expect == 200], "this run asks for no generation")
    found = [answer for one in asked if (answer := answer_of(one))]
    refused = all(one.status is not None and 400 <= one.status < 500 for one in asked)
    only_if(found or not refused, "this server generates nothing: whatever was asked for was refused")
    return found or undecided("no answer of this run could be read")


def answer_of(one: Recording) -> Answer | None:
    """What a recording says; None when it is no whole answer of a route that generates."""
    path, asked = one.request.path.partition("?")[0], one.request.json
    if one.status != 200 or one.aborted or one.error or path not in ROUTES or not isinstance(asked, dict):
        return None
    kept = _READ.get(id(one))
    if kept is None or kept[0]() is not one:
        kept = (weakref.ref(one), _read(one, path, asked))
        _READ[id(one)] = kept
    return kept[1]


def usages(one: Recording) -> Iterator[dict[str, Any]]:
    """Every usage that an answer holds."""
    path, streams = one.request.path.partition("?")[0], one.request.streams
    if path in (CHAT, COMPLETIONS, MESSAGES):
        holders = [part.get("message") or part for part in one.bodies]
    else:
        holders = apis.response_objects(one.bodies, streams)
    yield from (holder["usage"] for holder in holders if isinstance(holder.get("usage"), dict))


def _read(one: Recording, path: str, asked: dict[str, Any]) -> Answer | None:
    try:
        if one.request.streams:
            parts = [event.json for event in one.events if not event.is_done]
        else:
            parts = [one.json]
        if any(error_in(part) for part in parts):
            return None
        found = apis.READERS[path](parts, one.request.streams)
    except Exception:  # noqa: BLE001 - whatever shape it has, the checks of the route say what is wrong with it
        return None
    return Answer(one.key, path, asked, one.request.streams, **found)
