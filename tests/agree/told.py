"""What a recording tells about its server, as text that can be compared and kept."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.sse import read_stream, strict_json
from tests.agree.counted import counted
from tests.agree.shape import Shape, shape_of

if TYPE_CHECKING:
    from pytest_vllm.wire.recording import Recording
    from pytest_vllm.wire.sse import Event

#: Headers whose value says when, or how much, and not what.
VARYING = frozenset({"date", "content-length", "x-request-id"})
#: The simulator's clock.
CLOCK = "x-sim-"

#: What depends on whether a model that is free to call a tool does so, and what its last piece is.
CALLS = re.compile(r"^body \.(choices\[\]\.(message|finish_reason)|output\[\]|content\[\]|stop_reason)")
PIECE = re.compile(r"^event finish \.choices\[\]\.delta\.")

#: The bytes of a token: none where it is a part of a letter, which the text decides.
BYTES = (".bytes[]", "top_logprobs[].*[]")

#: One recording: part (`status`, `header NAME`, `body PATH`, `order`, `event N PATH`, `metric …`) -> text.
Told = dict[str, str]


def told(recording: Recording) -> Told:
    """Everything that is compared of one exchange."""
    if recording.status is None:
        why = "not sent" if recording.failure is Failure.NOT_SENT else "no answer"
        return {"status": why}
    parts = {"status": str(recording.status)}
    for name, value in recording.headers:
        if not name.startswith(CLOCK):
            parts[f"header {name}"] = "there" if name in VARYING else ", ".join(sorted(value.split(", ")))
    if recording.header("content-type").startswith("text/event-stream"):
        parts |= _stream(recording)
    elif recording.header("content-type").startswith("text/plain"):
        parts["body"] = "text"
    elif recording.body:
        parts |= _body(recording)
    if recording.status == 200 and free(recording.request.json):
        parts = {part: text for part, text in parts.items() if not CALLS.match(part)}
    return parts | counted(recording)


def free(body: Any) -> bool:
    """Whether a request leaves it to the model to call a tool or to talk."""
    if not isinstance(body, dict) or not body.get("tools"):
        return False
    choice = body.get("tool_choice", "auto")
    return choice == "auto" or (isinstance(choice, dict) and choice.get("type") == "auto")


def _body(recording: Recording) -> Told:
    try:
        value = strict_json(recording.text)
    except ValueError:
        return {"body": "text"}
    if recording.request.path == "/openapi.json" and recording.status == 200:
        return _described(value)
    return {f"body {path}": what for path, what in shape_of(value).items()}


def _described(document: Any) -> Told:
    """The routes that a server describes; what its bodies hold is compared where they are sent."""
    routes = [f"{method} {path}" for path, on in document["paths"].items() for method in on]
    return {f"route {route}": "there" for route in routes}


def _stream(recording: Recording) -> Told:
    """The kinds of events in the order of their first appearance, and what each holds.

    How many of a kind there are is the model's doing.
    """
    kinds: dict[str, list[Shape]] = {}
    events = read_stream(list(recording.chunks))[0]
    for event in events:
        name, shape = _kind(event)
        kinds.setdefault(name, []).append(shape)
    if free(recording.request.json):
        kinds = {name: kinds[name] for name in [*list(kinds)[:1], *list(kinds)[-2:]]}
    parts = {"order": " ".join(kinds)}
    if events:
        parts["last"] = _kind(events[-1])[0]
    if recording.unfinished and not recording.aborted:  # where a client leaves is chance
        parts["cut"] = "the last event is not closed"
    for name, shapes in kinds.items():
        for path in sorted({path for shape in shapes for path in shape}):
            if PIECE.match(f"event {name} {path}"):
                continue
            seen = sorted({word for shape in shapes if path in shape for word in shape[path].split("|")})
            always = path.endswith(BYTES) or all(path in shape for shape in shapes)
            often = "" if always else " in some"
            parts[f"event {name} {path}"] = "|".join(seen) + often
    return parts


def _kind(event: Event) -> tuple[str, Shape]:
    """What an event is for: its name, or the part of the answer that it brings."""
    try:
        value = strict_json(event.data)
    except ValueError:
        return (event.data if event.is_done else "text"), {}
    if event.name or not isinstance(value, dict):
        return event.name, shape_of(value)
    choices = value.get("choices")
    if "error" in value or not isinstance(choices, list):
        return "error", shape_of(value)
    if not choices:
        return "usage", shape_of(value)
    return _brings(choices[0]), shape_of(value)


def _brings(choice: Any) -> str:
    delta = choice.get("delta")
    if choice.get("finish_reason"):
        return "finish"
    if isinstance(delta, dict) and "role" in delta:
        return "role"
    if isinstance(delta, dict):
        filled = [key for key in ("reasoning", "content", "tool_calls") if delta.get(key) is not None]
        return "+".join(filled) or "empty"
    return "text"


def as_json(exchanges: dict[str, Told]) -> str:
    """A recorded server as a file: equal answers are kept once."""
    answers: dict[str, int] = {}
    places = {}
    for key, parts in sorted(exchanges.items()):
        text = json.dumps(parts, sort_keys=True)
        places[key] = answers.setdefault(text, len(answers))
    kept = [json.loads(text) for text in answers]
    return json.dumps({"exchanges": places, "answers": kept}, indent=1, ensure_ascii=False) + "\n"


def from_json(text: str) -> dict[str, Told]:
    """Read what `as_json` wrote."""
    read = json.loads(text)
    return {key: read["answers"][place] for key, place in read["exchanges"].items()}
