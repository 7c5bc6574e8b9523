"""Tools in requests: taken, refused or survived, and passed on to the model."""

import re

from pytest_vllm import MUST, SHOULD, Case, Recording, Recordings, Server, check, need, only_if, server_errors

from .answers import answer, errors

SPEC = "vllm:features/tool_calling/"
TOOLS = ("tools",)
STREAMS = (*TOOLS, "stream")
SILENT = 8
#: How Python and Jinja speak of a mistake in a program, not in a request.
PROGRAM = re.compile(
    r"has no attribute|not subscriptable|not iterable|out of range|NoneType|KeyError|Traceback|unhashable"
)


@check("tools.refused", MUST, spec=SPEC, needs=("chat",))
def test_refused(tool_refusal: Case, tools_refusal: Recording) -> None:
    """Tools or tool choices that make no sense are refused as the client's mistake."""
    tools_refusal.answered()
    status = tools_refusal.status

    assert status in (400, 422), f"{tool_refusal.id}: answered with {status}: {tools_refusal.text[:160]}"


@check("tools.survived", MUST, spec=SPEC, needs=("chat",))
def test_survived(tool_oddity: Case, tools_oddity: Recording) -> None:
    """Odd tools are taken or refused, but are not a server error."""
    tools_oddity.answered()
    status = tools_oddity.status or 0

    assert status == 200 or 400 <= status < 500, (
        f"{tool_oddity.id}: answered with {status}: {tools_oddity.text[:160]}"
    )


@check("tools.schema", MUST, spec="fault:vllm-project/vllm/issues/16880", needs=("tools.required", "stream"))
def test_schema(tool_schema: Case, tools_schema: Recording) -> None:
    """Ordinary keywords of JSON Schema are taken in a tool's parameters."""
    tools_schema.rendered()
    status, text = tools_schema.status, tools_schema.text[:200]

    assert status == 200, f"{tool_schema.id}: answered with {status}: {text}"
    assert not errors(tools_schema), f"{tool_schema.id}: {errors(tools_schema)[:1]}"


@check("tools.default", MUST, spec=SPEC, needs=("chat",))
def test_default(tools_default: Recording) -> None:
    """Tools without a tool choice are taken, or the missing flags are named."""
    tools_default.answered()
    status, text = tools_default.status, tools_default.text
    named = "--enable-auto-tool-choice" in text and "--tool-call-parser" in text

    assert status == 200 or (status == 400 and named), f"answered with {status}: {text[:200]}"


@check("tools.prompt.grows", MUST, spec=SPEC, needs=TOOLS)
def test_prompt_grows(tools_prompt_bare: Recording, tools_prompt_one: Recording) -> None:
    """A tool that is offered is passed on to the model."""
    bare, one = (each.ok["usage"]["prompt_tokens"] for each in (tools_prompt_bare, tools_prompt_one))

    assert one > bare, (
        f"{one} prompt tokens with a tool, {bare} without: the chat template does not render tools"
    )


@check("tools.prompt.all", MUST, spec=SPEC, needs=TOOLS)
def test_prompt_all(
    tools_prompt_bare: Recording, tools_prompt_one: Recording, tools_prompt_two: Recording
) -> None:
    """A second tool that is offered is passed on to the model too."""
    bare, one, two = (
        each.ok["usage"]["prompt_tokens"] for each in (tools_prompt_bare, tools_prompt_one, tools_prompt_two)
    )
    need(one > bare, "the chat template does not render tools")

    assert two > one, f"{two} prompt tokens with two tools, {one} with one"


@check("tools.history.shape", MUST, spec="fault:vllm-project/vllm/issues/47761", needs=TOOLS)
def test_history(tool_history: Case, tools_history_shape: Recording) -> None:
    """A conversation with calls is taken in every shape that clients send."""
    tools_history_shape.rendered()
    status, allowed = tools_history_shape.status, tool_history["status"]

    assert status in allowed, (
        f"{tool_history.id}: answered with {status}, not {allowed}: {tools_history_shape.text[:160]}"
    )


#: Spellings of one history: under both the conversation is the same.
SPELLINGS = (("calls-empty", "calls-left-out"), ("content-null", "content-missing"))


