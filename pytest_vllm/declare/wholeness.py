"""Whether an answer is whole: of the kind that its route gives, with its bones, read to its own end."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any

from pytest_vllm.decide.verdict import MISREAD, Level
from pytest_vllm.declare.answers import error_in
from pytest_vllm.schemas import schema_faults
from pytest_vllm.schemas.skeletons import BODIES, EVENTS, REFUSALS, misfits
from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.metrics import Metrics
from pytest_vllm.wire.recording import Undecided

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_vllm.wire.recording import Recording, Request

OK = 200
#: What code raises that reads a value which is not what it takes it for.
OF_DATA = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)
#: Routes whose streams end with a mark, and those whose last event says by its type how they ended.
MARKED = ("/v1/chat/completions", "/v1/completions")
ENDS = {
    "/v1/responses": ("response.completed", "response.incomplete", "response.failed", "response.cancelled"),
    "/v1/messages": ("message_stop",),
}
#: Route -> schema of its body, and of an event of its stream.
SCHEMAS = {
    "/v1/chat/completions": ("chat.completion", "chat.completion.chunk"),
    "/v1/completions": ("completion", "completion.chunk"),
    "/v1/responses": ("response", ""),
    "/v1/messages": ("message", ""),
    "/v1/models": ("models", ""),
}


def unwhole(recording: Recording) -> str:
    """Why a 200 answer is none that a client can use, with the path; empty when it is one, or was not given.

    Only what the server itself said is judged: neither what we broke off nor what the connection cut.
    """
    if recording.status == OK and recording.failure is Failure.PROTOCOL:
        return recording.error
    if recording.status != OK or recording.failure is not None or recording.aborted:
        return ""
    route = _route(recording)
    if recording.request.streams and route in EVENTS:
        return next(_stream_faults(recording, route), "")
    template = BODIES.get((recording.request.method, route))
    if template is None:
        return ""
    try:
        body = recording.json
    except Undecided as fault:
        return _said(recording, fault)
    return next(misfits(template, body), "") or _unkept(recording.request, body)


def _unkept(request: Request, body: Any) -> str:
    """What was asked for and is null."""
    asked = request.json.get("logprobs") if isinstance(request.json, dict) else None
    if asked is not None and asked is not False:
        bare = [choice["index"] for choice in body.get("choices", ()) if choice.get("logprobs") is None]
        if bare:
            return f"choice {bare[0]} has no logprobs, which were asked for"
    ended = body.get("object") == "response" and body["status"] in ("completed", "incomplete")
    if ended and body.get("usage") is None:
        return f"usage is null, though the response is {body['status']}"
    return ""


def forbidden(recording: Recording, version: str = "") -> str:
    """What an answer of any status holds or lacks against its schema, the first of it; empty when nothing.

    Slower and stricter than `unwhole`: OpenAI's own types too, and the envelope of a refusal.
    """
    if fault := unwhole(recording):
        return fault
    fault = _scrape_fault(recording)
    if fault or recording.status is None or recording.failure is not None or recording.aborted:
        return fault  # what the connection cut is not what the server said
    if fault := _uneven_logprobs(recording):
        return fault
    if recording.status >= 400 and recording.request.method != "HEAD":
        return _refusal_fault(recording)
    if recording.status != OK or _route(recording) not in SCHEMAS:
        return ""
    whole, piece = SCHEMAS[_route(recording)]
    name = piece if recording.request.streams else whole
    values = _values(recording) if name else ()
    faults = (fault for value in values for fault in schema_faults(name, value, version))
    return next((str(fault) for fault in faults if fault.level is Level.MUST), "")


def misread(error: Exception, where: str, recordings: Iterable[Recording], version: str = "") -> str:
    """What to say of a check that crashed on answers: which of them is not what its schema allows, and where.

    Empty when all are as they should be: then the fault is the check's own.

    Args:
        error: what the check raised.
        where: its place, `file.py:12`.
        recordings: what the check judges, those that it names itself first.
        version: vLLM's version.
    """
    if not isinstance(error, OF_DATA):
        return ""
    judged = list(recordings)
    # the bones of all of them first: the schemas are slow
    for judge in (unwhole, lambda one: forbidden(one, version)):
        for recording in judged:
            if fault := judge(recording):
                crash = f"{type(error).__name__} at {where}"
                return f"{recording.key} {MISREAD}: {fault} ({crash})"
    return ""


def _uneven_logprobs(recording: Recording) -> str:
    """The first choice of a whole answer whose log probabilities are empty or uneven."""
    asked = recording.request.json
    if recording.status != OK or recording.request.streams or not isinstance(asked, dict):
        return ""
    wanted = asked.get("logprobs")
    if _route(recording) not in MARKED or wanted is None or wanted is False:
        return ""
    deep = bool(asked.get("top_logprobs"))
    found = (_uneven(choice["logprobs"], candidates=deep) for choice in recording.json["choices"])
    return next((f"choices[].logprobs{fault}" for fault in found if fault), "")


def _uneven(given: Mapping[str, Any], *, candidates: bool) -> str:
    if "content" not in given:
        if len({len(one) for one in given.values()}) > 1:
            return " holds lists of different lengths"
        if not given.get("tokens"):
            return ".tokens is empty" if "tokens" in given else " lists no tokens"
        return ".top_logprobs[] is empty" if {} in (given.get("top_logprobs") or []) else ""
    if not given["content"]:
        return ".content is empty"
    bare = candidates and not all(one.get("top_logprobs") for one in given["content"])
    return ".content[].top_logprobs is empty" if bare else ""


def _values(recording: Recording) -> list[Any]:
    """The JSON values of an answer: its body, or the data of each event until one that is an error."""
    if not recording.request.streams:
        return [recording.json]
    return list(takewhile(lambda piece: not error_in(piece), recording.deltas))


def _scrape_fault(recording: Recording) -> str:
    texts = [recording.metrics_before, recording.metrics_after]
    if recording.status == OK and _route(recording) == "/metrics":
        texts.append(recording.text)
    fault = next((fault for text in texts if text is not None and (fault := Metrics(text).fault)), "")
    return f"/metrics is not Prometheus text: {fault}" if fault else ""


def _refusal_fault(recording: Recording) -> str:
    try:
        body = recording.json
    except Undecided as fault:
        return _said(recording, fault)
    found = [next(misfits(template, body), "") for template in REFUSALS]
    return found[0] if all(found) else ""


def _stream_faults(recording: Recording, route: str) -> Iterator[str]:
    kind = recording.header("content-type").split(";")[0].strip()
    if kind != "text/event-stream":
        yield f"a stream was asked for, and the answer is {kind or 'without a content type'}"
        return
    try:
        pieces = recording.deltas
    except Undecided as fault:
        yield _said(recording, fault)
        return
    if not pieces:
        yield "the stream holds no event"
        return
    for number, piece in enumerate(pieces):
        if error := error_in(piece):
            if recording.request.expect == OK:
                yield f"event {number} is an error: {str(error)[:160]}"
            return
        yield from (f"event {number}: {fault}" for fault in misfits(EVENTS[route], piece))
    yield from _end_faults(recording, route, pieces)


def _end_faults(recording: Recording, route: str, pieces: Sequence[Any]) -> Iterator[str]:
    if recording.unfinished.strip():
        yield f"the stream ends within an event: {recording.unfinished[:60]!r}"
    if route in ENDS:
        ended = any(piece["type"] in ENDS[route] for piece in pieces)
        if not ended:
            yield f"the stream of {len(pieces)} events ends without {' or '.join(ENDS[route][:2])}"
        return
    if not any(event.is_done for event in recording.events):
        yield f"the stream of {len(pieces)} events ends without [DONE]"
    choices = [choice for piece in pieces for choice in piece["choices"]]
    open_ = {c["index"] for c in choices} - {c["index"] for c in choices if c.get("finish_reason")}
    if not choices:
        yield f"none of {len(pieces)} events holds a choice"
    elif open_:
        yield f"choice {min(open_)} ends without a finish_reason"


def _route(recording: Recording) -> str:
    path = recording.request.path.partition("?")[0]
    return "/v1/responses" if path.startswith("/v1/responses/") and path.count("/") == 3 else path


def _said(recording: Recording, fault: Undecided) -> str:
    """The fault without the key, which whoever reports it names."""
    return str(fault).removeprefix(f"{recording.key}: ")
