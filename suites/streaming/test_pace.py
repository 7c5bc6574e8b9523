"""A stream comes as it is generated, not in one lump."""

from collections import Counter
from itertools import pairwise
from statistics import median

from pytest_vllm import MUST, PERFORMANCE, SHOULD, Recording, Recordings, check, need, observe, only_if

from .chunks import arrivals, chunks, joined, readable
from .exchanges import TOKENS

SPEC = "openai:chat-streaming"
PROXY = "fault:dstackai/dstack/issues/4269"
NEEDS = ("stream", "completions")
#: Seconds for which a client on a busy machine may not read, and not notice: it finds all that came at once.
UNREAD = 0.25
#: Streams that nothing runs beside; seconds of a gap that no step of an engine takes, and how much longer it
#: is than is usual in its stream.
ALONE = ("streaming.chat", "streaming.completion", "streaming.flow")
STILL, OFTEN = 1.5, 20
#: Pieces of a stream that say nothing of its flow.
FEW = 8


@check("stream.pace.pieces", MUST, spec=SPEC, needs=NEEDS)
def test_pieces(streaming_completion: Recording) -> None:
    """A text of a dozen tokens comes in several pieces."""
    need(joined(streaming_completion), "the stream held no text")
    pieces = len(arrivals(streaming_completion))

    assert pieces > 1, f"{TOKENS} tokens came in one piece"


@check("stream.pace.over-time", MUST, spec=PROXY, needs=NEEDS, exchanges=("streaming.",))
def test_over_time(vllm_recordings: Recordings) -> None:
    """The pieces of a stream do not all arrive at one moment, each time."""
    # A client that was held up reads some short streams in one go; what holds streams back does it to all.
    times = [found for one in readable(vllm_recordings) if len(found := arrivals(one)) > 1]
    need(times, "every text came in one piece")

    if any(found[-1] > found[0] for found in times):
        return
    longest = max(found[0] for found in times)
    only_if(
        longest >= UNREAD,
        f"each of {len(times)} streams was over within {longest:.3f} s, too soon to be held back",
    )
    raise AssertionError(
        f"all pieces of {len(times)} streams arrived at once, up to {longest:.3f} s after the request"
    )


@check("stream.pace.no-bursts", SHOULD, spec=PROXY, needs=NEEDS, family=PERFORMANCE)
def test_no_bursts(streaming_completion: Recording) -> None:
    """No single read of the connection brings half of the stream's pieces."""
    times = arrivals(streaming_completion)
    need(len(times) > 4, f"the text came in {len(times)} pieces")
    most = max(Counter(times).values())

    assert most * 2 <= len(times), f"{most} of {len(times)} pieces came in one read"


@check("stream.pace.no-stall", SHOULD, spec=SPEC, needs=NEEDS, family=PERFORMANCE)
def test_no_stall(streaming_completion: Recording) -> None:
    """No ten seconds pass between two pieces of a stream that runs alone."""
    times = arrivals(streaming_completion)
    need(len(times) > 1, "the text came in one piece")
    longest = max(later - earlier for earlier, later in pairwise(times))
    observe("longest gap between pieces", f"{longest:.3f} s")

    assert longest < 10, f"{longest:.1f} s without a piece"


@check("stream.pace.few-chunks", SHOULD, spec=SPEC, needs=NEEDS)
def test_few_chunks(streaming_completion: Recording) -> None:
    """A stream has at most one chunk for each token, and four more."""
    count = len(chunks(streaming_completion))
    need(count, "the stream held no chunk")

    assert count <= TOKENS + 4, f"{count} chunks for {TOKENS} tokens"


@check("stream.pace.flows", MUST, spec=SPEC, needs=NEEDS, family=PERFORMANCE, exchanges=("streaming.",))
def test_flows(vllm_recordings: Recordings) -> None:
    """Streams that run alone do not each stand still for long in their middle."""
    routes: dict[str, list[tuple[str, float, float]]] = {}
    lone = alone_of(vllm_recordings)
    for one in lone:
        if len(times := arrivals(one)) > FEW:
            gaps = [later - earlier for earlier, later in pairwise(times)]
            routes.setdefault(one.request.path, []).append((one.key, max(gaps), median(gaps)))
    judged = {path: rows for path, rows in routes.items() if len(rows) > 1}
    only_if(judged or not lone, "this server puts many tokens into a piece")
    need(judged, "no two streams of a route ran alone in several pieces")
    still = {path: [_stands(gap, usual) for _, gap, usual in rows] for path, rows in judged.items()}
    wrong = {path: judged[path] for path, found in still.items() if all(found)}

    assert not wrong, f"(stream, longest gap, usual gap) in seconds: {wrong}"


def alone_of(recordings: Recordings) -> list[Recording]:
    """The streams that ran alone and can be read."""
    return [one for one in readable(recordings) if one.key.partition("[")[0] in ALONE]


def _stands(gap: float, usual: float) -> bool:
    return gap >= STILL and gap >= OFTEN * usual
