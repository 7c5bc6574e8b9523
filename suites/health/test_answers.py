"""Answers that are whole, on every route: one that a client cannot read is a failure, whatever its status."""

import re
from collections import defaultdict

from pytest_vllm import MUST, Recording, Recordings, check, need, only_if, unwhole

#: How an answer ends that the server itself broke off.
BROKEN = ("reset", "truncated")
#: Routes that answer with JSON, and those that stream events where a request asks for it.
TYPED = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/embeddings",
    "/tokenize",
    "/detokenize",
)


@check("answers.whole", MUST, spec="openai:chat/object", exchanges=("health.", "*"))
def test_whole(vllm_recordings: Recordings) -> None:
    """Every 200 is a whole answer: JSON where it is due, choices, an end."""
    answered = [r for r in vllm_recordings.of("") if r.status == 200]
    need(answered, "no request was answered with 200")
    broken: dict[str, list[str]] = defaultdict(list)
    for recording in answered:
        if fault := unwhole(recording):
            broken[re.sub(r"\[\d+\]|\d+ events|event \d+", "…", fault)].append(f"{fault} ({recording.key})")
    kinds = sorted(broken.values(), key=len, reverse=True)
    said = [f"{found[0]}" + (f" and {len(found) - 1} more" if found[1:] else "") for found in kinds[:5]]

    assert not broken, (
        f"{sum(map(len, kinds))} of {len(answered)} answers with status 200 are malformed: {'; '.join(said)}"
    )


@check("answers.complete", MUST, spec="rfc9110:section-6.1", exchanges=("health.", "*"))
def test_complete(vllm_recordings: Recordings) -> None:
    """No answer is broken off, none falls silent while others go on."""
    asked = [one for one in vllm_recordings.of("") if _due(one)]
    need(asked, "no request was answered with 200")
    broken = [one for one in asked if one.failure in BROKEN]
    slow = [one for one in asked if one.late]
    silent = [one for one in slow if one.status == 200]
    alone = [one for one in silent if any(_went_on(other, one) for other in asked)]
    said = [f"{one.key}: {one.error}" for one in [*broken, *alone]]

    assert not said, f"{len(said)} of {len(asked)} answers come to no end: {'; '.join(said[:3])}"
    late = [f"{one.key}: {one.error}" for one in slow]
    need(not late, f"{len(late)} of {len(asked)} answers did not come in time: {'; '.join(late[:3])}")


@check("answers.plain", MUST, spec="rfc9110:section-12.5.3", exchanges=("health.", "*"))
def test_plain(vllm_recordings: Recordings) -> None:
    """No answer is compressed: the requests say that they take none that is."""
    answered = [one for one in vllm_recordings.of("") if one.status is not None]
    need(answered, "no request was answered")
    coded = [(one, one.header("content-encoding")) for one in answered if one.header("content-encoding")]
    wrong = [f"{one.key}: {coding}" for one, coding in coded if coding.strip().lower() != "identity"]

    assert not wrong, f"{len(wrong)} of {len(answered)} answers are compressed: {'; '.join(wrong[:3])}"


@check("answers.every.typed", MUST, spec="rfc9110:section-8.3", exchanges=("health.", "*"))
def test_typed(vllm_recordings: Recordings) -> None:
    """Every answer says by its content type whether it is JSON or a stream of events."""
    found = [(one, due) for one in vllm_recordings.of("") if (due := _type_due(one))]
    only_if(found, "no request was answered with 200")
    wrong = [
        f"{one.key}: {one.header('content-type')!r}"
        for one, due in found
        if due not in one.header("content-type").lower()
    ]

    assert not wrong, f"{len(wrong)} of {len(found)} answers: {'; '.join(wrong[:3])}"


def _type_due(one: Recording) -> str:
    """The content type that an answer has to name; empty where it may name any."""
    path = one.request.path.partition("?")[0]
    if one.status != 200 or one.aborted or one.request.method != "POST" or path not in TYPED:
        return ""
    return "text/event-stream" if one.request.streams else "/json"


def _due(one: Recording) -> bool:
    """Whether an answer was due: its client stayed, and gave it all the time of the run."""
    stayed = not one.aborted and one.request.abort_after is None and one.request.timeout is None
    return stayed and (one.status == 200 or (one.status is None and one.request.expect == 200))


def _went_on(other: Recording, silent: Recording) -> bool:
    """Whether another answer got bytes while this one got none."""
    since = silent.sent + (silent.chunks[-1][0] if silent.chunks else silent.headers_at or 0.0)
    until = silent.sent + silent.seconds
    return other is not silent and any(since < other.sent + at < until for at, _ in other.chunks)
