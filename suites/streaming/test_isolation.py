"""Streams that run side by side do not mix."""

from collections import Counter

from pytest_vllm import MUST, Recordings, check, listed, need, observe

from .chunks import choices, chunks, joined, readable
from .exchanges import NONCES

SPEC = "fault:vllm-project/vllm/issues/13408"


@check(
    "stream.isolation.own-word",
    MUST,
    spec=SPEC,
    needs=("stream", "completions"),
    exchanges=("streaming.nonce",),
)
def test_own_word(vllm_recordings: Recordings) -> None:
    """Each of several streams that repeat their prompt repeats its own."""
    answered = [r for r in vllm_recordings.of("streaming.nonce[") if r.status == 200]
    need(answered, "no stream was answered")
    observe("most streams at one time", side_by_side([(r.sent, r.sent + r.seconds) for r in answered]))
    texts = {r.key: (r.request.json["prompt"], joined(r)) for r in answered}
    wrong = [f"{key}: {text[:60]!r}" for key, (prompt, text) in texts.items() if not text.startswith(prompt)]

    assert not wrong, listed(wrong)


@check(
    "stream.isolation.no-other-word",
    MUST,
    spec=SPEC,
    needs=("stream", "completions"),
    exchanges=("streaming.",),
)
def test_no_other_word(vllm_recordings: Recordings) -> None:
    """No stream holds the word of another request."""
    spoken = [(r.key, joined(r), str(r.request.json)) for r in readable(vllm_recordings)]
    need(any(text for _, text, _ in spoken), "no stream held text")
    wrong = [
        f"{key} holds {word!r}"
        for key, text, request in spoken
        for word in NONCES
        if word in text and word not in request
    ]

    assert not wrong, listed(wrong)


@check("stream.isolation.own-id", MUST, spec=SPEC, needs=("stream",), exchanges=("streaming.",))
def test_own_id(vllm_recordings: Recordings) -> None:
    """No two streams share an id."""
    ids = Counter(chunks(r)[0].get("id") for r in readable(vllm_recordings) if chunks(r))
    need(ids.total() > 1, "fewer than two streams held a chunk")
    twice = [str(id_) for id_, count in ids.items() if count > 1]

    assert not twice, f"used more than once: {listed(twice)}"


@check(
    "stream.isolation.own-constraint",
    MUST,
    spec="fault:vllm-project/vllm/issues/9910",
    needs=("stream", "completions", "logprobs"),
    exchanges=("streaming.only-token",),
)
def test_own_constraint(vllm_recordings: Recordings) -> None:
    """Each of several streams that may use one token only uses its own."""
    answered = [r for r in vllm_recordings.of("streaming.only-token[") if r.status == 200]
    need(answered, "no stream was answered")
    observe("most streams at one time", side_by_side([(r.sent, r.sent + r.seconds) for r in answered]))
    used = {
        r.key: (
            f"token_id:{r.request.json['allowed_token_ids'][0]}",
            {token for choice in choices(r) for token in (choice.get("logprobs") or {}).get("tokens", [])},
        )
        for r in answered
    }
    need(any(found for _, found in used.values()), "no stream named its tokens")
    wrong = [
        f"{key}: {sorted(found)[:3]}, allowed {own}" for key, (own, found) in used.items() if found - {own}
    ]

    assert not wrong, listed(wrong)


def side_by_side(spans: list[tuple[float, float]]) -> int:
    """The most spans that hold one moment."""
    return max(sum(start <= moment < end for start, end in spans) for moment, _ in spans)
