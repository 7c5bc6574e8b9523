"""What a server keeps of responses: turns before, work in the background. And tools that take plain text."""

from __future__ import annotations

from pytest_vllm import MUST, SHOULD, Recording, Server, check, need, only_if

from .exchanges import called, message_parts

SPEC = "openai:responses/create"
NEEDS = ("responses",)
CALLS = (*NEEDS, "tools", "tools.required")
#: Tokens by which two answers of four tokens, taken back as history, may differ.
KEPT = 16
STORE = "responses are not stored (VLLM_ENABLE_RESPONSES_API_STORE)"


@check("responses.state.counted", MUST, spec=f"{SPEC}#previous_response_id", needs=NEEDS)
def test_counted(responses_stored: Recording, responses_continued: Recording) -> None:
    """What went before is part of the prompt that goes on from it."""
    only_if(responses_continued.status not in (400, 404), STORE)
    first = responses_stored.ok["usage"]["input_tokens"]
    second = responses_continued.ok["usage"]["input_tokens"]

    assert second > first, f"{second} input tokens after a turn of {first}, for the same question"


@check("responses.state.kept", MUST, spec="fault:BerriAI/litellm/issues/26147", needs=NEEDS)
def test_kept(
    responses_background: Recording, responses_stored: Recording, responses_continued: Recording
) -> None:
    """Where responses are kept, one can be gone on from."""
    only_if(responses_background.status == 200, STORE)
    need(responses_stored.status == 200, "there is no response to go on from")
    status = responses_continued.status

    assert status == 200, f"answered with {status}: {responses_continued.text[:160]}"


@check("responses.state.whole", MUST, spec="fault:sgl-project/sglang/pull/25302", needs=NEEDS)
def test_whole(
    responses_stored: Recording, responses_continued: Recording, responses_by_hand: Recording
) -> None:
    """What goes on from a response has the prompt that the whole conversation has."""
    only_if(responses_continued.status not in (400, 404), STORE)
    only_if(responses_by_hand.status != 400, f"refused: {responses_by_hand.text[:120]}")
    only_if(message_parts(responses_stored), "the answer before holds no words")
    kept, sent = (one.ok["usage"]["input_tokens"] for one in (responses_continued, responses_by_hand))

    assert kept == sent, f"{kept} input tokens, sent as a whole it has {sent}"


@check("responses.state.instructions", MUST, spec=f"{SPEC}#instructions", needs=NEEDS)
def test_instructions(
    vllm_server: Server,
    responses_stored: Recording,
    responses_stored_instructed: Recording,
    responses_continued: Recording,
    responses_continued_instructed: Recording,
) -> None:
    """Instructions hold for one response: what goes on from it does not have them."""
    only_if(responses_continued.status not in (400, 404), STORE)
    only_if(vllm_server.at_least("0.32.0"), "before 0.32 instructions of the turn before may stay")
    only_if(responses_stored_instructed.status != 400, "this template takes no instructions")
    rows = (
        responses_stored,
        responses_stored_instructed,
        responses_continued,
        responses_continued_instructed,
    )
    plain, instructed, after, behind = (one.ok["usage"]["input_tokens"] for one in rows)
    need(instructed - plain > 2 * KEPT, "the instructions are too short to decide it")

    assert behind - after <= KEPT, (
        f"{after} input tokens after a plain turn, {behind} after an instructed one"
    )


@check("responses.state.call", SHOULD, spec="fault:vllm-project/vllm/issues/43244", needs=CALLS)
def test_call(
    responses_call: Recording, responses_call_continued: Recording, responses_call_by_hand: Recording
) -> None:
    """What goes on from a call has the prompt that the whole conversation has."""
    need(called(responses_call), "no call was made")
    only_if(responses_call_continued.status not in (400, 404), STORE)
    only_if(responses_call_by_hand.status != 400, f"refused: {responses_call_by_hand.text[:120]}")
    rows = (responses_call_continued, responses_call_by_hand)
    kept, sent = (one.ok["usage"]["input_tokens"] for one in rows)

    assert kept == sent, f"{kept} input tokens, sent as a whole it has {sent}"


@check("responses.background.queued", MUST, spec=f"{SPEC}#background", needs=NEEDS)
def test_queued(responses_background: Recording) -> None:
    """A response in the background is answered before it is done."""
    only_if(responses_background.status not in (400, 404), STORE)
    status = responses_background.ok["status"]

    assert status in ("queued", "in_progress"), f"status is {status!r}"


@check("responses.background.cancelled", MUST, spec="openai:responses/cancel", needs=NEEDS)
def test_cancelled(
    responses_background: Recording,
    responses_background_cancel: Recording,
    responses_background_after: Recording,
) -> None:
    """A response that was cancelled says so from then on."""
    only_if(responses_background.status not in (400, 404), STORE)
    if responses_background_cancel.status == 400:
        status = responses_background_after.ok["status"]
        only_if(status not in ("completed", "incomplete"), "it ended before it could be cancelled")
        refusal = responses_background_cancel.text[:120]
        assert status == "cancelled", f"refused while its status is {status}: {refusal}"
    said = [one.ok["status"] for one in (responses_background_cancel, responses_background_after)]

    assert said == ["cancelled"] * 2, f"cancelled, then asked for, its status is {said}"


@check("responses.custom.item", MUST, spec=f"{SPEC}#tools", needs=CALLS)
def test_custom(responses_custom: Recording, vllm_server: Server) -> None:
    """A call of a tool that takes plain text is an item of its own kind."""
    only_if(
        bool(vllm_server.version) and vllm_server.at_least("0.32.0"), "vLLM offers such tools from 0.32.0"
    )
    only_if(responses_custom.status != 400, f"refused: {responses_custom.text[:120]}")
    body = responses_custom.ok
    need(body["status"] == "completed", f"the answer is {body['status']}")
    calls = [item for item in body["output"] if str(item.get("type", "")).endswith("_call")]
    need(calls, "nothing was called")
    wrong = [
        item for item in calls if item["type"] != "custom_tool_call" or not isinstance(item.get("input"), str)
    ]

    assert not wrong, f"called as {wrong[0]!r:.150}"
