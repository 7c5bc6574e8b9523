"""A stream: a message that begins, blocks that begin and end, a message that ends."""

from __future__ import annotations

from pytest_vllm import MUST, Recording, Recordings, Server, check, listed, need, only_if, parting, unexpected

from .blocks import (
    DELTAS,
    delta,
    events,
    first_word,
    kind,
    last_word,
    names_stops,
    pieces,
    prompt_tokens,
    spoken,
    streamed,
    streams,
    words,
)
from .exchanges import TOKENS, stop_of

#: Seconds below which a client that was held up reads a whole stream in one go.
AT_ONCE = 0.5
SPEC = "anthropic:messages-streaming"
BLOCKS = "fault:BerriAI/litellm/issues/30043"
ZEROS = "fault:BerriAI/litellm/issues/24176"
NEEDS = ("messages", "stream")
AREA = ("messages.",)


def filled(recordings: Recordings) -> list[Recording]:
    """Every stream with events. Raises Undecided when there is none."""
    found = [r for r in streams(recordings) if events(r)]
    need(found, "no stream held an event")
    return found


@check("messages.stream.answered", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_answered(vllm_recordings: Recordings) -> None:
    """Every valid streaming request is answered with 200."""
    wrong = unexpected(
        r
        for r in vllm_recordings.of("messages.")
        if r.request.streams and not r.key.startswith("messages.call")
    )

    assert not wrong, listed(wrong)


@check("messages.stream.filled", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_filled(vllm_recordings: Recordings) -> None:
    """A stream that is answered with 200 holds events."""
    found = streams(vllm_recordings)
    need(found, "no stream was answered")
    empty = [r.key for r in found if not events(r)]

    assert not empty, f"no event in {listed(empty)}"


@check("messages.stream.content-type", MUST, spec="sse:text-event-stream", needs=NEEDS, exchanges=AREA)
def test_content_type(vllm_recordings: Recordings) -> None:
    """A stream is labelled `text/event-stream`."""
    labels = {r.key: r.header("content-type") for r in filled(vllm_recordings)}
    wrong = [
        f"{key}: {label!r}" for key, label in labels.items() if not label.startswith("text/event-stream")
    ]

    assert not wrong, listed(wrong)


@check("messages.stream.named", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_named(vllm_recordings: Recordings) -> None:
    """Every event is an object and named after the type in it."""
    named = [(r.key, e.name, e.data) for r in filled(vllm_recordings) for e in r.events if not e.is_done]
    wrong = [
        f"{key}: {name!r} holds {data[:50]!r}"
        for key, name, data in named
        if not name or f'"type":"{name}"' not in data.replace(" ", "")
    ]

    assert not wrong, listed(wrong)


@check("messages.stream.begins", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_begins(vllm_recordings: Recordings) -> None:
    """A stream begins with `message_start`, and holds it once."""
    told = {r.key: [kind(e) for e in events(r)] for r in filled(vllm_recordings)}
    wrong = [
        f"{key}: {types[0]} first, {types.count('message_start')} in all"
        for key, types in told.items()
        if types[0] != "message_start" or types.count("message_start") != 1
    ]

    assert not wrong, listed(wrong)


@check("messages.stream.ends", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_ends(vllm_recordings: Recordings) -> None:
    """A stream ends with one `message_delta` and `message_stop`."""
    told = {r.key: [kind(e) for e in events(r) if kind(e) != "ping"] for r in filled(vllm_recordings)}
    last = ["message_delta", "message_stop"]
    wrong = [
        f"{key}: {types[-3:]}"
        for key, types in told.items()
        if types[-2:] != last or any(types.count(name) != 1 for name in last)
    ]

    assert not wrong, f"the last events are {listed(wrong)}"


@check("messages.stream.no-error", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_no_error(vllm_recordings: Recordings) -> None:
    """No stream of a valid request holds an error."""
    found = [(r.key, e) for r in filled(vllm_recordings) for e in events(r)]
    wrong = [f"{key}: {e}"[:200] for key, e in found if "error" in (kind(e), *e)]

    assert not wrong, listed(wrong)


@check("messages.stream.clean", MUST, spec="rfc9110:section-6.1", needs=NEEDS, exchanges=AREA)
def test_clean(vllm_recordings: Recordings) -> None:
    """A stream ends as HTTP demands, not by a broken connection or by silence."""
    wrong = [f"{r.key} after {r.seconds:.1f} s: {r.error}" for r in filled(vllm_recordings) if r.error]

    assert not wrong, listed(wrong)


@check("messages.stream.blocks", MUST, spec=BLOCKS, needs=NEEDS, exchanges=AREA)
def test_blocks(vllm_recordings: Recordings) -> None:
    """Blocks are counted from 0, one begins after the other has ended, and all end."""
    wrong = []
    for recording in filled(vllm_recordings):
        steps = [
            (kind(e).removeprefix("content_block_"), e.get("index"))
            for e in events(recording)
            if kind(e) in ("content_block_start", "content_block_stop")
        ]
        expected = [(what, number) for number in range((len(steps) + 1) // 2) for what in ("start", "stop")]
        if steps != expected:
            wrong.append(f"{recording.key}: {steps}")

    assert not wrong, listed(wrong)


@check("messages.stream.inside", MUST, spec=BLOCKS, needs=NEEDS, exchanges=AREA)
def test_inside(vllm_recordings: Recordings) -> None:
    """Every piece belongs to the open block and is of its type."""
    wrong = []
    for recording in filled(vllm_recordings):
        open_block: tuple[object, str] | None = None
        for event in events(recording):
            if kind(event) == "content_block_start":
                open_block = (event.get("index"), str((event.get("content_block") or {}).get("type")))
            elif kind(event) == "content_block_stop":
                open_block = None
            elif kind(event) == "content_block_delta":
                piece = (event.get("index"), delta(event).get("type"))
                allowed = (
                    [(open_block[0], name) for name in DELTAS.get(open_block[1], ())] if open_block else []
                )
                if piece not in allowed:
                    wrong.append(f"{recording.key}: {piece} in block {open_block}")

    assert not wrong, listed(wrong)


@check("messages.stream.usage-first", MUST, spec=ZEROS, needs=NEEDS, exchanges=AREA)
def test_usage_first(vllm_recordings: Recordings) -> None:
    """The first event reports the tokens of the prompt."""
    found = {r.key: first_word(r).get("usage") for r in filled(vllm_recordings) if first_word(r)}
    need(found, "no stream began with a message")
    wrong = [f"{key}: {usage}" for key, usage in found.items() if not prompt_tokens(usage)]

    assert not wrong, listed(wrong)


@check("messages.stream.usage", MUST, spec=ZEROS, needs=NEEDS)
def test_usage(messages_cut: Recording, messages_cut_stream: Recording) -> None:
    """The last event counts the tokens that the same answer in one piece counts."""
    last = last_word(messages_cut_stream)
    need(last, "the stream held no message_delta")
    whole, here = messages_cut.ok.get("usage") or {}, last.get("usage") or {}
    need(prompt_tokens(whole), "the whole answer counts no tokens of the prompt")

    assert here.get("output_tokens") == whole.get("output_tokens"), f"streamed {here}, whole {whole}"
    assert prompt_tokens(here) in (0, prompt_tokens(whole)), f"streamed {here}, whole {whole}"


@check("messages.stream.reason", MUST, spec=SPEC, needs=NEEDS)
def test_reason(messages_cut: Recording, messages_cut_stream: Recording) -> None:
    """A stream stops for the reason for which the same answer in one piece stops."""
    last = last_word(messages_cut_stream)
    need(last, "the stream held no message_delta")
    here, there = delta(last).get("stop_reason"), messages_cut.ok.get("stop_reason")

    assert here == there, f"streamed {here!r}, whole {there!r}"


@check("messages.stream.reason-last", MUST, spec=SPEC, needs=NEEDS, exchanges=AREA)
def test_reason_last(vllm_recordings: Recordings) -> None:
    """A message that begins has no stop reason yet, and no content."""
    found = {r.key: first_word(r) for r in filled(vllm_recordings) if first_word(r)}
    need(found, "no stream began with a message")
    wrong = [
        f"{key}: stop_reason {one.get('stop_reason')!r}, content {one.get('content')!r:.60}"
        for key, one in found.items()
        if one.get("stop_reason") is not None or one.get("content")
    ]

    assert not wrong, listed(wrong)


@check("messages.stream.sequence", MUST, spec=SPEC, needs=NEEDS)
def test_sequence(
    vllm_server: Server,
    messages_plain: Recording,
    messages_again: Recording,
    messages_stopped_stream: Recording,
) -> None:
    """In a stream, too, a stop sequence ends the answer, is named, and is left out."""
    names_stops(vllm_server)
    stop, whole, again = stop_of(messages_again), spoken(messages_plain.ok), spoken(messages_again.ok)
    only_if(whole, "the model answers with reasoning alone")
    need(stop in whole and whole == again, "the server does not repeat its own greedy answers")
    last = delta(last_word(messages_stopped_stream))
    need(last, "the stream held no message_delta")
    told = (last.get("stop_reason"), last.get("stop_sequence"))

    assert told == ("stop_sequence", stop), f"stop_reason and stop_sequence are {told}, not {stop!r}"
    assert stop not in streamed(messages_stopped_stream), f"{stop!r} is in the text"


@check("messages.stream.same-text", MUST, spec=SPEC, needs=NEEDS)
def test_same_text(messages_plain: Recording, messages_again: Recording, messages_stream: Recording) -> None:
    """A greedy answer says the same in a stream as in one piece."""
    whole, again, here = words(messages_plain.ok), words(messages_again.ok), streamed(messages_stream)
    need(whole and here, "an answer said nothing")
    need(whole == again, "the server does not repeat its own greedy answers")

    assert here == whole, f"they part at character {parting(here, whole)}: {here!r:.60}, whole {whole!r:.60}"


@check("messages.stream.pieces", MUST, spec=SPEC, needs=NEEDS)
def test_pieces(messages_stream: Recording) -> None:
    """A text of a dozen tokens comes in several pieces, at more than one moment."""
    times = list(pieces(messages_stream))
    made = (last_word(messages_stream).get("usage") or {}).get("output_tokens") or TOKENS
    need(times and made > 4, "the model ended at once")

    assert len(times) > 1, f"{made} tokens came in one piece"
    short = messages_stream.seconds < AT_ONCE
    assert times[-1] > times[0] or short, f"all {len(times)} pieces arrived at {times[0]:.3f} s"
