"""Tools that may not be called, and calls one at a time."""

from pytest_vllm import MUST, SHOULD, Recording, Recordings, Server, check, listed, need, only_if, unexpected

from .answers import answer
from .gathered import answered

SPEC = "openai:chat/create#tool_choice"
NONE = ("tools.none.weather",)
PARALLEL = "vllm:features/tool_calling/"
SILENT = 8


@check("tools.none.answered", MUST, spec=SPEC, needs=("chat",), exchanges=("tools.none.",))
def test_answered(vllm_recordings: Recordings) -> None:
    """The tool choice "none" is answered, with tools and without."""
    wrong = unexpected(vllm_recordings.of("tools.none."))

    assert not wrong, listed(wrong)


@check("tools.none.no-call", MUST, spec=SPEC, needs=("chat",), exchanges=NONE)
def test_no_call(vllm_recordings: Recordings) -> None:
    """With the tool choice "none" there is no call."""
    wrong = [
        f"{said.key}: {said.calls[0].name}" for _, said in answered(vllm_recordings, *NONE) if said.calls
    ]

    assert not wrong, listed(wrong)


@check("tools.none.finish", MUST, spec=SPEC, needs=("chat",), exchanges=NONE)
def test_finish(vllm_recordings: Recordings) -> None:
    """With the tool choice "none" no answer finishes with `tool_calls`."""
    told = answered(vllm_recordings, *NONE)
    need(any(said.finish for _, said in told), "no answer gives a finish reason")
    wrong = [said.key for _, said in told if said.finish == "tool_calls"]

    assert not wrong, listed(wrong)


@check(
    "tools.none.silent", MUST, spec="fault:vllm-project/vllm/issues/55080", needs=("chat",), exchanges=NONE
)
def test_silent(vllm_recordings: Recordings) -> None:
    """With the tool choice "none" the model's text is not taken away."""
    told = [said for _, said in answered(vllm_recordings, *NONE) if (said.spent or 0) >= SILENT]
    need(told, "the model generated next to nothing")
    wrong = [
        f"{said.key}: {said.spent} tokens" for said in told if not (said.content.strip() or said.reasoning)
    ]

    assert not wrong, f"no text: {listed(wrong)}"


@check("tools.none.prompt", MUST, spec="fault:vllm-project/vllm/issues/20544", needs=("tools",))
def test_prompt(
    vllm_server: Server,
    tools_prompt_bare: Recording,
    tools_prompt_one: Recording,
    tools_prompt_none: Recording,
) -> None:
    """The tool choice "none" leaves tools in the prompt, unless a flag removes them."""
    bare, with_tool, none = (
        one.ok["usage"]["prompt_tokens"] for one in (tools_prompt_bare, tools_prompt_one, tools_prompt_none)
    )
    flag = vllm_server.args.get("exclude-tools-when-tool-choice-none")
    expected = {bare if flag else with_tool} if vllm_server.args else {bare, with_tool}

    assert none in expected, f"{none} prompt tokens, {bare} without the tool, {with_tool} with it"


@check("tools.single.auto", MUST, spec=PARALLEL, needs=("tools",), exchanges=("tools.auto.single",))
def test_single(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """With `parallel_tool_calls` false there is one call at most."""
    only_if(vllm_server.at_least("0.12.0"), "before 0.12 parallel_tool_calls is ignored")
    told = [said for _, said in answered(vllm_recordings, "tools.auto.single")]
    need(any(said.calls for said in told), "the model made no call")
    wrong = [f"{said.key}: {[call.name for call in said.calls]}" for said in told if len(said.calls) > 1]

    assert not wrong, listed(wrong)


@check("tools.single.required", MUST, spec=PARALLEL, needs=("tools.required",))
def test_single_required(vllm_server: Server, tools_forced_single: Recording) -> None:
    """With `parallel_tool_calls` false a required call is one call."""
    only_if(vllm_server.at_least("0.12.0"), "before 0.12 parallel_tool_calls is ignored")
    said = answer(tools_forced_single)
    need(said.calls, "no call was made")

    assert len(said.calls) == 1, f"{[call.name for call in said.calls]}"


@check("tools.single.parity", SHOULD, spec=PARALLEL, needs=("tools", "stream"))
def test_single_parity(tools_auto_single: Recording, tools_auto_single_stream: Recording) -> None:
    """With `parallel_tool_calls` false both modes hold as many calls."""
    whole, stream = answer(tools_auto_single), answer(tools_auto_single_stream)
    need(whole.calls or stream.calls, "the model made no call")

    assert len(whole.calls) == len(stream.calls), f"streamed {len(stream.calls)}, whole {len(whole.calls)}"


@check(
    "tools.unused.begin",
    MUST,
    spec="fault:vllm-project/vllm/issues/30866",
    needs=("tools", "stream"),
)
def test_unused(tools_unused: Recording, tools_unused_stream: Recording) -> None:
    """A stream that calls no tool holds its text from the first word on."""
    whole, stream = answer(tools_unused), answer(tools_unused_stream)
    only_if(not (whole.calls or stream.calls), "the model called a tool that is of no use")
    said, streamed = (f"{one.reasoning}{one.content}".lstrip() for one in (whole, stream))
    lost = len(streamed) < len(said) and said.endswith(streamed.strip())

    assert not lost, f"streamed {streamed!r}, whole {said!r}"
