"""A recording is written down: the same each time and streamed, its length told, its times in order."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from pytest_vllm import (
    MUST,
    SHOULD,
    Case,
    Recording,
    Recordings,
    Server,
    check,
    need,
    observe,
    only_if,
    unexpected,
)

from .exchanges import LONG, SHORT

SPEC = "openai:audio/createTranscription"
STREAM = "vllm:serving/openai_compatible_server/"
CHUNKS = "fault:vllm-project/vllm/pull/41131"
NEEDS = ("transcription",)
#: Seconds by which a length may be rounded, and by which a piece may reach into the next.
ROUNDED, SHARED = 0.25, 1.5
#: Words that take a dozen tokens.
WORDS = 6
#: Seconds that a model hears at once.
AT_ONCE = 30.0
#: From here on an answer tells the seconds that it is billed for.
BILLS = "0.10.2"


def said(recording: Recording) -> str:
    """The text of an answer. Raises Undecided where it has none."""
    body = recording.ok
    text = body.get("text") if isinstance(body, dict) else None
    need(isinstance(text, str), f"{recording.key} has no text: {recording.text[:80]}")
    return str(text)


@check("transcription.answered", MUST, spec=SPEC, needs=NEEDS, exchanges=("transcription.",))
def test_answered(vllm_recordings: Recordings) -> None:
    """Recordings short and long are written down, whole and streamed."""
    wrong = unexpected(vllm_recordings.of("transcription."))

    assert not wrong, "; ".join(wrong)


@check("transcription.text", MUST, spec=SPEC, needs=NEEDS)
def test_text(transcription_plain: Recording) -> None:
    """An answer is an object with a text."""
    body = transcription_plain.ok
    text = body.get("text") if isinstance(body, dict) else None

    assert isinstance(text, str), f"the body is {transcription_plain.text[:120]}"
    observe("heard in tones", repr(text[:80]))


@check("transcription.billed", MUST, spec=SPEC, needs=NEEDS)
def test_billed(
    vllm_server: Server,
    transcription_plain: Recording,
    transcription_prompted: Recording,
    transcription_long_plain: Recording,
) -> None:
    """The seconds that are billed are those that were sent."""
    only_if(vllm_server.at_least(BILLS), f"before {BILLS} no seconds are told")
    rows = ((transcription_plain, SHORT), (transcription_prompted, SHORT), (transcription_long_plain, LONG))
    for recording, sent in rows:
        usage = recording.ok.get("usage") or {}
        told = usage.get("seconds")
        assert isinstance(told, int | float), f"usage is {usage}"
        assert sent - 1 <= told <= sent + 1, f"{sent:.0f} s were sent, {told} are billed"


@check("transcription.billed-kind", MUST, spec=SPEC, needs=NEEDS)
def test_billed_kind(transcription_plain: Recording) -> None:
    """A bill in seconds says that it is one of time."""
    usage = transcription_plain.ok.get("usage") or {}
    only_if("seconds" in usage, "no seconds are billed")

    assert usage.get("type") == "duration", f"usage is {usage}"


@check("transcription.repeated", SHOULD, spec=SPEC, needs=NEEDS)
def test_repeated(transcription_plain: Recording, transcription_again: Recording) -> None:
    """The same recording, written down greedily, gives the same text."""
    one, other = said(transcription_plain), said(transcription_again)

    assert one == other, f"{one!r:.60}, then {other!r:.60}"


@check("transcription.prompted", SHOULD, spec="fault:vllm-project/vllm/issues/53206", needs=NEEDS)
def test_prompted(
    transcription_plain: Recording, transcription_again: Recording, transcription_prompted: Recording
) -> None:
    """With words for context a recording still has a text, where it has one without."""
    heard = {said(one).strip() for one in (transcription_plain, transcription_again)}
    need(len(heard) == 1, "the server does not repeat itself")
    only_if(heard != {""}, "nothing is heard in the recording")

    assert said(transcription_prompted).strip(), f"no text, {heard.pop()!r:.60} without the words"


def pieces(stream: Recording) -> list[dict[str, Any]]:
    """The choices of a stream's chunks. Raises Undecided where there are none."""
    rows = [
        row
        for chunk in stream.deltas
        if isinstance(chunk, dict)
        for row in chunk.get("choices") or ()
        if isinstance(row, dict)
    ]
    need(rows, f"the stream holds no choices: {stream.text[:120]}")
    return rows


def parts(stream: Recording) -> list[str]:
    """The pieces of text of a stream. Raises Undecided where there are none."""
    return [str((row.get("delta") or {}).get("content") or "") for row in pieces(stream)]


@check("transcription.stream.same", MUST, spec=STREAM, needs=NEEDS)
def test_stream_same(
    transcription_plain: Recording, transcription_again: Recording, transcription_stream: Recording
) -> None:
    """A stream brings the text of the whole answer."""
    one, other = said(transcription_plain), said(transcription_again)
    need(one == other, "the server does not repeat itself")
    text = "".join(parts(transcription_stream))

    assert text.strip() == one.strip(), f"whole {one!r:.70}, streamed {text!r:.70}"


