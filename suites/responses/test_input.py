"""What a request may look like, and what is refused."""

from pytest_vllm import MUST, SHOULD, Case, Recording, Server, check, need, only_if, schema_faults

SPEC = "openai:responses/create"
NEEDS = ("responses",)
LOOSE = "fault:vllm-project/vllm/issues/45273"
SHAPE = "fault:vllm-project/vllm/issues/33089"


def length(recording: Recording) -> int:
    """How many tokens the prompt had."""
    return int(recording.ok["usage"]["input_tokens"])


@check("responses.input.list", MUST, spec=SPEC, needs=NEEDS)
def test_list(responses_plain: Recording, responses_list: Recording) -> None:
    """A text and a list of one user message make the same prompt."""
    text, listed = length(responses_plain), length(responses_list)

    assert text == listed, f"{text} tokens as a text, {listed} as a list"


@check("responses.input.parts", MUST, spec=SPEC, needs=NEEDS)
def test_parts(responses_list: Recording, responses_parts: Recording) -> None:
    """A message of text and a message of parts make the same prompt."""
    whole, parts = length(responses_list), length(responses_parts)

    assert whole == parts, f"{whole} tokens as a text, {parts} in parts"


@check("responses.input.instructions", MUST, spec=SPEC, needs=NEEDS)
def test_instructions(responses_instructed: Recording, responses_instructed_twice: Recording) -> None:
    """Instructions become part of the prompt, whatever the template adds by itself."""
    refused = responses_instructed.status == 400
    only_if(not refused, f"the chat template refuses them: {responses_instructed.text[:120]}")
    once, twice = length(responses_instructed), length(responses_instructed_twice)

    assert twice > once, f"{once} input tokens with instructions, {twice} with twice as long ones"


@check("responses.input.instructions-once", SHOULD, spec=SPEC, needs=NEEDS)
def test_once(responses_instructed: Recording, responses_system: Recording) -> None:
    """Instructions weigh as much as the same text in a system message."""
    refused = responses_instructed.status == 400
    only_if(not refused, f"the chat template refuses them: {responses_instructed.text[:120]}")
    given, system = length(responses_instructed), length(responses_system)

    assert given == system, f"{given} input tokens as instructions, {system} as a system message"


@check("responses.input.history", MUST, spec=SHAPE, needs=NEEDS)
def test_history(response_history: Case, responses_history: Recording) -> None:
    """The server's own output is taken back as input."""
    responses_history.rendered()
    status = responses_history.status

    assert status == 200, f"{response_history.id}: answered with {status}: {responses_history.text[:160]}"


@check("responses.input.loose-survived", MUST, spec=LOOSE, needs=NEEDS)
def test_loose_survived(response_loose: Case, responses_loose_history: Recording) -> None:
    """A turn without a status, a part or a word is taken or refused, no more."""
    responses_loose_history.answered()
    status = responses_loose_history.status or 0

    assert status < 500, f"{response_loose.id}: answered with {status}: {responses_loose_history.text[:160]}"


@check("responses.input.loose", SHOULD, spec=LOOSE, needs=NEEDS)
def test_loose(response_loose: Case, responses_loose_history: Recording) -> None:
    """Turns are taken back as agents write them down."""
    responses_loose_history.answered()
    status = responses_loose_history.status or 0
    only_if(status < 500, "it broke the server, which another check judges")

    assert status == 200, f"{response_loose.id}: answered with {status}: {responses_loose_history.text[:160]}"


@check("responses.input.call-history", MUST, spec=SHAPE, needs=("responses", "tools"))
def test_call_history(response_call_history: Case, responses_call_history: Recording) -> None:
    """Calls and their results are taken back as input."""
    responses_call_history.rendered()
    status = responses_call_history.status

    assert status == 200, (
        f"{response_call_history.id}: answered with {status}: {responses_call_history.text[:160]}"
    )


@check(
    "responses.input.calls-merged",
    MUST,
    spec="fault:vllm-project/vllm/issues/37167",
    needs=("responses", "tools", "tokenize"),
)
def test_calls_merged(  # noqa: PLR0917 - pytest passes them by name
    vllm_server: Server,
    response_call_history: Case,
    responses_call_history: Recording,
    responses_call_history_count: Recording,
    responses_call_begun: Recording,
    responses_call_begun_count: Recording,
) -> None:
    """Words, reasoning and calls of one turn are one turn of the prompt, as over chat."""
    only_if(vllm_server.at_least("0.32.0"), "how older versions of vLLM do it is not known")
    asked = (responses_call_history, responses_call_history_count, responses_call_begun)
    refused = [one.text[:120] for one in (*asked, responses_call_begun_count) if one.status in (400, 404)]
    only_if(not refused, f"refused: {refused[:1]}")
    added = length(responses_call_history) - length(responses_call_begun)
    right = responses_call_history_count.ok["count"] - responses_call_begun_count.ok["count"]

    assert added == right, (
        f"{response_call_history.id}: {added} tokens after the first turn, as a chat {right}"
    )


@check("responses.refused", MUST, spec=SPEC, needs=NEEDS)
def test_refused(response_refusal: Case, responses_refusal: Recording) -> None:
    """A request that makes no sense is refused as the client's fault."""
    responses_refusal.answered()
    status = responses_refusal.status

    assert status in response_refusal["status"], f"answered with {status}: {responses_refusal.text[:120]}"


@check("responses.refused.envelope", MUST, spec="openai:errors", needs=NEEDS)
def test_envelope(vllm_server: Server, response_refusal: Case, responses_refusal: Recording) -> None:
    """A refusal says why in an error object."""
    status = responses_refusal.status or 0
    need(400 <= status < 500, f"{response_refusal.id} was answered with {status}")
    found = schema_faults("error", responses_refusal.json, vllm_server.version)
    wrong = [str(fault) for fault in found if fault.level is MUST]

    assert not wrong, "; ".join(wrong)


@check("responses.unknown", MUST, spec="openai:responses/get", needs=NEEDS)
def test_unknown(responses_unknown: Recording) -> None:
    """A response that was never made is not found."""
    responses_unknown.answered()

    assert responses_unknown.status == 404, (
        f"answered with {responses_unknown.status}: {responses_unknown.text[:120]}"
    )


@check("responses.unknown.cancel", MUST, spec="openai:responses/cancel", needs=NEEDS)
def test_unknown_cancel(responses_unknown_cancel: Recording) -> None:
    """The cancellation of a response that was never made is not found either."""
    responses_unknown_cancel.answered()

    assert responses_unknown_cancel.status == 404, (
        f"answered with {responses_unknown_cancel.status}: {responses_unknown_cancel.text[:120]}"
    )
