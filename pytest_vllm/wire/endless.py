"""Streams that go on where they should end: after `[DONE]`, or with more events than tokens were asked for.

Nobody waits for the time limit of such a stream: what it is shows at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_vllm.wire.recording import Request

#: Seconds after `[DONE]` from which anything that comes is no part of the same answer.
AFTER_DONE = 1.0
#: Events beside one for each token: of a choice (its role, its end), and of the stream (usage, errors).
EACH_CHOICE, EACH_STREAM = 4, 8
DONE, DATA = b"data: [DONE]", b"data:"
#: Routes whose streams have one event for a token at most, where no tools are offered.
ROUTES = ("/v1/chat/completions", "/v1/completions")


class Endless:
    """Follows the pieces of a response. `why` says that it goes on where it should end; else it is empty."""

    def __init__(self, request: Request) -> None:
        """Nothing has come."""
        self._most = most_events(request)
        self._events = 0
        self._done_at: float | None = None
        self.why = ""

    def __call__(self, at: float, piece: bytes) -> bool:
        """Whether this piece shows that the stream does not end. `at` in seconds, of any one clock."""
        if self._done_at is not None and at - self._done_at >= AFTER_DONE:
            self.why = f"the stream went on {at - self._done_at:.3g} s after [DONE]"
            return True
        self._events += _begun(piece, DATA)
        if self._done_at is None and _begun(piece, DONE):
            self._done_at = at
        if self._most is not None and self._events > self._most:
            asked = f"{self._most} are the most for what was asked"
            self.why = f"the stream goes on after {self._events} events, {asked}"
            return True
        return False


def most_events(request: Request) -> int | None:
    """Events that the stream of a request may have at most; None where that is not known."""
    body: Any = request.json
    if not (request.streams and request.path.partition("?")[0] in ROUTES) or body.get("tools"):
        return None
    tokens = body.get("max_completion_tokens", body.get("max_tokens"))
    choices = body.get("n") or 1
    if not all(isinstance(one, int) and one > 0 for one in (tokens, choices)):
        return None
    return int(choices * request.prompts * (tokens + EACH_CHOICE) + EACH_STREAM)


def _begun(piece: bytes, line: bytes) -> int:
    """How many lines of a piece begin so; what a piece cuts in two is not counted."""
    return piece.count(b"\n" + line) + piece.startswith(line)
