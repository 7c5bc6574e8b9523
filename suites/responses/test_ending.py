"""How an answer ends, and what is reported about it."""

from pytest_vllm import MUST, Recording, Recordings, Server, check, listed, need

from .exchanges import FEW
from .items import applies, events, finished, items, kind, wholes

SPEC = "openai:responses/object"
EXHAUSTED = "fault:vllm-project/vllm/issues/24184"
NEEDS = ("responses",)


def cut(recording: Recording) -> dict[str, object]:
    """The response that its limit cut short. Raises Undecided where the model ended before."""
    body: dict[str, object] = recording.ok
    usage = body.get("usage")
    made = usage.get("output_tokens") if isinstance(usage, dict) else None
    need(not made or made == FEW, f"the model ended after {made} of {FEW} tokens")
    return body


@check("responses.status", MUST, spec=SPEC, needs=NEEDS, exchanges=("responses.",))
def test_status(vllm_recordings: Recordings) -> None:
    """A whole answer is either completed or incomplete."""
    answers = wholes(vllm_recordings)
    need(answers, "no request was answered")
    wrong = [
        f"{r.key}: {r.ok.get('status')!r}"
        for r in answers
        if r.ok.get("status") not in ("completed", "incomplete")
    ]

    assert not wrong, listed(wrong)


@check("responses.cut.status", MUST, spec=EXHAUSTED, needs=NEEDS)
def test_cut(responses_cut: Recording) -> None:
    """An answer that the limit of tokens cuts short is incomplete."""
    body = cut(responses_cut)

    assert body.get("status") == "incomplete", f"status is {body.get('status')!r} after {FEW} tokens of {FEW}"


@check("responses.cut.reason", MUST, spec=EXHAUSTED, needs=NEEDS)
def test_reason(responses_cut: Recording) -> None:
    """An incomplete answer says that the limit of tokens was the reason."""
    body = cut(responses_cut)
    need(body.get("status") == "incomplete", f"status is {body.get('status')!r}")

    assert body.get("incomplete_details") == {"reason": "max_output_tokens"}, (
        f"incomplete_details is {body.get('incomplete_details')!r}"
    )


@check("responses.cut.tokens", MUST, spec=EXHAUSTED, needs=NEEDS)
def test_tokens(vllm_server: Server, responses_cut: Recording) -> None:
    """An answer that was cut short counts as many tokens as it was allowed."""
    applies(vllm_server, "0.16.0", "takes ignore_eos here")
    made = (responses_cut.ok.get("usage") or {}).get("output_tokens")

    assert made == FEW, f"{made} output tokens are counted, {FEW} were allowed"


@check("responses.cut.item", MUST, spec="fault:vllm-project/vllm/issues/57998", needs=NEEDS)
def test_item(responses_cut: Recording) -> None:
    """The last item of an answer that was cut short is incomplete, too."""
    body = cut(responses_cut)
    need(body.get("status") == "incomplete", f"status is {body.get('status')!r}")
    found = items(body)
    need(found, "the answer held no item")

    assert found[-1].get("status") == "incomplete", (
        f"the response is incomplete, its last item {found[-1].get('status')!r}"
    )


@check("responses.completed.no-details", MUST, spec=SPEC, needs=NEEDS, exchanges=("responses.",))
def test_no_details(vllm_recordings: Recordings) -> None:
    """Only an incomplete answer says what is missing, only a failed one an error."""
    answers = wholes(vllm_recordings)
    need(answers, "no request was answered")
    wrong = [
        f"{r.key}: {r.ok.get('incomplete_details') or r.ok.get('error')!r} in a {r.ok.get('status')} answer"
        for r in answers
        if r.ok.get("error") or (r.ok.get("status") == "completed" and r.ok.get("incomplete_details"))
    ]

    assert not wrong, listed(wrong)


@check(
    "responses.cut.stream-item",
    MUST,
    spec="fault:vllm-project/vllm/issues/57998",
    needs=("responses", "stream"),
)
def test_stream_item(vllm_server: Server, responses_cut_stream: Recording) -> None:
    """In a stream that is cut short, the last item is incomplete."""
    applies(vllm_server, "0.16.0", "takes ignore_eos here")
    ended = finished(responses_cut_stream)
    need(ended, f"no item ended among {[kind(event) for event in events(responses_cut_stream)][-3:]}")
    last = ended[max(ended)]

    assert last.get("status") == "incomplete", f"its status is {last.get('status')!r}"
