"""The causes of a run in words: what became of its exchanges, and one row for each cause."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from pytest_vllm.decide.causes import Cause, Seen, causes
from pytest_vllm.report.excerpt import is_stream
from pytest_vllm.report.text import count, listed
from pytest_vllm.wire.failure import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_vllm.decide.verdict import Result
    from pytest_vllm.report.record import ServerRun
    from pytest_vllm.wire.recording import Recording

#: Causes that a first screen shows.
MOST_CAUSES = 5
#: Characters of an error's message that tell it from another.
MESSAGE = 60
_NUMBER = re.compile(r"[0-9]+")
#: How an exchange failed, in the words of a cause.
WORDS = {
    Failure.NO_CONNECTION: "no connection could be made",
    Failure.PROXY: "the proxy in between failed",
    Failure.TLS: "the two ends agreed on no TLS",
    Failure.TIMEOUT_FIRST_BYTE: "no response came in time",
    Failure.TIMEOUT_SILENCE: "responses fell silent",
    Failure.TIMEOUT_TOTAL: "responses did not end in time",
    Failure.RESET: "connections broke",
    Failure.TRUNCATED: "responses were cut off",
}


def causes_of(
    failing: Sequence[Result], rows: Sequence[Result], servers: Mapping[str, ServerRun]
) -> tuple[Cause, ...]:
    """The causes behind failing checks, by what became of the exchanges that they read."""
    if not failing:
        return ()
    seen = {(name, key): _seen(one) for name, run in servers.items() for key, one in run.recordings.items()}
    return causes(failing, rows, seen)


def _seen(one: Recording) -> Seen:
    route = one.request.path.partition("?")[0]
    return Seen("" if one.aborted else _symptom(one), frozenset(_about(one, route)), route)


def _about(one: Recording, route: str) -> Iterator[str]:
    """The areas that a request is about by its form."""
    if is_stream(one) or one.request.streams:
        yield "streaming"
    if isinstance(one.request.json, dict) and one.request.json.get("tools"):
        yield "tools"
    if route.endswith("tokenize"):
        yield "tokenize"


def _symptom(one: Recording) -> str:
    if one.failure is not None:
        return WORDS.get(one.failure, "")
    if one.status is None:
        return ""
    unmeant = one.request.expect not in (None, one.status) or one.status >= 500
    return f"answered with {one.status}\n{_message(one)}" if unmeant else ""


def _message(one: Recording) -> str:
    """What an error says, numbers left out: crashes in two areas that say two things are two causes."""
    try:
        error = json.loads(one.body)["error"]
        return _NUMBER.sub("", str(error["message"]))[:MESSAGE]
    except (ValueError, LookupError, TypeError, RecursionError):
        return ""


def headline(cause: Cause) -> str:
    """`tools, 47 checks: arguments of a call`: where, how many, what."""
    where = cause.area if len(cause.areas) == 1 else listed(cause.areas, most=3)
    what = f": {cause.title}" if cause.title else ""
    return f"{where}, {count(len(cause.checks), 'check')}{what}"


def observed(cause: Cause) -> str:
    """What the check says whose evidence stands for the others, its first line."""
    return cause.first.reason.split("\n")[0] or "no reason was given"


def summed(found: Sequence[Cause]) -> str:
    """`2 causes, 48 checks`."""
    return f"{count(len(found), 'cause')}, {count(sum(len(one.checks) for one in found), 'check')}"
