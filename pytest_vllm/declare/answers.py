"""What answers say, whatever the endpoint and however sure the model was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.schemas import schema_faults
from pytest_vllm.wire.failure import Failure
from pytest_vllm.wire.recording import Undecided
from pytest_vllm.wire.sse import strict_json
from pytest_vllm.wire.template import refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_vllm.decide.verdict import Level
    from pytest_vllm.wire.recording import Recording


OK, ERROR, NOT_IMPLEMENTED = 200, 500, 501


def unexpected(recordings: Iterable[Recording]) -> list[str]:
    """One line for each exchange that did not get the status it was meant to get.

    Passed over are exchanges that expect nothing in particular, which a check of their own judges,
    those that had no request because an earlier exchange failed, which is blamed where it failed, and what
    the model's own chat template or tokenizer refuses.

    Raises Undecided when nothing is wrong but some were never sent, because the server had stopped before,
    or could not be recorded by a client that was held up.
    """
    meant = [one for one in recordings if one.request.expect is not None and one.request.path]
    unsent = [one for one in meant if one.failure and (one.failure is Failure.NOT_SENT or one.failure.ours)]
    wrong = [
        f"{one.key}: {one.status or one.error or 'no response'}, not {one.request.expect}"
        for one in meant
        if one.status != one.request.expect and one not in unsent and not refusal(one.status, one.text)
    ]
    if unsent and not wrong:
        raise Undecided(f"{unsent[0].key} and {len(unsent) - 1} more were {unsent[0].error}")
    return wrong


def error_in(value: Any) -> Any:
    """The error that a JSON body or an event carries, falsy when it carries none.

    vLLM wraps it in `error` from 0.10.1; until 0.10.0 the object itself is one, and says so by its kind, as
    an `error` event of the Responses API does.
    """
    if not isinstance(value, dict):
        return None
    return value.get("error") or ("error" in (value.get("object"), value.get("type")) and value)


def server_errors(recordings: Iterable[Recording]) -> list[str]:
    """One line for each exchange that was to be served and ended in an error of the server; 501 is none."""
    return [
        f"{one.key}: {one.status} {one.text[:100]}"
        for one in recordings
        if one.request.expect == OK and (one.status or 0) >= ERROR and one.status != NOT_IMPLEMENTED
    ]


def not_json(recordings: Iterable[Recording]) -> list[str]:
    """One line for each answer whose body is not JSON in UTF-8; NaN and Infinity are not JSON."""
    answers = [one for one in recordings if one.status is not None]
    return [f"{one.key}: {fault}" for one in answers if (fault := _json_fault(one.body))]


def _json_fault(body: bytes) -> str:
    try:
        strict_json(body.decode())
    except ValueError as error:
        return str(error)
    return ""


def shape_faults(schema: str, recordings: Iterable[Recording], version: str, *levels: Level) -> list[str]:
    """In what answers depart from a schema: each fault once, with the exchange that shows it.

    Args:
        schema: one of `schemas.NAMES`.
        recordings: whole answers.
        version: vLLM's version, for what it is known to do.
        levels: the faults that count.

    Raises Undecided when there is no answer.
    """
    answers = {one.key: one.ok for one in recordings}
    if not answers:
        raise Undecided("no request was answered")
    found: dict[str, str] = {}
    for key, answer in answers.items():
        for fault in schema_faults(schema, answer, version):
            if fault.level in levels:
                found.setdefault(str(fault), key)
    return [f"{fault} ({key})" for fault, key in found.items()]


def text_of(choice: Mapping[str, Any]) -> str:
    """All text of a choice, chat or completion; what a reasoning parser took out of the content included."""
    if "message" not in choice:
        return str(choice.get("text") or "")
    message = choice["message"]
    thought = message.get("reasoning") or message.get("reasoning_content") or ""
    return f"{thought}{message.get('content') or ''}"


def parting(one: str, other: str) -> int:
    """Index of the first character in which two texts differ; the shorter one's length when there is none."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(one), len(other)))


def near_tie(entries: Sequence[Mapping[str, Any]], one: str, other: str, gap: float = 0.3) -> bool:
    """Whether two greedy texts part where two candidates were about equally likely.

    There another batch, a cached prefix or a drafted token may round to the other one. Both texts must go
    on with such a candidate; texts that part for another reason are not a near-tie.

    Args:
        entries: `choices[0].logprobs.content` of the same greedy chat answer, with `top_logprobs`.
        one: the first text.
        other: the second text.
        gap: nats below the best candidate that still count as equally likely.
    """
    index, end = parting(one, other), 0
    for entry in entries:
        begin, end = end, end + len(entry["token"])
        if index < end:
            best = max(top["logprob"] for top in entry["top_logprobs"])
            tied = tuple(top["token"] for top in entry["top_logprobs"] if top["logprob"] >= best - gap)
            return one.startswith(tied, begin) and other.startswith(tied, begin)
    return False


def listed(faults: Iterable[str], most: int = 4) -> str:
    """Faults for one line of a report, cut after some: `a; b; c; d … and 3 more`."""
    rows = list(faults)
    more = f" … and {len(rows) - most} more" if len(rows) > most else ""
    return "; ".join(rows[:most]) + more


def short(text: str, most: int = 90) -> str:
    """A text to quote, cut in its middle."""
    return repr(text if len(text) <= most else f"{text[: most // 2]} … {text[-most // 2 :]}")
