"""Who an answer says that it is, in each of its events, and why it says that it ended."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pytest_vllm import MUST, Recordings, Server, check, listed, observe, only_if

from .answers import CHAT, COMPLETIONS, MESSAGES, RESPONSES, answers

if TYPE_CHECKING:
    from .answers import Answer
    from .apis import Choice

SPEC = "openai:chat-streaming"
#: Route -> the reasons for which an answer with status 200 may end.
ENDS = {
    CHAT: {"stop", "length", "tool_calls", "function_call", "content_filter", "repetition"},
    COMPLETIONS: {"stop", "length", "content_filter", "repetition"},
    RESPONSES: {"completed", "max_output_tokens", "content_filter", "queued", "in_progress"},
    MESSAGES: {"end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal"},
}


@check("oracle.events.one-id", MUST, spec=SPEC, exchanges=["*"])
def test_one_id(vllm_recordings: Recordings) -> None:
    """All events of a stream name the same answer, the same model and the same time."""
    streams = [one for one in answers(vllm_recordings) if one.streams]
    only_if(streams, "no stream was answered")
    wrong = [
        f"{one.key}: {name} {sorted(map(str, set(values)))[:3]}"
        for one in streams
        for name, values in (("id", one.ids), ("model", one.models), ("created", one.created))
        if len(set(values)) > 1
    ]

    assert not wrong, listed(wrong)


@check("oracle.events.own-id", MUST, spec=SPEC, exchanges=["*"])
def test_own_id(vllm_recordings: Recordings) -> None:
    """No two answers of a run share an id, over all routes."""
    named = [(one.ids[0], one.key) for one in answers(vllm_recordings) if one.ids and one.ids[0]]
    only_if(len(named) > 1, "fewer than two answers have an id")
    sent = [one.request.headers.get("X-Request-Id") for one in vllm_recordings.of("")]
    brought = tuple(filter(None, sent))
    counts = Counter(id_ for id_, _ in named if not any(one in str(id_) for one in brought))
    wrong = [f"{key}: {id_}" for id_, key in named if counts[id_] > 1]

    assert not wrong, f"an id that another answer has too: {listed(wrong)}"


@check("oracle.events.asked-id", MUST, spec="vllm:serving/openai_compatible_server/", exchanges=["*"])
def test_asked_id(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """Each answer to a request with an `X-Request-Id` has that in its id."""
    kept = [one for one in vllm_recordings.of("") if vllm_server.kind.starts or not one.renamed]
    sent = {one.key: one.request.headers.get("X-Request-Id") for one in kept}
    rows = [(one, sent[one.key]) for one in answers(vllm_recordings) if sent.get(one.key)]
    named = [(one, str(own)) for one, own in rows if one.path in (CHAT, COMPLETIONS)]
    only_if(named, "no request brought an id")
    observe("requests with an id", len(named))
    wrong = [
        f"{one.key}: {own!r} sent, {one.ids[:1]} told" for one, own in named if own not in str(one.ids[:1])
    ]

    assert not wrong, listed(wrong)


@check(
    "oracle.events.item-ids",
    MUST,
    spec="fault:vllm-project/vllm/issues/56285",
    needs=["responses", "stream"],
    exchanges=["*"],
)
def test_item_ids(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """A streamed item of a response ends with the id that the last event gives it."""
    only_if(vllm_server.at_least("0.11.0"), "vLLM streams this interface for all models from 0.11.0 on")
    streams = [one for one in answers(vllm_recordings) if one.items]
    only_if(streams, "no stream of a response held an item that ended")
    wrong = [
        f"{one.key}: ended as {ended}, reported as {told}"
        for one in streams
        for ended, told in one.items
        if ended != told
    ]

    assert not wrong, listed(wrong)


@check("oracle.events.model", MUST, spec="openai:chat/object", exchanges=["*"])
def test_model(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """Every answer names the model that it was asked of, or another served name."""
    named = [one for one in answers(vllm_recordings) if any(one.models)]
    only_if(named, "no answer names its model")
    served = {*vllm_server.models, vllm_server.model}
    wrong = [
        f"{one.key}: {model!r}, asked of {one.asked.get('model')!r}"
        for one in named
        for model in sorted({str(name) for name in one.models if name})
        if model not in served | {str(one.asked.get("model"))}
    ]

    assert not wrong, listed(wrong)


@check("oracle.finish.known", MUST, spec="openai:chat/object", exchanges=["*"])
def test_known(vllm_recordings: Recordings) -> None:
    """Every answer gives one reason for its end, and one that its route has."""
    rows = [
        (one, choice)
        for one in answers(vllm_recordings)
        for choice in one.choices
        if not one.asked.get("background")
    ]
    wrong = [
        f"{one.key}: {list(choice.finish)}"
        for one, choice in rows
        if len(choice.finish) != 1 or choice.finish[0] not in ENDS[one.path]
    ]

    assert not wrong, listed(wrong)


@check("oracle.finish.calls", MUST, spec="openai:chat/object", exchanges=["*"])
def test_calls(vllm_recordings: Recordings) -> None:
    """An answer that ends with a call holds one.

    One that had to call and ended within its reasoning is judged where calls are required (vllm#53255).
    """
    rows = [(one, c) for one in answers(vllm_recordings) for c in one.choices if not _thinks_on(one, c)]
    called = [(one, c) for one, c in rows if c.finish[-1:] in (("tool_calls",), ("tool_use",))]
    only_if(called, "no answer ended with a call")
    wrong = [one.key for one, choice in called if not choice.calls and not one.streams]
    wrong += [one.key for one, c in called if one.streams and one.path == CHAT and not c.calls]

    assert not wrong, f"no call in: {listed(wrong)}"


def _thinks_on(one: Answer, choice: Choice) -> bool:
    """Whether a call was required and the model ended before its reasoning did."""
    required = one.asked.get("tool_choice") == "required"
    return required and not choice.calls and not choice.content.strip() and choice.text != choice.content
