"""Whether a good request was served: answered, or refused for a reason; no server error, no silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm import Fault, error_in

from ..oracle.answers import ROUTES, answer_of  # noqa: TID252 - suites lie together

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm import Recording

#: What vLLM has no reason to refuse as long as it fits the context, beside the prompt itself: sizes,
#: sampling within its bounds, and how the answer comes.
ALWAYS = {
    "model", "messages", "prompt", "input", "max_tokens", "max_output_tokens", "temperature", "top_p",
    "top_k", "seed", "stream", "stream_options", "n", "ignore_eos", "min_tokens", "store", "tools",
}  # fmt: skip
#: Statuses that refuse a request for what it says.
REFUSED = (400, 404, 422)
SERVER_ERROR, NOT_BUILT = 500, 501
#: Roles that every chat template takes, in turns.
ROLES = ("user", "assistant")
SHOWN = 300


def unserved(one: Recording) -> Iterator[Fault]:
    """What is wrong with how a request was served, whatever the answer says."""
    said = f"{one.key}: {one.request.path} {one.status or ''} {one.error or one.text[:SHOWN]}".strip()
    if one.failure is not None:
        slow = one.failure.slow or one.failure.unreached
        yield Fault("served.in-time" if slow else "served.whole", said, certain=not slow)
    elif one.status is not None and one.status >= SERVER_ERROR:
        yield Fault("served.error", said, certain=one.status != NOT_BUILT)
    elif one.status != 200:
        yield from _refused(one, said)
    elif _reports_error(one):
        yield Fault("served.error-in-stream", said)
    elif one.request.path.partition("?")[0] in ROUTES and answer_of(one) is None:
        yield Fault("served.readable", said)


def _refused(one: Recording, said: str) -> Iterator[Fault]:
    if one.status not in REFUSED:
        yield Fault("served.let-in", said, certain=False)
    elif not _reason(one):
        yield Fault("served.reason", f"refused without a reason: {said}")
    elif _always_served(one.request.json):
        yield Fault("served.refused", said)
    else:
        yield Fault("served.maybe-refused", said, certain=False)


def _reason(one: Recording) -> str:
    """Why a request was refused, in the server's words."""
    try:
        body = one.json
    except Exception:  # noqa: BLE001 - whatever it is, it is no reason
        return ""
    error = body.get("error", body) if isinstance(body, dict) else {}
    told = (error.get("message") or error.get("detail")) if isinstance(error, dict) else error
    return str(told or "").strip()


def _always_served(body: Any) -> bool:
    turns = body.get("messages") or body.get("input") or []
    if not isinstance(turns, list) or not set(body) <= ALWAYS:
        return False
    if body.get("tools") and body.get("tool_choice") != "none" and len(body["tools"]) == 1:
        return False  # whether calls can be left to the model is known of one tool already
    plain = all(isinstance(turn.get("content"), str) for turn in turns)
    return plain and [turn.get("role") for turn in turns] == [ROLES[at % 2] for at in range(len(turns))]


def _reports_error(one: Recording) -> bool:
    """Whether a stream that began well ends in an error of the server."""
    if not one.request.streams:
        return False
    try:
        return any(error_in(event) for event in one.deltas)
    except Exception:  # noqa: BLE001 - what cannot be read is another fault
        return False
