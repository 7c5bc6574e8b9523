"""A stream: named events, numbered, from created to the end."""

from __future__ import annotations

from pytest_vllm import MUST, SHOULD, Recording, Recordings, Server, check, listed, need, parting, unexpected

from .exchanges import FEW, TOKENS
from .items import (
    ENDS,
    STREAMS_FROM,
    applies,
    begun,
    ends,
    events,
    final,
    kind,
    pieces,
    streams,
    words,
)

#: Seconds below which a client that was held up reads a whole stream in one go.
AT_ONCE = 0.5
SPEC = "openai:responses-streaming"
PROXY = "fault:maximhq/bifrost/issues/5504"
NEEDS = ("responses", "stream")
AREA = ("responses.",)


def answered(server: Server, recordings: Recordings) -> list[Recording]:
    """Every stream with events. Raises NotRun before streams, Undecided when there is none."""
    applies(server, STREAMS_FROM, "streams responses")
    found = [r for r in streams(recordings) if events(r)]
    need(found, "no stream held an event")
    return found


@check("responses.stream.answered", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_answered(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Every valid streaming request is answered with 200."""
    applies(vllm_server, STREAMS_FROM, "streams responses")
    wrong = unexpected(
        r
        for r in vllm_recordings.of("responses.")
        if r.request.streams and not r.key.startswith("responses.call")
    )

    assert not wrong, listed(wrong)


@check("responses.stream.filled", MUST, spec=PROXY, needs=NEEDS, exchanges=AREA)
def test_filled(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """A stream that is answered with 200 holds events."""
    applies(vllm_server, STREAMS_FROM, "streams responses")
    found = streams(vllm_recordings)
    need(found, "no stream was answered")
    empty = [r.key for r in found if not events(r)]

    assert not empty, f"no event in {listed(empty)}"


@check("responses.stream.content-type", MUST, spec="sse:text-event-stream", needs=NEEDS, exchanges=AREA)
def test_content_type(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """A stream is labelled `text/event-stream`."""
    labels = {r.key: r.header("content-type") for r in answered(vllm_server, vllm_recordings)}
    wrong = [
        f"{key}: {label!r}" for key, label in labels.items() if not label.startswith("text/event-stream")
    ]

    assert not wrong, listed(wrong)


@check("responses.stream.json", MUST, spec="rfc8259:section-2", needs=NEEDS, exchanges=AREA)
def test_json(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Every event is a JSON object."""
    counts = {
        r.key: (len(events(r)), len([e for e in r.events if not e.is_done]))
        for r in answered(vllm_server, vllm_recordings)
    }
    wrong = [
        f"{key}: {whole - good} of {whole} are none" for key, (good, whole) in counts.items() if good < whole
    ]

    assert not wrong, listed(wrong)


@check("responses.stream.named", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_named(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """An event's name is the type in its object."""
    named = [
        (r.key, event.name, event.json.get("type"))
        for r in answered(vllm_server, vllm_recordings)
        if len(events(r)) == len([e for e in r.events if not e.is_done])
        for event in r.events
        if not event.is_done
    ]
    need(named, "no stream consisted of objects")
    wrong = [f"{key}: {name!r} holds {held!r}" for key, name, held in named if name != held]

    assert not wrong, listed(wrong)


@check("responses.stream.numbered", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_numbered(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """Events are numbered 0, 1, 2 and so on."""
    numbers = {
        r.key: [e.get("sequence_number") for e in events(r) if kind(e).startswith("response.")]
        for r in answered(vllm_server, vllm_recordings)
    }
    wrong = [f"{key}: {found[:12]}" for key, found in numbers.items() if found != list(range(len(found)))]

    assert not wrong, listed(wrong)


@check("responses.stream.begins", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_begins(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """A stream begins with `response.created`, then `response.in_progress`."""
    first = {r.key: [kind(e) for e in events(r)[:2]] for r in answered(vllm_server, vllm_recordings)}
    expected = ["response.created", "response.in_progress"]
    wrong = [f"{key}: {found}" for key, found in first.items() if found != expected]

    assert not wrong, listed(wrong)


@check("responses.stream.ends", MUST, spec=PROXY, needs=NEEDS, exchanges=AREA)
def test_ends(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """A stream ends with exactly one event that ends the response."""
    told = {r.key: [kind(e) for e in events(r)] for r in answered(vllm_server, vllm_recordings)}
    wrong = [
        f"{key}: {sum(t in ENDS for t in types)}, the last event is {types[-1]}"
        for key, types in told.items()
        if sum(t in ENDS for t in types) != 1 or types[-1] not in ENDS
    ]

    assert not wrong, f"ending events in {listed(wrong)}"


@check("responses.stream.no-error", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_no_error(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """No stream of a valid request holds an error."""
    found = [(r.key, e) for r in answered(vllm_server, vllm_recordings) for e in events(r)]
    wrong = [
        f"{key}: {e}"[:200] for key, e in found if "error" in (kind(e), *e) or kind(e) == "response.failed"
    ]

    assert not wrong, listed(wrong)


@check("responses.stream.clean", MUST, spec="rfc9110:section-6.1", needs=NEEDS, exchanges=AREA)
def test_clean(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """A stream ends as HTTP demands, not by a broken connection or by silence."""
    applies(vllm_server, STREAMS_FROM, "streams responses")
    found = begun(vllm_recordings)
    need(found, "no stream began")
    wrong = [f"{r.key} after {r.seconds:.1f} s: {r.error}" for r in found if r.error]

    assert not wrong, listed(wrong)


@check("responses.stream.end-agrees", MUST, spec="fault:vllm-project/agentic-api/issues/273", needs=NEEDS)
def test_end_agrees(vllm_server: Server, responses_cut_stream: Recording) -> None:
    """The event that ends a stream is named after the status of its response."""
    applies(vllm_server, STREAMS_FROM, "streams responses")
    need(ends(responses_cut_stream), "no event ended the stream")
    status, name = final(responses_cut_stream).get("status"), kind(ends(responses_cut_stream)[-1])

    assert name == f"response.{status}", f"{name} holds a response whose status is {status!r}"


@check("responses.stream.status", MUST, spec="fault:vllm-project/vllm/issues/24184", needs=NEEDS)
def test_status(vllm_server: Server, responses_cut: Recording, responses_cut_stream: Recording) -> None:
    """A stream cut short ends with the status of the same answer in one piece."""
    applies(vllm_server, "0.16.0", "takes ignore_eos here")
    whole, last = responses_cut.ok, final(responses_cut_stream)
    need(last, "no event ended the stream")
    need(
        (last.get("usage") or {}).get("output_tokens") in (FEW, None),
        "the streamed answer ended before its limit",
    )
    pairs = [(last.get(name), whole.get(name)) for name in ("status", "incomplete_details")]

    assert pairs[0][0] == pairs[0][1], f"streamed {pairs[0][0]!r}, whole {pairs[0][1]!r}"
    assert pairs[1][0] == pairs[1][1], f"streamed {pairs[1][0]!r}, whole {pairs[1][1]!r}"


@check("responses.stream.one-id", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_one_id(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """A response has the same id from its first event to its last."""
    ids = {
        r.key: {str(e["response"].get("id")) for e in events(r) if isinstance(e.get("response"), dict)}
        for r in answered(vllm_server, vllm_recordings)
    }
    need(any(ids.values()), "no event held a response")
    wrong = [f"{key}: {sorted(found)}" for key, found in ids.items() if len(found) > 1]

    assert not wrong, listed(wrong)


@check("responses.stream.usage", MUST, spec=SPEC, needs=NEEDS)
def test_usage(vllm_server: Server, responses_cut: Recording, responses_cut_stream: Recording) -> None:
    """The last event counts the tokens that the same answer in one piece counts."""
    applies(vllm_server, "0.16.0", "takes ignore_eos here")
    need(final(responses_cut_stream), "no event ended the stream")
    names = ("input_tokens", "output_tokens", "total_tokens")
    whole, last = responses_cut.ok.get("usage") or {}, final(responses_cut_stream).get("usage") or {}
    here, there = [last.get(name) for name in names], [whole.get(name) for name in names]

    assert here == there, f"{', '.join(names)}: streamed {here}, whole {there}"


@check("responses.stream.same-text", MUST, spec=SPEC, needs=NEEDS)
def test_same_text(
    vllm_server: Server, responses_plain: Recording, responses_again: Recording, responses_stream: Recording
) -> None:
    """A greedy answer says the same in a stream as in one piece."""
    applies(vllm_server, STREAMS_FROM, "streams responses")
    whole, again, streamed = (
        words(responses_plain.ok),
        words(responses_again.ok),
        words(final(responses_stream)),
    )
    need(whole and streamed, "an answer said nothing")
    need(whole == again, "the server does not repeat its own greedy answers")

    assert streamed == whole, (
        f"they part at character {parting(streamed, whole)}: streamed {streamed!r:.60}, whole {whole!r:.60}"
    )


@check("responses.stream.pieces", MUST, spec=SPEC, needs=NEEDS)
def test_pieces(vllm_server: Server, responses_stream: Recording) -> None:
    """A text of a dozen tokens comes in several pieces, at more than one moment."""
    applies(vllm_server, STREAMS_FROM, "streams responses")
    times = list(pieces(responses_stream))
    made = (final(responses_stream).get("usage") or {}).get("output_tokens") or TOKENS
    need(times and made > FEW, "the model ended at once")

    assert len(times) > 1, f"{made} tokens came in one piece"
    short = responses_stream.seconds < AT_ONCE
    assert times[-1] > times[0] or short, f"all {len(times)} pieces arrived at {times[0]:.3f} s"


@check("responses.stream.whole-end", SHOULD, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_whole_end(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """The last event repeats the settings that the first one reported."""
    found = [r for r in answered(vllm_server, vllm_recordings) if final(r)]
    need(found, "no event ended a stream")
    names = ("model", "max_output_tokens", "temperature", "tool_choice")
    wrong = [
        f"{r.key}: {name} is {final(r).get(name)!r}, was {first.get(name)!r}"
        for r in found
        for first in [events(r)[0].get("response") or {}]
        for name in names
        if first.get(name) != final(r).get(name)
    ]

    assert not wrong, listed(wrong)
