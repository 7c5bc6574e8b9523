"""Reasoning beside a schema, a call, a count of tokens, and earlier reasoning."""

import json

import jsonschema

from pytest_vllm import (
    MUST,
    SHOULD,
    Case,
    Recording,
    Recordings,
    Server,
    check,
    listed,
    need,
    only_if,
    server_errors,
    short,
)

from .exchanges import SCHEMA
from .thoughts import Said, everything, marked, said

SPEC = "vllm:features/reasoning_outputs/"
NEEDS = ("reasoning",)
FORMAT = "fault:vllm-project/vllm/issues/44012"
AREA = ("reasoning.plain", "reasoning.two", "reasoning.cut")
SINCE = "0.28.0"


def able(plain: Recording) -> None:
    """Not run where the model comes to no end; undecided where no answer follows its reasoning."""
    answer = said(plain)
    only_if(answer.ended, "the model does not end its reasoning by itself")
    need(answer.content.strip(), "no answer follows the reasoning")


def schema_fault(answer: Said) -> str:
    """Why a text is not JSON of the schema; empty when it is."""
    try:
        jsonschema.validate(json.loads(answer.content), SCHEMA)
    except (ValueError, jsonschema.ValidationError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"
    return ""


@check("reasoning.schema.valid", MUST, spec=FORMAT, needs=("reasoning", "structured-output"))
def test_schema(reasoning_plain: Recording, reasoning_schema: Recording) -> None:
    """After the reasoning, the text is what the response format asks for."""
    able(reasoning_plain)
    answer = said(reasoning_schema)
    need(answer.finish == "stop", f"finish_reason {answer.finish!r}")

    assert not schema_fault(answer), f"content {short(answer.content)}: {schema_fault(answer)}"


@check("reasoning.schema.valid-stream", MUST, spec=FORMAT, needs=("reasoning", "structured-output", "stream"))
def test_schema_stream(reasoning_plain: Recording, reasoning_schema_stream: Recording) -> None:
    """After streamed reasoning, the text is what the response format asks for."""
    able(reasoning_plain)
    answer = said(reasoning_schema_stream)
    need(answer.finish == "stop", f"finish_reason {answer.finish!r}")

    assert not schema_fault(answer), f"content {short(answer.content)}: {schema_fault(answer)}"


@check(
    "reasoning.tool.called",
    MUST,
    spec="fault:vllm-project/vllm/issues/39056",
    needs=("reasoning", "tools.required"),
)
def test_tool(reasoning_plain: Recording, tools_forced_single: Recording, reasoning_tool: Recording) -> None:
    """After the reasoning, a required call is made."""
    able(reasoning_plain)
    need(said(tools_forced_single).called, "without reasoning a required call is not made either")
    answer = said(reasoning_tool)
    need(answer.ended, f"finish_reason {answer.finish!r}")

    assert answer.called, f"no call; content {short(answer.content)}, reasoning {short(answer.thoughts)}"


@check(
    "reasoning.tool.called-stream",
    MUST,
    spec="fault:vllm-project/vllm/issues/39056",
    needs=("reasoning", "tools.required", "stream"),
)
def test_tool_stream(
    reasoning_plain: Recording, tools_forced_two_stream: Recording, reasoning_tool_stream: Recording
) -> None:
    """After streamed reasoning, a required call is made."""
    able(reasoning_plain)
    need(said(tools_forced_two_stream).called, "without reasoning a required call is not made either")
    answer = said(reasoning_tool_stream)
    need(answer.ended, f"finish_reason {answer.finish!r}")

    assert answer.called, f"no call; content {short(answer.content)}, reasoning {short(answer.thoughts)}"


@check(
    "reasoning.tool.tags",
    MUST,
    spec="fault:vllm-project/vllm/issues/39056",
    needs=("reasoning", "tools.required"),
    exchanges=("reasoning.tool",),
)
def test_tool_tags(vllm_recordings: Recordings) -> None:
    """Between reasoning and call no tag is left in the text."""
    told = [one for one in everything(vllm_recordings, "reasoning.tool") if one.called]
    need(told, "no call was made")
    wrong = [f"{one.key}: {found} in {short(one.content)}" for one in told if (found := marked(one.content))]

    assert not wrong, listed(wrong)


@check(
    "reasoning.tool.cut",
    MUST,
    spec="fault:vllm-project/vllm/issues/40528",
    needs=("reasoning", "tools.required"),
)
def test_tool_cut(reasoning_demanded_cut: Recording) -> None:
    """A demanded call that is cut within its reasoning is answered, or refused."""
    reasoning_demanded_cut.answered()
    status = reasoning_demanded_cut.status or 0

    assert status < 500, f"answered with {status}: {reasoning_demanded_cut.text[:160]}"


@check("reasoning.usage.counted", MUST, spec="openai:chat/object", needs=NEEDS, exchanges=AREA)
def test_usage(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """The tokens of reasoning are counted in the usage."""
    only_if(vllm_server.at_least(SINCE), "reasoning tokens are counted since 0.28")
    told = [one for one in everything(vllm_recordings, *AREA) if one.thoughts.strip() and one.usage]
    need(told, "no answer held reasoning and usage")
    wrong = [
        f"{one.key}: {one.counted}, reasoning {short(one.thoughts, 40)}" for one in told if not one.counted
    ]

    assert not wrong, listed(wrong)


@check("reasoning.usage.bounded", MUST, spec="openai:chat/object", needs=NEEDS, exchanges=AREA)
def test_usage_bounded(vllm_recordings: Recordings) -> None:
    """Reasoning tokens are a part of the completion's tokens."""
    told = [one for one in everything(vllm_recordings, *AREA) if one.counted is not None]
    only_if(told, "this version counts no reasoning tokens")
    wrong = [
        f"{one.key}: {one.counted} of {one.usage['completion_tokens']}"
        for one in told
        if not 0 <= (one.counted or 0) <= one.usage["completion_tokens"]
    ]

    assert not wrong, listed(wrong)


@check("reasoning.usage.parity", SHOULD, spec="openai:chat/object", needs=("reasoning", "stream"))
def test_usage_parity(reasoning_plain: Recording, reasoning_plain_stream: Recording) -> None:
    """A stream counts as many reasoning tokens as the whole answer."""
    whole, stream = said(reasoning_plain), said(reasoning_plain_stream)
    only_if(whole.counted is not None, "this version counts no reasoning tokens")
    need(whole.thoughts == stream.thoughts, "the two answers differ")

    assert stream.counted == whole.counted, f"streamed {stream.counted}, whole {whole.counted}"


@check(
    "reasoning.response",
    MUST,
    spec="fault:vllm-project/vllm/issues/43395",
    needs=("reasoning", "responses"),
)
def test_response(reasoning_plain: Recording, reasoning_plain_response: Recording) -> None:
    """A question that is thought about over chat is thought about over Responses."""
    need(said(reasoning_plain).thoughts.strip(), "over chat the model does not think")
    found = [item for item in reasoning_plain_response.ok["output"] if item.get("type") == "reasoning"]
    told = "".join(
        str(part.get("text") or "")
        for item in found
        for part in [*(item.get("content") or ()), *(item.get("summary") or ())]
    )
    kinds = [item.get("type") for item in reasoning_plain_response.ok["output"]]

    assert told.strip(), f"over Responses there is no reasoning: items are {kinds}"


@check("reasoning.history.shape", MUST, spec=SPEC, needs=NEEDS)
def test_history(reasoning_history: Case, reasoning_history_shape: Recording) -> None:
    """Reasoning that a client sends back is taken, and is not a server error."""
    reasoning_history_shape.answered()
    status, allowed = reasoning_history_shape.status, reasoning_history["status"]

    assert status in allowed, (
        f"{reasoning_history.id}: {status}, not {allowed}: {reasoning_history_shape.text[:160]}"
    )


def prompt(answer: Recording) -> int:
    """The tokens of an answer's prompt."""
    return int(answer.ok["usage"]["prompt_tokens"])


@check(
    "reasoning.history.keys", MUST, spec="fault:QwenLM/qwen-code/issues/4285", needs=("reasoning", "tools")
)
def test_history_keys(
    vllm_server: Server, reasoning_history_new_key: Recording, reasoning_history_old_key: Recording
) -> None:
    """Reasoning that is sent back counts the same under the old key and the new."""
    only_if(vllm_server.at_least("0.22.0"), "before 0.22 one of the two keys is not read")
    new, old = prompt(reasoning_history_new_key), prompt(reasoning_history_old_key)

    assert new == old, f"{new} prompt tokens under reasoning, {old} under reasoning_content"


@check(
    "reasoning.history.rendered",
    MUST,
    spec="fault:BerriAI/litellm/issues/41380",
    needs=("reasoning", "tools", "tokenize"),
)
def test_history_rendered(
    reasoning_history_none: Recording,
    reasoning_history_bare: Recording,
    reasoning_history_new_key: Recording,
    reasoning_history_rendered: Recording,
) -> None:
    """A conversation with reasoning is as long as `/tokenize` counts it."""
    without = prompt(reasoning_history_none), reasoning_history_bare.ok["count"]
    need(without[0] == without[1], f"even without reasoning the two differ: {without}")
    used, counted = prompt(reasoning_history_new_key), reasoning_history_rendered.ok["count"]

    assert used == counted, f"{used} prompt tokens, /tokenize counts {counted}"


@check(
    "reasoning.history.kept", SHOULD, spec="fault:QwenLM/qwen-code/issues/4285", needs=("reasoning", "tools")
)
def test_history_kept(reasoning_history_none: Recording, reasoning_history_new_key: Recording) -> None:
    """Reasoning amid a tool's use stays in the prompt."""
    bare, thoughtful = prompt(reasoning_history_none), prompt(reasoning_history_new_key)

    assert thoughtful > bare, f"{thoughtful} prompt tokens with reasoning, {bare} without"


@check("reasoning.served", MUST, spec="openai:chat/object", needs=["chat"], exchanges=["reasoning."])
def test_served(vllm_recordings: Recordings) -> None:
    """No request that may be thought about ends in a server error."""
    wrong = server_errors(vllm_recordings.of("reasoning."))

    assert not wrong, f"{len(wrong)} requests: {'; '.join(wrong[:3])}"