@check("transcription.text-ends", MUST, spec=STREAM, needs=NEEDS)
def test_text_ends(
    transcription_plain: Recording, transcription_again: Recording, transcription_stream: Recording
) -> None:
    """A text ends with no blanks or line breaks that its stream does not bring."""
    one, other = said(transcription_plain), said(transcription_again)
    need(one == other, "the server does not repeat itself")
    text = "".join(parts(transcription_stream))
    whole, streamed = one[len(one.rstrip()) :], text[len(text.rstrip()) :]

    assert len(whole) <= len(streamed), f"whole {one[-40:]!r}, streamed {text[-40:]!r}"


@check("transcription.stream.pieces", MUST, spec=STREAM, needs=NEEDS)
def test_stream_pieces(transcription_stream: Recording) -> None:
    """A text of several words comes in several pieces."""
    heard = parts(transcription_stream)
    only_if(len("".join(heard).split()) >= WORDS, "fewer words are heard")

    assert sum(map(bool, heard)) > 1, f"in one piece: {''.join(heard)[:80]!r}"


@check("transcription.stream.counted", MUST, spec=STREAM, needs=NEEDS)
def test_stream_counted(vllm_server: Server, transcription_stream: Recording) -> None:
    """Every chunk of a stream names the model; asked for usage, the stream tells it."""
    chunks = [chunk for chunk in transcription_stream.deltas if isinstance(chunk, dict)]
    need(chunks, "the stream holds no chunk")
    known = {vllm_server.model, *vllm_server.models}
    other = [chunk.get("model") for chunk in chunks if chunk.get("model") not in known]

    assert not other, f"the model is {other[0]!r} in {len(other)} of {len(chunks)} chunks"
    assert any(chunk.get("usage") for chunk in chunks), "no chunk holds a usage"


@check("transcription.translated", MUST, spec="openai:audio/createTranslation", needs=NEEDS)
def test_translated(transcription_translated: Recording) -> None:
    """A recording that is written down in English has a text."""
    transcription_translated.answered()
    only_if(transcription_translated.status == 200, "this model does not translate")
    body = transcription_translated.ok

    assert isinstance(body, dict) and isinstance(body.get("text"), str), (  # noqa: PT018 - one statement
        f"the body is {transcription_translated.text[:120]}"
    )


@check("transcription.large", MUST, spec=SPEC, needs=NEEDS)
def test_large(transcription_large: Recording, transcription_plain: Recording) -> None:
    """A file of a megabyte and more is written down: minutes of speech are as large."""
    said(transcription_plain)
    transcription_large.answered()
    status = transcription_large.status

    assert status == 200, f"answered with {status}: {transcription_large.text[:120]}"


@check("transcription.stream.ends", MUST, spec=STREAM, needs=NEEDS)
def test_stream_ends(transcription_stream: Recording) -> None:
    """A stream says once why it ends, then sends the end mark."""
    reasons = [row["finish_reason"] for row in pieces(transcription_stream) if row.get("finish_reason")]
    done = [event.is_done for event in transcription_stream.events]

    assert not transcription_stream.error, transcription_stream.error
    assert len(reasons) == 1, f"finish reasons are {reasons}"
    assert done.count(True) == 1, f"{done.count(True)} end marks"
    assert done[-1], "something comes behind the end mark"


def timed(recording: Recording) -> dict[str, Any]:
    """An answer with times. Raises NotRun where the model tells none, Undecided where the server failed."""
    recording.answered()
    refused = 400 <= (recording.status or 0) < 500
    only_if(not refused, "this model tells no times")
    body: dict[str, Any] = recording.ok
    return body


def segments(recording: Recording) -> list[tuple[float, float]]:
    """(begin, end) of the segments in seconds. Raises Undecided where there are none."""
    rows = timed(recording).get("segments") or []
    need(rows, "there are no segments")
    times = [(row.get("start"), row.get("end")) for row in rows if isinstance(row, dict)]
    sound = len(times) == len(rows) and all(isinstance(t, int | float) for pair in times for t in pair)
    need(sound, f"segments are {str(rows)[:120]}")
    return [(float(begin or 0), float(end or 0)) for begin, end in times]


BOTH = ("transcription.verbose", "transcription.long")


@check(
    "transcription.times.served", MUST, spec=SPEC, needs=NEEDS, exchanges=(*BOTH, "transcription.translated")
)
def test_times_served(vllm_recordings: Recordings) -> None:
    """A request for times, or in English, is served or refused, and breaks nothing."""
    found = [vllm_recordings.get(key) for key in (*BOTH, "transcription.translated")]
    need(any(one.status is not None for one in found), "none was answered")
    wrong = [f"{one.key}: {one.status} {one.text[:80]}" for one in found if (one.status or 0) >= 500]

    assert not wrong, "; ".join(wrong)


