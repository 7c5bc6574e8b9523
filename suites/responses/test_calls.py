"""Calls, formats and reasoning over this interface."""

from pytest_vllm import MUST, SHOULD, Recording, Recordings, Server, check, need, unexpected

from .exchanges import ARGUMENTS, TOOL, WORD
from .items import CALLS_FROM, DELTAS, applies, events, final, items, joined, kind, object_of, spoken, words

SPEC = "openai:responses/object"
MARKUP = "fault:vllm-project/vllm/issues/36435"
CUT = "fault:vllm-project/vllm/issues/44348"
#: `tools` too: without a parser of calls this interface reads a choice of tools and does nothing with it.
NEEDS = ("responses", "tools", "tools.required")
STREAMED = (*NEEDS, "stream")
MARKS = ("<tool_call", "<function", "[TOOL_CALLS]", "<|python_tag|>", "<|tool_call", "<|channel|>")
THOUGHT_MARKS = ("<think>", "</think>", "<|channel|>")


@check("responses.call.answered", MUST, spec=SPEC, needs=NEEDS, exchanges=("responses.call",))
def test_answered(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """A request that forces a call is answered with 200."""
    applies(vllm_server, CALLS_FROM, "makes items of calls")
    wrong = unexpected(vllm_recordings.of("responses.call"))

    assert not wrong, "; ".join(wrong)


@check("responses.call.item", MUST, spec="fault:vllm-project/vllm/issues/24076", needs=NEEDS)
def test_item(vllm_server: Server, responses_call: Recording) -> None:
    """A required call is a `function_call` item that names the function and an id."""
    applies(vllm_server, CALLS_FROM, "makes items of calls")
    made = items(responses_call.ok, "function_call")

    kinds = [item.get("type") for item in items(responses_call.ok)]

    assert made, f"the items are {kinds}: {words(responses_call.ok)[:80]!r}"
    assert [item.get("name") for item in made] == [TOOL] * len(made), f"called: {made!r:.160}"
    assert all(item.get("call_id") for item in made), f"no call_id: {made!r:.160}"


@check("responses.call.none", MUST, spec="fault:vllm-project/vllm/issues/33966", needs=NEEDS)
def test_none(vllm_server: Server, responses_uncalled: Recording) -> None:
    """With the tool choice "none" no function is called."""
    applies(vllm_server, "0.32.0", "is known to heed this choice")
    made = items(responses_uncalled.ok, "function_call")

    assert not made, f"called: {made!r:.160}"


@check("responses.call.arguments", MUST, spec=SPEC, needs=NEEDS)
def test_arguments(vllm_server: Server, responses_call: Recording) -> None:
    """The arguments of a call are what its schema allows, as JSON."""
    applies(vllm_server, CALLS_FROM, "makes items of calls")
    made = items(responses_call.ok, "function_call")
    need(made, "no call was made")
    need(responses_call.ok.get("status") == "completed", "the answer was cut short")
    told = str(made[0].get("arguments"))

    assert object_of(told) == ARGUMENTS, f"arguments are {told!r:.120}"


@check("responses.call.no-markup", MUST, spec=MARKUP, needs=NEEDS)
def test_no_markup(vllm_server: Server, responses_call: Recording) -> None:
    """The markup in which the model writes calls is not in the text."""
    applies(vllm_server, CALLS_FROM, "makes items of calls")
    said = spoken(responses_call.ok)

    assert not any(mark in said for mark in MARKS), f"text is {said!r:.120}"


@check("responses.call.streamed", MUST, spec=MARKUP, needs=STREAMED)
def test_streamed(vllm_server: Server, responses_call_stream: Recording) -> None:
    """In a stream, too, a required call is an item, and its markup is not text."""
    applies(vllm_server, CALLS_FROM, "makes items of calls")
    told = [kind(event) for event in events(responses_call_stream)]
    need(told, "the stream held no event")
    names = [
        event["item"].get("name")
        for event in events(responses_call_stream)
        if kind(event) == "response.output_item.added"
        and isinstance(event.get("item"), dict)
        and event["item"].get("type") == "function_call"
    ]
    said = "".join(str(e.get("delta")) for e in events(responses_call_stream) if kind(e) == DELTAS["message"])

    assert names == [TOOL], f"calls are {names}, text is {said!r:.80}"
    assert not any(mark in said for mark in MARKS), f"text is {said!r:.120}"


@check("responses.call.joined", MUST, spec=CUT, needs=STREAMED)
def test_joined(vllm_server: Server, responses_call_stream: Recording) -> None:
    """A call's argument pieces, joined, are what its closing event and item give."""
    applies(vllm_server, CALLS_FROM, "makes items of calls")
    found = events(responses_call_stream)
    done = [e for e in found if kind(e) == "response.function_call_arguments.done"]
    need(done or items(final(responses_call_stream), "function_call"), "the stream held no call")
    told = [str(e.get("arguments")) for e in done]
    made = [joined(responses_call_stream, e.get("output_index", -1)) or str(e.get("arguments")) for e in done]
    ended = [str(item.get("arguments")) for item in items(final(responses_call_stream), "function_call")]

    assert told == made, f"joined {made!r:.100}, reported {told!r:.100}"
    assert told == ended, f"reported {told!r:.100}, at the end {ended!r:.100}"


@check("responses.call.same", MUST, spec=CUT, needs=STREAMED)
def test_same(vllm_server: Server, responses_call: Recording, responses_call_stream: Recording) -> None:
    """A stream gives a call the arguments that it has in one piece."""
    applies(vllm_server, CALLS_FROM, "makes items of calls")
    whole = items(responses_call.ok, "function_call")
    streamed = items(final(responses_call_stream), "function_call")
    need(whole and streamed, "no call was made in one of the two")
    here, there = str(streamed[0].get("arguments")), str(whole[0].get("arguments"))
    need(object_of(there) == ARGUMENTS, f"the whole answer's arguments are {there!r:.80}")

    assert object_of(here) == object_of(there), f"streamed {here!r:.100}, whole {there!r:.100}"


@check("responses.call.status", SHOULD, spec=SPEC, needs=NEEDS)
def test_status(vllm_server: Server, responses_call: Recording) -> None:
    """The call of a completed answer is completed."""
    applies(vllm_server, CALLS_FROM, "makes items of calls")
    made = items(responses_call.ok, "function_call")
    need(made and responses_call.ok.get("status") == "completed", "no call was completed")

    assert [item.get("status") for item in made] == ["completed"] * len(made), f"calls are {made!r:.160}"


@check(
    "responses.format.schema",
    MUST,
    spec="fault:vllm-project/vllm/issues/44012",
    needs=("responses", "structured-output"),
)
def test_format(responses_format: Recording) -> None:
    """A text that a JSON schema constrains keeps to it."""
    body = responses_format.ok
    need(body.get("status") == "completed", f"the answer is {body.get('status')}: {words(body)[:60]!r}")
    said = spoken(body)

    assert object_of(said) == {"bird": WORD}, f"text is {said!r:.120}"


@check("responses.reasoning.no-marks", MUST, spec=SPEC, needs=("responses", "reasoning"))
def test_no_marks(responses_thinking: Recording, responses_thinking_stream: Recording) -> None:
    """The marks around a model's reasoning are neither in its text nor its reasoning."""
    said = [words(responses_thinking.ok)]
    if responses_thinking_stream.status == 200:
        said.append(words(final(responses_thinking_stream)))
    need(any(said), "the answers said nothing")

    assert not any(mark in text for mark in THOUGHT_MARKS for text in said), f"an answer is {said!r:.160}"


@check("responses.reasoning.first", MUST, spec=SPEC, needs=("responses", "reasoning"))
def test_first(responses_thinking: Recording) -> None:
    """Reasoning is an item before the message, and once."""
    kinds = [str(item.get("type")) for item in items(responses_thinking.ok)]
    need(kinds, "the answer held no item")

    assert "reasoning" not in kinds[1:], f"the items are {kinds}"


@check("responses.reasoning.counted", SHOULD, spec=SPEC, needs=("responses", "reasoning"))
def test_counted(responses_thinking: Recording) -> None:
    """The tokens of reasoning are counted as such."""
    need(items(responses_thinking.ok, "reasoning"), "the model did not think")
    details = responses_thinking.ok["usage"].get("output_tokens_details") or {}

    assert (details.get("reasoning_tokens") or 0) > 0, f"output_tokens_details is {details}"
