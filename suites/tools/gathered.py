"""Many answers at once, for checks over a whole area."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm import need

from .answers import Answer, answer, errors

if TYPE_CHECKING:
    from pytest_vllm import Recording, Recordings

Told = list[tuple["Recording", Answer]]


def answered(recordings: Recordings, *prefixes: str) -> Told:
    """Every choice of every 200 answer of these exchanges. Undecided when there is none."""
    found = [one for prefix in prefixes for one in recordings.of(prefix) if one.status == 200]
    need(found, f"no request of {', '.join(prefixes)} was answered")
    return [(one, answer(one, choice)) for one in found for choice in range(one.request.json.get("n") or 1)]


def with_calls(recordings: Recordings, *prefixes: str) -> Told:
    """Those that hold calls and were not cut. Undecided when there is none."""
    found = [(one, said) for one, said in answered(recordings, *prefixes) if said.calls and said.complete]
    need(found, f"no answer of {', '.join(prefixes)} holds a call")
    return found


def streams(recordings: Recordings, *prefixes: str) -> Told:
    """Those of them that were streamed. Undecided when there is none."""
    found = [(one, said) for one, said in with_calls(recordings, *prefixes) if one.request.streams]
    need(found, f"no stream of {', '.join(prefixes)} holds a call")
    return found


def ended(recording: Recording) -> Answer:
    """The answer to a forced call that nothing cut. Undecided otherwise."""
    broken = errors(recording) if recording.request.streams else []
    need(not broken, f"{recording.key} broke off: {broken[:1]}")
    said = answer(recording)
    need(said.finish, f"{recording.key} gives no finish reason")
    need(said.complete, f"{recording.key} was cut: finish reason {said.finish!r}")
    return said
