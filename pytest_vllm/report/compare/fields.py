"""The fields of every kind of answer: which there are, of which types, and how many answers have them.

A kind is a route with its outcome (`POST /v1/chat/completions`, `… stream`, `… error`), and for named events
the event. Counts are of answers, not of objects: a long stream is one answer.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pytest_vllm.wire.sse import read_stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pytest_vllm.wire.recording import Recording
    from pytest_vllm.wire.sse import Event

#: Fields whose values are words of the protocol: those are kept.
WORDS = frozenset({"object", "type", "role", "status", "finish_reason", "stop_reason", "owned_by"})
MOST_WORDS, LONGEST_WORD = 12, 40
#: Fields that hold names of the caller's own: what stands below is one path.
_NAMED = re.compile(
    r"(top_logprobs|prompt_logprobs)\[\]$|\.(arguments|input|metadata|properties|schema|logit_bias)$"
)
_ID = re.compile(r"/(?:resp|msg|cmpl|chatcmpl|batch|file)[_-]\w{4,}|/[0-9a-f-]{12,}")
#: Requests of other methods are refused: their status says everything.
METHODS = ("GET", "POST")
#: Orders of events that are kept for a kind, the most frequent first.
MOST_ORDERS = 12
DONE = "[DONE]"
#: What stands at a path: its type, whether it holds anything, the word where it is one of the protocol's.
Seen = tuple[str, bool, Any]
#: Events that repeat a whole answer which another kind shows: nothing below this path is read.
_SHALLOW = {
    "event response.created": ".response",
    "event response.in_progress": ".response",
    "event response.incomplete": ".response",
}


class Kinds:
    """Collects the fields of answers, kind by kind.

    Args:
        models: names of served models, which routes may hold.
    """

    def __init__(self, models: Iterable[str] = ()) -> None:
        """Nothing is read yet."""
        self._models = [f"/{model}" for model in models if model]
        self._kinds: dict[str, dict[str, Any]] = {}

    def read(self, recording: Recording) -> None:
        """Take an answer; one that never came has no fields."""
        if recording.status is None or recording.aborted or recording.error:
            return
        if recording.request.method not in METHODS:
            return
        kind = self.kind_of(recording)
        streamed = recording.header("content-type").startswith("text/event-stream")
        parts: dict[str, dict[str, set[Seen]]] = {}
        for name, value in _events(recording) if streamed else _whole(recording):
            here = parts.setdefault(f"{kind} {name}".rstrip(), {})
            _walk(value, "", here, _SHALLOW.get(name, ""))
        for part, paths in parts.items():
            self._add(part, paths)
        head = self._kinds.setdefault(kind, {"n": 0, "fields": {}})
        if kind not in parts:
            head["n"] += 1
        media = recording.header("content-type").partition(";")[0]
        head.setdefault("media", Counter())[media] += 1
        if streamed:
            head.setdefault("orders", Counter())[" ".join(_order(recording))] += 1

    def _add(self, kind: str, paths: dict[str, set[Seen]]) -> None:
        entry = self._kinds.setdefault(kind, {"n": 0, "fields": {}})
        entry["n"] += 1
        for path, seen in paths.items():
            field = entry["fields"].setdefault(path, {"n": 0, "filled": 0, "types": set(), "words": set()})
            field["n"] += 1
            field["filled"] += any(filled for _, filled, _ in seen)
            field["types"] |= {kind for kind, _, _ in seen}
            field["words"] |= {word for *_, word in seen if word is not None}

    def kind_of(self, recording: Recording) -> str:
        """`POST /v1/chat/completions`, with `stream` or `error` after it."""
        path = recording.request.path.partition("?")[0]
        for model in self._models:
            path = path.replace(model, "/{model}")
        path = _ID.sub("/{id}", path)
        assert recording.status is not None  # noqa: S101 - seen by the caller
        fails = " error" if recording.status >= 400 else ""
        streams = " stream" if not fails and recording.header("content-type").startswith("text/event") else ""
        return f"{recording.request.method} {path}{streams}{fails}"

    def plain(self) -> dict[str, Any]:
        """As JSON: kind -> `n`, `fields`, `media` and `orders`.

        `fields`: parent -> last part -> [types, answers, answers with a value, words].
        """
        return {kind: _plain(entry) for kind, entry in sorted(self._kinds.items())}


def _plain(entry: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, dict[str, list[Any]]] = {}
    for path, field in sorted(entry["fields"].items()):
        words = sorted(field["words"]) if len(field["words"]) <= MOST_WORDS else []
        row = [
            "|".join(sorted(field["types"])),
            field["n"],
            *([field["filled"], words] if words else [field["filled"]] * (field["filled"] != field["n"])),
        ]
        parent, leaf = split(path)
        fields.setdefault(parent, {})[leaf] = row
    found = {"n": entry["n"], "fields": fields}
    if "media" in entry:
        found["media"] = dict(sorted(entry["media"].items()))
    if "orders" in entry:
        found["orders"] = dict(entry["orders"].most_common(MOST_ORDERS))
    return found


@dataclass(frozen=True)
class FieldSeen:
    """One path of a kind of answer.

    Args:
        types: names of JSON types, as Python calls them.
        n: answers that have it.
        filled: answers in which it held something.
        words: the words of the protocol that stood there.
    """

    types: frozenset[str]
    n: int
    filled: int
    words: frozenset[str] = frozenset()

    @property
    def kinds(self) -> frozenset[str]:
        """The types of what it held when it held anything."""
        return self.types - {"null"}


def fields_of(kind: Mapping[str, Any]) -> dict[str, FieldSeen]:
    """Path -> what was seen there, of one kind as `plain` gave it."""
    found = {}
    for parent, leaves in kind["fields"].items():
        for leaf, (types, n, *more) in leaves.items():
            words = frozenset(more[1]) if len(more) > 1 else frozenset()
            found[parent + leaf] = FieldSeen(frozenset(types.split("|")), n, more[0] if more else n, words)
    return found


def split(path: str) -> tuple[str, str]:
    """A path as its parent and the last part: `.a[].b` -> `.a[]` and `.b`."""
    if path.endswith("[]"):
        return path[:-2], "[]"
    parent, dot, leaf = path.rpartition(".")
    return parent, dot + leaf


def _whole(recording: Recording) -> Iterator[tuple[str, Any]]:
    try:
        yield "", json.loads(recording.body)
    except ValueError:
        return


def _read(recording: Recording) -> list[Event]:
    return recording.events if recording.status == 200 else read_stream(list(recording.chunks))[0]


def _events(recording: Recording) -> Iterator[tuple[str, Any]]:
    for event in _read(recording):
        try:
            yield f"event {event.name}" if event.name else "", json.loads(event.data)
        except ValueError:
            continue


def _walk(value: Any, path: str, found: dict[str, set[Seen]], stop: str = "") -> None:
    """Note (type, whether it holds anything, word of the protocol) of everything in a value, by path."""
    here = found.setdefault(path, set())
    if isinstance(value, dict):
        here.add(("object", bool(value), None))
        # field names may hold dots: those are not told apart, which is the same on both sides
        if not _named(path) and path != (stop or None):
            for key, inner in value.items():
                _walk(inner, f"{path}.{key}", found, stop)
    elif isinstance(value, list):
        here.add(("list", bool(value), None))
        for inner in value:
            _walk(inner, f"{path}[]", found, stop)
    else:
        word = isinstance(value, str) and _worded(path) and len(value) <= LONGEST_WORD
        filled = value is not None and value != ""
        here.add(("null" if value is None else type(value).__name__, filled, value if word else None))


@lru_cache(maxsize=4096)
def _named(path: str) -> bool:
    return bool(_NAMED.search(path))


@lru_cache(maxsize=4096)
def _worded(path: str) -> bool:
    return path.rpartition(".")[2] in WORDS


def _order(recording: Recording) -> list[str]:
    """The kinds of events by their first appearance, and the last one."""
    seen: list[str] = []
    last = ""
    for event in _read(recording):
        last = DONE if event.is_done else event.name or _brings(event.data)
        if last not in seen:
            seen.append(last)
    return [*(one for one in seen if one != last), last] if last else []


def _brings(data: str) -> str:
    """What an unnamed event is for: the parts of the answer that it brings."""
    try:
        value = json.loads(data)
    except ValueError:
        return "text"
    choices = value.get("choices") if isinstance(value, dict) else None
    if not isinstance(choices, list) or "error" in value:
        return "error" if isinstance(value, dict) and "error" in value else "other"
    if not choices or not isinstance(choices[0], dict):
        return "usage"
    if choices[0].get("finish_reason"):
        return "finish"
    delta = choices[0].get("delta")
    if not isinstance(delta, dict):
        return "text"
    filled = [key for key, inner in delta.items() if inner not in (None, "", []) and key != "role"]
    return "+".join(filled) or ("role" if "role" in delta else "empty")
