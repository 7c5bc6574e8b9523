"""What reaches the model and what comes back: no part of a conversation is lost, no character turned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm import (
    MUST,
    Case,
    Recording,
    Recordings,
    Server,
    check,
    listed,
    need,
    observe,
    only_if,
    parting,
)

from .contents import LINES
from .items import STREAMS_FROM, applies, events, final, kind, spoken, wholes
from .test_state import STORE

if TYPE_CHECKING:
    from collections.abc import Iterator

SPEC = "openai:responses/create"
STREAMING = "openai:responses-streaming"
#: Tokens by which conversations may differ that are joined otherwise; every part has several times as many.
JOINTS = 24
#: Fewer tokens than the shortest instructions of this suite have.
FEW = 6
#: Seconds of a day: clocks of servers and clients may be in different zones, and no more.
DAY = 86_400


@check("responses.text.lines", MUST, spec=SPEC, needs=["responses", "structured-output"])
def test_lines(vllm_server: Server, response_form: Case, responses_lines: Recording) -> None:
    """A text that is the only possible one keeps its line breaks, blanks and marks."""
    forced = "structured_outputs" in responses_lines.request.json
    only_if(forced, "this version takes no pattern over this route")
    ended = [text for _, text in _said(responses_lines)]
    only_if(any(ended), "no text came: the tokens went into reasoning")
    said, possible = ended[0], LINES
    if vllm_server.can("reasoning"):  # its parser may cut what stands around the text
        said, possible = said.strip(), possible.strip()
    begin = max(0, parting(said, possible) - 20)

    assert said == possible, (
        f"{response_form.id}: {said[begin : begin + 40]!r}, possible was {possible[begin : begin + 40]!r}"
    )


@check("responses.stream.text-kept", MUST, spec=STREAMING, needs=["responses", "stream"])
def test_kept(vllm_server: Server, response_form: Case, responses_lines: Recording) -> None:
    """A stream's pieces, the events that hold all of a text, and its end agree."""
    only_if(response_form["set"], "it is not streamed")
    applies(vllm_server, STREAMS_FROM, "streams responses")
    told = list(_said(responses_lines))
    need(told, "the stream held no text")
    first = told[0][1]
    wrong = [f"{where}: {text[-60:]!r}" for where, text in told if text != first]

    assert not wrong, f"pieces say {first[-60:]!r}, {'; '.join(wrong)}"


@check("responses.told.purpose", MUST, spec="openai:responses/object", needs=["responses"])
def test_purpose(vllm_server: Server, response_form: Case, responses_lines: Recording) -> None:
    """Metadata of a request come back with its response, whole or streamed."""
    if response_form["set"]:
        applies(vllm_server, STREAMS_FROM, "streams responses")
        need(final(responses_lines), "the stream ended without a response")
    body = final(responses_lines) if response_form["set"] else responses_lines.ok
    asked = responses_lines.request.json["metadata"]

    assert body.get("metadata") == asked, f"{response_form.id}: metadata are {body.get('metadata')!r}"


@check("responses.input.several", MUST, spec=SPEC, needs=["responses", "chat", "tools", "tokenize"])
def test_several(responses_several: Recording, responses_several_count: Recording) -> None:
    """No part of a turn or of a tool's long result is lost on the way to the model."""
    for one in (responses_several, responses_several_count):
        one.answered()
        only_if(one.status != 400, f"{one.key} is refused: {one.text[:120]}")
    here, chat = responses_several.ok["usage"]["input_tokens"], responses_several_count.ok["count"]
    observe("tokens, and those as a chat", f"{here}, {chat}")

    assert here >= chat - JOINTS, f"{here} tokens, as a chat the same conversation has {chat}"


@check("responses.input.said-in-parts", MUST, spec=SPEC, needs=["responses", "chat", "tools", "tokenize"])
def test_said_in_parts(responses_several: Recording, responses_several_said: Recording) -> None:
    """No part of what the model said before is lost on the way back to it."""
    for one in (responses_several, responses_several_said):
        one.answered()
        only_if(one.status != 400, f"{one.key} is refused: {one.text[:120]}")
    whole, parts = (one.ok["usage"]["input_tokens"] for one in (responses_several, responses_several_said))
    observe("tokens in one part, in two", f"{whole}, {parts}")

    assert parts >= whole - JOINTS, f"{parts} tokens in two parts, {whole} in one"


@check("responses.input.system-item", MUST, spec=SPEC, needs=["responses"])
def test_system_item(
    vllm_server: Server, responses_instructed: Recording, responses_system: Recording
) -> None:
    """A system message among the items reaches the model as instructions do."""
    own = str(vllm_server.args.get("reasoning-parser") or "").startswith("openai")
    only_if(not own, "this model's conversations are not rendered by a chat template")
    refused = [one.key for one in (responses_instructed, responses_system) if one.status == 400]
    only_if(not refused, f"{', '.join(refused)} refused")
    told, sent = (one.ok["usage"]["input_tokens"] for one in (responses_instructed, responses_system))

    assert abs(told - sent) < FEW, f"{told} input tokens with instructions, {sent} with a system message"


@check("responses.state.instructed", MUST, spec=f"{SPEC}#instructions", needs=["responses"])
def test_instructed(
    responses_stored: Recording,
    responses_continued: Recording,
    responses_stored_instructed: Recording,
    responses_continued_told: Recording,
) -> None:
    """Instructions hold for a response that goes on from another one, too."""
    only_if(responses_continued.status not in (400, 404), STORE)
    refused = 400 in (responses_stored_instructed.status, responses_continued_told.status)
    only_if(not refused, "this template takes no instructions")
    rows = (responses_stored, responses_stored_instructed, responses_continued, responses_continued_told)
    plain, instructed, after, told = (one.ok["usage"]["input_tokens"] for one in rows)
    only_if(instructed - plain > JOINTS, "instructions are no part of this template's prompt")

    assert told - after > (instructed - plain) / 2, (
        f"{told} input tokens with instructions, {after} without; at first they took {instructed - plain}"
    )


def _said(recording: Recording) -> Iterator[tuple[str, str]]:
    """Where an answer says its whole text -> that text; of a stream its pieces, joined, first."""
    if not recording.request.streams:
        yield "the answer", spoken(recording.ok)
        return
    found = events(recording)
    pieces = [str(one.get("delta") or "") for one in found if kind(one) == "response.output_text.delta"]
    if pieces:
        yield "the pieces", "".join(pieces)
        for one in found:
            if kind(one) == "response.output_text.done":
                yield kind(one), str(one.get("text"))
            part = one.get("part") if kind(one) == "response.content_part.done" else None
            if isinstance(part, dict) and part.get("type") == "output_text":
                yield kind(one), str(part.get("text"))
        yield "the last event", spoken(final(recording))


@check(
    "responses.created", MUST, spec="openai:responses/object", needs=["responses"], exchanges=["responses."]
)
def test_created(vllm_recordings: Recordings) -> None:
    """A response is dated in seconds, and by the day on which it was made."""
    told = [(one.key, one.sent, one.ok.get("created_at")) for one in wholes(vllm_recordings)]
    dated = [(key, sent, at) for key, sent, at in told if isinstance(at, int | float)]
    need(dated, "no response is dated")
    wrong = [f"{key}: {at}, sent at {sent:.0f}" for key, sent, at in dated if abs(at - sent) > DAY]

    assert not wrong, listed(wrong)
