"""The bytes of a stream: server-sent events, JSON in each, one end mark."""

from pytest_vllm import MUST, SHOULD, Recordings, check, error_in, listed, need, unexpected

from .chunks import streams, unreadable

SSE = "sse:event-stream-interpretation"
OPENAI = "openai:chat-streaming"
AREA = ("streaming.",)
NEEDS = ("stream",)


@check("stream.answered", MUST, spec=OPENAI, needs=NEEDS, exchanges=AREA)
def test_answered(vllm_recordings: Recordings) -> None:
    """Every valid streaming request is answered with 200."""
    wrong = unexpected(vllm_recordings.of("streaming."))

    assert not wrong, listed(wrong)


@check("stream.framing.content-type", MUST, spec="sse:text-event-stream", needs=NEEDS, exchanges=AREA)
def test_content_type(vllm_recordings: Recordings) -> None:
    """A stream is labelled `text/event-stream`."""
    labels = {r.key: r.header("content-type") for r in streams(vllm_recordings)}
    need(labels, "no stream was answered")
    wrong = [
        f"{key}: {label!r}" for key, label in labels.items() if label.split(";")[0] != "text/event-stream"
    ]

    assert not wrong, listed(wrong)


@check("stream.framing.lines", MUST, spec=SSE, needs=NEEDS, exchanges=AREA)
def test_lines(vllm_recordings: Recordings) -> None:
    """A stream holds nothing but known fields and comments, in UTF-8."""
    answered = streams(vllm_recordings)
    need(any(r.events for r in answered), "no stream held an event")
    wrong = [f"{r.key} at {e.at:.2f} s: {fault}" for r in answered for e in r.events for fault in e.faults]

    assert not wrong, listed(wrong)


@check("stream.framing.unnamed", MUST, spec=OPENAI, needs=NEEDS, exchanges=AREA)
def test_unnamed(vllm_recordings: Recordings) -> None:
    """No event carries a name: clients listen to unnamed ones only."""
    answered = streams(vllm_recordings)
    need(any(r.events for r in answered), "no stream held an event")
    wrong = [f"{r.key}: event {e.name!r}" for r in answered for e in r.events if e.name]

    assert not wrong, listed(wrong)


@check("stream.framing.json", MUST, spec="rfc8259:section-2", needs=NEEDS, exchanges=AREA)
def test_json(vllm_recordings: Recordings) -> None:
    """Every event but the end mark is a JSON object, without NaN or Infinity."""
    answered = streams(vllm_recordings)
    need(any(r.events for r in answered), "no stream held an event")
    wrong = [f"{r.key}: {unreadable(event)}" for r in answered for event in r.events if unreadable(event)]

    assert not wrong, listed(wrong)


@check("stream.framing.filled", MUST, spec=OPENAI, needs=NEEDS, exchanges=AREA)
def test_filled(vllm_recordings: Recordings) -> None:
    """A stream that is answered with 200 holds events before its end mark."""
    answered = streams(vllm_recordings)
    need(answered, "no stream was answered")
    empty = [r.key for r in answered if not [event for event in r.events if not event.is_done]]

    assert not empty, f"no event in {listed(empty)}"


@check("stream.framing.done", MUST, spec=OPENAI, needs=NEEDS, exchanges=AREA)
def test_done(vllm_recordings: Recordings) -> None:
    """A stream holds exactly one end mark, `[DONE]`."""
    counts = {r.key: sum(event.is_done for event in r.events) for r in streams(vllm_recordings)}
    need(counts, "no stream was answered")
    wrong = [f"{key}: {count}" for key, count in counts.items() if count != 1]

    assert not wrong, f"count of [DONE] in {listed(wrong)}"


@check("stream.framing.done-last", MUST, spec=OPENAI, needs=NEEDS, exchanges=AREA)
def test_done_last(vllm_recordings: Recordings) -> None:
    """Nothing comes after the end mark."""
    ended = [r for r in streams(vllm_recordings) if any(event.is_done for event in r.events)]
    need(ended, "no stream held an end mark")
    wrong = [f"{r.key}: {r.events[-1].data[:60]!r}" for r in ended if not r.events[-1].is_done]

    assert not wrong, f"the last event of {listed(wrong)}"


@check("stream.framing.closed", MUST, spec=SSE, needs=NEEDS, exchanges=AREA)
def test_closed(vllm_recordings: Recordings) -> None:
    """The last event is closed by a blank line, or clients drop it."""
    answered = streams(vllm_recordings)
    need(answered, "no stream was answered")
    wrong = [f"{r.key}: {r.unfinished[:60]!r}" for r in answered if r.unfinished]

    assert not wrong, listed(wrong)


@check("stream.end.clean", MUST, spec="rfc9110:section-6.1", needs=NEEDS, exchanges=AREA)
def test_clean(vllm_recordings: Recordings) -> None:
    """A stream ends as HTTP demands, not by a broken connection or by silence."""
    answered = streams(vllm_recordings)
    need(answered, "no stream was answered")
    wrong = [f"{r.key} after {r.seconds:.1f} s: {r.error}" for r in answered if r.error]

    assert not wrong, listed(wrong)


@check("stream.end.soon", MUST, spec="fault:waybarrios/vllm-mlx/issues/101", needs=NEEDS, exchanges=AREA)
def test_soon(vllm_recordings: Recordings) -> None:
    """A stream is over within two seconds of its last event."""
    spoken = [r for r in streams(vllm_recordings) if r.events]
    need(spoken, "no stream held an event")
    wrong = [
        f"{r.key}: {r.seconds - r.events[-1].at:.1f} s" for r in spoken if r.seconds - r.events[-1].at > 2
    ]

    assert not wrong, f"still open after the last event: {listed(wrong)}"


@check("stream.no-error", MUST, spec="fault:vllm-project/guidellm/issues/743", needs=NEEDS, exchanges=AREA)
def test_no_error(vllm_recordings: Recordings) -> None:
    """No stream of a valid request holds an error."""
    answered = streams(vllm_recordings)
    need(any(r.events for r in answered), "no stream held an event")
    objects = [
        (r, event) for r in answered for event in r.events if not event.is_done and not unreadable(event)
    ]
    wrong = [
        f"{r.key}: {event.data[:160]}"
        for r, event in objects
        if "error" in event.json or error_in(event.json)
    ]

    assert not wrong, listed(wrong)


@check("stream.framing.uncompressed", SHOULD, spec="sse:server-sent-events", needs=NEEDS, exchanges=AREA)
def test_compression(vllm_recordings: Recordings) -> None:
    """A stream comes uncompressed, so that nothing between holds it back."""
    answered = streams(vllm_recordings)
    need(answered, "no stream was answered")
    wrong = [f"{r.key}: {r.header('content-encoding')}" for r in answered if r.header("content-encoding")]

    assert not wrong, listed(wrong)
