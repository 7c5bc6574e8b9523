"""What an exchange is worth that was recorded while this process was held up. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.measure.held import MARGIN
from pytest_vllm.wire.failure import HELD_UP, TOO_BUSY, Failure

if TYPE_CHECKING:
    from pytest_vllm.run.lag import Lag
    from pytest_vllm.wire.recording import Recording, Request

#: How often an exchange is recorded, at most, for which this process was held up.
TRIES = 3
#: Seconds from which on the times of a stream are no longer the server's.
LONG = 1.0
#: Seconds from which on a failure on the way may be the client's: nobody gives a client up for less.
GIVEN_UP = 1.0
#: Statuses of a proxy or a server that waited for one side in vain.
_WAITED = frozenset({408, 499, 502, 503, 504})
_OF_THE_WAY = frozenset(
    {
        Failure.NO_CONNECTION,
        Failure.PROXY,
        Failure.TLS,
        Failure.TIMEOUT_FIRST_BYTE,
        Failure.TIMEOUT_SILENCE,
        Failure.TIMEOUT_TOTAL,
        Failure.RESET,
        Failure.TRUNCATED,
    }
)


def held_for(recording: Recording, lag: Lag, begin: float, end: float) -> float:
    """Seconds of being held up that may have made this recording what it is; 0 when nothing did.

    Args:
        recording: what came.
        lag: when this process was held up.
        begin: when it was begun, by `time.perf_counter`.
        end: when it was over.
    """
    if broke(recording) and not _left(recording):
        held = lag.seconds(begin, end, MARGIN)
        return held if held >= GIVEN_UP else 0.0
    request, held = recording.request, lag.seconds(begin, end)
    timed = request.abort_after is not None or request.timeout is not None
    return held if timed or (request.streams and held >= LONG) else 0.0


def usable(recording: Recording) -> bool:
    """Whether a recording that was held up each time still says something of the server.

    Not what broke, and not what this client was to leave at a moment: it left at another one.
    """
    request = recording.request
    late = request.timeout is not None and recording.seconds >= request.timeout
    return not (broke(recording) or request.abort_after is not None or late)


def _left(recording: Recording) -> bool:
    """Whether the client left when it was meant to: what held it up before has no part in that."""
    return recording.request.timeout is not None and recording.late


def broke(recording: Recording) -> bool:
    """Whether it failed in a way in which an exchange fails whose client does not read or answer in time."""
    if recording.failure is not None:
        return recording.failure in _OF_THE_WAY
    return recording.status in _WAITED and recording.status != recording.request.expect


def repeatable(request: Request) -> bool:
    """Whether sending it twice asks the same twice: an adapter that is loaded can't be loaded again."""
    return request.method not in ("DELETE", "PATCH") and "_lora_adapter" not in request.path


def undone(recording: Recording, held: float, times: int) -> Recording:
    """The recording of what could not be done, which says so and nothing of the server."""
    came = recording.error or f"answered with {recording.status}"
    often = f", each of {times} times" if times > 1 else ""
    why = f"{HELD_UP} for {held:.2g} s{often}: {came}"
    return recording.with_response(status=None, error=why, failure=Failure.HELD)


def busy(recording: Recording, strain: str) -> Recording:
    """The recording of what was cut twice while the server stood still on a machine that is too busy."""
    why = f"{TOO_BUSY}: {strain}; {recording.error or recording.status}"
    return recording.with_response(status=None, error=why, failure=Failure.HELD)