@check("transcription.times.duration", MUST, spec=SPEC, needs=NEEDS)
def test_duration(transcription_verbose: Recording, transcription_long: Recording) -> None:
    """The duration that is told is that of the recording."""
    for recording, sent in ((transcription_verbose, SHORT), (transcription_long, LONG)):
        told = timed(recording).get("duration")
        try:
            seconds = float(str(told))
        except ValueError:
            seconds = -1.0
        assert abs(seconds - sent) <= ROUNDED, f"{recording.key}: {sent} s were sent, {told!r} are told"


@check("transcription.times.number", MUST, spec="fault:vllm-project/vllm/issues/49068", needs=NEEDS)
def test_number(vllm_server: Server, transcription_verbose: Recording) -> None:
    """The duration of a recording is a number, which typed clients read."""
    only_if(vllm_server.at_least("0.28.0"), "before 0.28 vLLM writes the duration as a text")
    duration = timed(transcription_verbose).get("duration")

    assert isinstance(duration, int | float), f"duration is {duration!r}"


@check("transcription.times.order", MUST, spec=CHUNKS, needs=NEEDS, exchanges=BOTH)
def test_order(vllm_recordings: Recordings) -> None:
    """Segments begin one after the other, and end after they began."""
    for key in BOTH:
        times = segments(vllm_recordings.get(key))
        turned = [pair for pair in times if pair[1] < pair[0]]
        early = [(a, b) for a, b in pairwise(times) if b[0] < max(a[0], a[1] - SHARED)]

        assert not turned, f"{key}: ends before it begins: {turned[0]}"
        assert not early, f"{key}: {early[0][1]} comes after {early[0][0]}"


@check("transcription.times.numbered", MUST, spec=SPEC, needs=NEEDS)
def test_numbered(transcription_verbose: Recording) -> None:
    """The segments of what is heard at once have numbers of their own."""
    segments(transcription_verbose)
    told = [row.get("id") for row in transcription_verbose.ok["segments"]]

    assert len(set(told)) == len(told), f"segments are numbered {told}"


@check("transcription.times.begin", MUST, spec=CHUNKS, needs=NEEDS)
def test_begin(transcription_verbose: Recording, transcription_long: Recording) -> None:
    """The first segment begins before what is heard at once is over."""
    for recording, sent in ((transcription_verbose, SHORT), (transcription_long, AT_ONCE)):
        first = segments(recording)[0]
        assert first[0] <= sent + ROUNDED, f"{recording.key}: the first is {first} of {sent} s"


@check("transcription.language", MUST, spec=SPEC, needs=NEEDS, exchanges=BOTH)
def test_language(vllm_recordings: Recordings) -> None:
    """The language that is told is the one that the request names."""
    told = {key: timed(vllm_recordings.get(key)).get("language") for key in BOTH}
    only_if(any(told.values()), "no language is told")
    wrong = {key: name for key, name in told.items() if name and not str(name).lower().startswith("en")}

    assert not wrong, f"asked for en, told {wrong}"


@check("transcription.times.apart", SHOULD, spec=CHUNKS, needs=NEEDS, exchanges=BOTH)
def test_apart(vllm_recordings: Recordings) -> None:
    """Segments do not overlap, and none begins after the recording is over."""
    for key, sent in zip(BOTH, (SHORT, LONG), strict=True):
        times = segments(vllm_recordings.get(key))
        over = [(one, other) for one, other in pairwise(times) if other[0] < one[1] - ROUNDED]

        assert not over, f"{key}: {over[0][0]} and {over[0][1]} overlap"
        assert times[-1][0] <= sent + ROUNDED, f"{key}: begins at {times[-1][0]} s of {sent} s"


@check("transcription.times.text", MUST, spec=SPEC, needs=NEEDS, exchanges=BOTH)
def test_times_text(vllm_recordings: Recordings) -> None:
    """The segments hold the text, no word more or less."""
    for key in BOTH:
        recording = vllm_recordings.get(key)
        rows = timed(recording).get("segments") or []
        need(rows, "there are no segments")
        text = " ".join("".join(str(row.get("text") or "") for row in rows).split())
        whole = " ".join(said(recording).split())

        assert text.replace(" ", "") == whole.replace(" ", ""), (
            f"{key}: segments {text!r:.80}, text {whole!r:.80}"
        )


@check("transcription.refused", MUST, spec=SPEC, needs=NEEDS)
def test_refused(sound_refusal: Case, transcription_refusal: Recording) -> None:
    """What makes no sense is refused as the client's fault."""
    transcription_refusal.answered()
    status = transcription_refusal.status or 0

    assert 400 <= status < 500, f"{sound_refusal.id}: {status} {transcription_refusal.text[:120]}"


@check("transcription.unreadable", SHOULD, spec=SPEC, needs=NEEDS)
def test_unreadable(sound_unreadable: Case, transcription_unreadable: Recording) -> None:
    """A file that holds no sound is refused as the client's fault."""
    transcription_unreadable.answered()
    status = transcription_unreadable.status or 0

    assert 400 <= status < 500, f"{sound_unreadable.id}: {status} {transcription_unreadable.text[:120]}"