@check(
    "tools.history.same",
    MUST,
    spec="fault:vllm-project/vllm/pull/30648",
    needs=TOOLS,
    exchanges=["tools.history.shape["],
)
def test_same(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """A history has the same length however its empty parts are spelt."""
    only_if(vllm_server.at_least("0.14.0"), "before 0.14 an empty list of calls can hide its message")
    used = {one.key: one.ok["usage"]["prompt_tokens"] for one in _taken(vllm_recordings)}
    pairs = [[f"tools.history.shape[{name}]" for name in pair] for pair in SPELLINGS]
    refused = {one.key for one in vllm_recordings.of("tools.history.shape[") if one.status == 400}
    fitting = {one.key for one in vllm_recordings.of("tools.history.shape[")}
    only_if(any(fitting.issuperset(pair) for pair in pairs), "the context is too short for two spellings")
    apart = [pair for pair in pairs if refused.intersection(pair) and used.keys() & set(pair)]
    judged = [(one, other) for one, other in pairs if one in used and other in used]
    need(judged or apart, "no history was taken in two spellings")
    wrong = [f"{one} {used[one]}, {other} {used[other]}" for one, other in judged if used[one] != used[other]]

    assert not apart, f"one is taken and the other refused: {' and '.join(apart[0])}"
    assert not wrong, f"prompt tokens: {'; '.join(wrong)}"


@check(
    "tools.history.no-content",
    SHOULD,
    spec="fault:vllm-project/vllm/issues/54337",
    needs=TOOLS,
    exchanges=["tools.history.shape["],
)
def test_no_content(vllm_recordings: Recordings) -> None:
    """A call without content is as long as one with empty content."""
    used = {one.key: one.ok["usage"]["prompt_tokens"] for one in _taken(vllm_recordings)}
    told = [used.get(f"tools.history.shape[content-{name}]") for name in ("null", "empty")]
    need(None not in told, "the two histories were not both taken")

    assert told[0] == told[1], f"{told[0]} prompt tokens with null, {told[1]} with an empty text"


@check(
    "tools.history.words",
    SHOULD,
    spec="fault:vllm-project/vllm/issues/43851",
    needs=TOOLS,
    exchanges=["tools.history.shape["],
)
def test_words(vllm_recordings: Recordings) -> None:
    """A history that is refused is refused in words, not by an error of the program."""
    said = {one.key: one.text for one in vllm_recordings.of("tools.history.shape[") if one.status == 400}
    only_if(said, "no history was refused")
    wrong = {key: text[:160] for key, text in said.items() if PROGRAM.search(text)}

    assert not wrong, f"{wrong}"


@check(
    "tools.history.replay",
    MUST,
    spec="fault:vllm-project/vllm/issues/47761",
    needs=("tools", "tools.required"),
)
def test_replay(forced_choice: Case, tools_history_replay: Recording) -> None:
    """The server takes its own call back, with a result."""
    tools_history_replay.rendered()
    status = tools_history_replay.status

    assert status == 200, f"{forced_choice.id}: answered with {status}: {tools_history_replay.text[:200]}"


@check("tools.result.told", MUST, spec="openai:chat/create#messages", needs=TOOLS)
def test_result_told(tools_result_short: Recording, tools_result_long: Recording) -> None:
    """A tool's result is passed on to the model."""
    short, long = (each.ok["usage"]["prompt_tokens"] for each in (tools_result_short, tools_result_long))

    assert long > short, f"{long} prompt tokens with the longer result, {short} with the shorter"


@check("tools.result.answered", MUST, spec="openai:chat/create#messages", needs=TOOLS)
def test_result_answered(tools_result_used: Recording) -> None:
    """After a tool's result the model answers in words or calls again."""
    message = tools_result_used.ok["choices"][0]["message"]
    said = message.get("content") or message.get("reasoning") or message.get("reasoning_content")
    need(tools_result_used.ok["usage"]["completion_tokens"] >= SILENT, "the model said next to nothing")

    assert said or message.get("tool_calls"), f"nothing: {message}"


@check("tools.result.answered-stream", MUST, spec="fault:vllm-project/vllm/issues/27641", needs=STREAMS)
def test_result_streamed(tools_result_used_stream: Recording) -> None:
    """After a tool's result a stream holds words, reasoning or a call."""
    said = answer(tools_result_used_stream)
    usage = [delta["usage"] for delta in tools_result_used_stream.deltas if delta.get("usage")]
    need(usage and usage[-1]["completion_tokens"] >= SILENT, "the model said next to nothing")

    assert said.content or said.reasoning or said.calls, f"nothing, for {usage[-1]}"


@check("tools.served", MUST, spec="openai:chat/object", needs=["tools"], exchanges=["tools."])
def test_served(vllm_recordings: Recordings) -> None:
    """No request with tools ends in a server error."""
    wrong = server_errors(vllm_recordings.of("tools."))

    assert not wrong, f"{len(wrong)} requests: {'; '.join(wrong[:3])}"


def _taken(recordings: Recordings) -> list[Recording]:
    return [one for one in recordings.of("tools.history.shape[") if one.status == 200]
