"""What a client leaves does not touch the others."""

from pytest_vllm import MUST, SHOULD, Recording, Recordings, check, need, only_if, unexpected

from .exchanges import ENOUGH, NEIGHBOUR, asked

SPEC = "fault:LMCache/LMCache/issues/3688"
NEEDS = ("completions", "stream")


@check("cancellation.answered", MUST, spec=SPEC, needs=NEEDS, exchanges=("cancellation.",))
def test_answered(vllm_recordings: Recordings) -> None:
    """The requests that will be left are answered at first, as are the others."""
    wrong = unexpected(vllm_recordings.of("cancellation."))

    assert not wrong, "; ".join(wrong)


@check("cancellation.alive", MUST, spec=SPEC, needs=NEEDS, exchanges=("cancellation.after-round",))
def test_alive(vllm_recordings: Recordings) -> None:
    """The server generates after each of several streams that were left."""
    rounds = vllm_recordings.of("cancellation.round[")
    left = {r.key.partition("[")[2] for r in rounds if r.aborted}
    only_if(
        left or asked(rounds[0]) >= ENOUGH, "a context this short ends a stream before its client can leave"
    )
    need(left, "every stream ended before it was left")
    after = vllm_recordings.of("cancellation.after-round[")
    dead = [
        f"{r.key}: {r.status or r.error}"
        for r in after
        if r.status != 200 and r.key.partition("[")[2] in left
    ]

    assert not dead, f"one token was asked for afterwards and did not come: {'; '.join(dead)}"


def spoken(stream: Recording) -> list[dict[str, object]]:
    """The choices of a stream, in order."""
    return [choice for chunk in stream.deltas for choice in chunk.get("choices", [])]


@check("cancellation.neighbour.finishes", MUST, spec=SPEC, needs=NEEDS)
def test_neighbour_finishes(cancellation_neighbour: Recording) -> None:
    """A stream that stays is not ended because others are left."""
    reasons = [choice.get("finish_reason") for choice in spoken(cancellation_neighbour)]
    ends = [reason for reason in reasons if reason]

    need(ends or cancellation_neighbour.error, "the stream gives no finish reason")

    lost = not ends or {"abort", "error"} & {str(end) for end in ends}

    assert not lost, f"finish reasons {ends}, {cancellation_neighbour.error or 'closed cleanly'}"


@check("cancellation.neighbour.whole", MUST, spec=SPEC, needs=NEEDS)
def test_neighbour_whole(cancellation_neighbour: Recording) -> None:
    """A stream that stays gets every token that it asked for."""
    usages = [chunk["usage"] for chunk in cancellation_neighbour.deltas if chunk.get("usage")]
    need(usages, "the stream gives no usage")
    tokens = usages[-1]["completion_tokens"]

    assert tokens == NEIGHBOUR, f"{tokens} of {NEIGHBOUR} tokens"


@check("cancellation.neighbour.beside", SHOULD, spec=SPEC, needs=NEEDS, exchanges=("cancellation.round",))
def test_neighbour_beside(vllm_recordings: Recordings, cancellation_neighbour: Recording) -> None:
    """A stream runs on to its end mark while others, beside it, are left."""
    start, end = cancellation_neighbour.sent, cancellation_neighbour.sent + cancellation_neighbour.seconds
    rounds = [r for r in vllm_recordings.of("cancellation.round[") if r.aborted]
    beside = [r for r in rounds if start <= r.sent + r.seconds <= end]
    need(beside, "no stream was left while it ran")

    assert any(event.is_done for event in cancellation_neighbour.events), (
        f"{len(beside)} streams were left beside it; {cancellation_neighbour.error or 'no end mark'}"
    )
