"""Forced calls: made, complete, and exactly what their schema leaves open."""

from pytest_vllm import MUST, SHOULD, Case, Recording, Recordings, check, listed, need, unexpected

from .gathered import answered, ended
from .judgements import differences, unlike
from .tools import LONG, NOTE, PING, STORE, WEATHER, WEATHER_ARGUMENTS

SPEC = "openai:chat/create#tool_choice"
NEEDS = ("tools.required",)
STREAM = ("tools.required", "stream")
FORCED = ("tools.forced.",)
MARKED = "fault:vllm-project/vllm/issues/45877"


@check("tools.forced.answered", MUST, spec=SPEC, needs=NEEDS, exchanges=FORCED)
def test_answered(vllm_recordings: Recordings) -> None:
    """A request that forces a call is answered with 200."""
    wrong = unexpected(vllm_recordings.of("tools.forced."))

    assert not wrong, listed(wrong)


@check("tools.forced.called", MUST, spec=SPEC, needs=NEEDS)
def test_called(forced_choice: Case, tools_forced_weather: Recording) -> None:
    """A tool choice "required" or of a named tool gives a call."""
    said = ended(tools_forced_weather)

    assert said.calls, f"{forced_choice.id}: no call, finish {said.finish!r}, content {said.content[:120]!r}"


@check("tools.forced.called-stream", MUST, spec=SPEC, needs=STREAM)
def test_called_stream(forced_choice: Case, tools_forced_weather_stream: Recording) -> None:
    """A streamed tool choice "required" or of a named tool gives a call."""
    said = ended(tools_forced_weather_stream)

    assert said.calls, f"{forced_choice.id}: no call, finish {said.finish!r}, content {said.content[:120]!r}"


@check("tools.forced.exact", MUST, spec=SPEC, needs=NEEDS)
def test_exact(forced_choice: Case, tools_forced_weather: Recording) -> None:
    """A forced call is the one that its schema allows."""
    said = ended(tools_forced_weather)
    need(said.calls, f"{forced_choice.id}: no call")
    wrong = differences(said.calls[:1], [(WEATHER, WEATHER_ARGUMENTS)])

    assert not wrong, listed(wrong)


@check("tools.forced.exact-stream", MUST, spec=SPEC, needs=STREAM)
def test_exact_stream(forced_choice: Case, tools_forced_weather_stream: Recording) -> None:
    """A streamed forced call is the one that its schema allows."""
    said = ended(tools_forced_weather_stream)
    need(said.calls, f"{forced_choice.id}: no call")
    wrong = differences(said.calls[:1], [(WEATHER, WEATHER_ARGUMENTS)])

    assert not wrong, listed(wrong)


@check("tools.forced.one-named", MUST, spec=SPEC, needs=NEEDS, exchanges=("tools.forced.value",))
def test_one_named(vllm_recordings: Recordings) -> None:
    """A named tool choice gives one call, not several."""
    told = [said for _, said in answered(vllm_recordings, "tools.forced.value") if said.complete]
    need(any(said.calls for said in told), "no named call was made")
    wrong = [f"{said.key}: {len(said.calls)} calls" for said in told if len(said.calls) > 1]

    assert not wrong, listed(wrong)


@check("tools.value", MUST, spec="openai:chat/create#tools", needs=NEEDS)
def test_value(tool_value: Case, tools_forced_value: Recording) -> None:
    """An argument is the value that the schema allows, to the last character."""
    said = ended(tools_forced_value)
    wrong = differences(said.calls, [(STORE, {"value": tool_value["value"]})])

    assert not wrong, f"{listed(wrong)}; content {said.content[:120]!r}"


@check("tools.value-stream", MUST, spec="openai:chat/create#tools", needs=STREAM)
def test_value_stream(tool_value: Case, tools_forced_value_stream: Recording) -> None:
    """A streamed argument joins to the value that the schema allows."""
    said = ended(tools_forced_value_stream)
    wrong = differences(said.calls, [(STORE, {"value": tool_value["value"]})])

    assert not wrong, f"{listed(wrong)}; content {said.content[:120]!r}"


@check("tools.marked", MUST, spec=MARKED, needs=NEEDS)
def test_marked(marked_value: Case, tools_marked_value: Recording) -> None:
    """An argument may hold the markup of calls, and arrives to the last character."""
    said = ended(tools_marked_value)
    wrong = differences(said.calls, [(STORE, {"value": marked_value["value"]})])

    assert not wrong, f"{listed(wrong)}; content {said.content[:120]!r}"


@check("tools.marked-stream", MUST, spec=MARKED, needs=STREAM)
def test_marked_stream(marked_value: Case, tools_marked_value_stream: Recording) -> None:
    """A streamed argument may hold the markup of calls, and joins whole."""
    said = ended(tools_marked_value_stream)
    wrong = differences(said.calls, [(STORE, {"value": marked_value["value"]})])

    assert not wrong, f"{listed(wrong)}; content {said.content[:120]!r}"


@check("tools.empty", MUST, spec="fault:vllm-project/vllm/issues/28806", needs=NEEDS)
def test_empty(forced_choice: Case, tools_forced_empty: Recording) -> None:
    """A call without parameters has the arguments `{}`."""
    said = ended(tools_forced_empty)
    need(said.calls, f"{forced_choice.id}: no call")
    wrong = differences(said.calls[:1], [(PING, {})])

    assert not wrong, listed(wrong)


@check("tools.empty-stream", MUST, spec="fault:vllm-project/vllm/issues/28806", needs=STREAM)
def test_empty_stream(forced_choice: Case, tools_forced_empty_stream: Recording) -> None:
    """A streamed call without parameters joins to the arguments `{}`."""
    said = ended(tools_forced_empty_stream)
    need(said.calls, f"{forced_choice.id}: no call")
    wrong = differences(said.calls[:1], [(PING, {})])

    assert not wrong, listed(wrong)


@check("tools.long", MUST, spec="fault:vllm-project/vllm/issues/38579", needs=NEEDS)
def test_long(forced_choice: Case, tools_forced_long: Recording) -> None:
    """A long argument arrives whole."""
    said = ended(tools_forced_long)
    need(said.calls, f"{forced_choice.id}: no call")
    wrong = differences(said.calls[:1], [(NOTE, {"text": LONG})])

    assert not wrong, listed(wrong)


@check("tools.long-stream", MUST, spec="fault:vllm-project/vllm/issues/38579", needs=STREAM)
def test_long_stream(forced_choice: Case, tools_forced_long_stream: Recording) -> None:
    """A long argument arrives whole in a stream."""
    said = ended(tools_forced_long_stream)
    need(said.calls, f"{forced_choice.id}: no call")
    wrong = differences(said.calls[:1], [(NOTE, {"text": LONG})])

    assert not wrong, listed(wrong)


@check("tools.many", MUST, spec="openai:chat/create#tools", needs=NEEDS)
def test_many(tools_forced_many: Recording) -> None:
    """A named tool is called among many others."""
    said = ended(tools_forced_many)
    wrong = differences(said.calls, [(WEATHER, WEATHER_ARGUMENTS)])

    assert not wrong, listed(wrong)


@check("tools.forced.parity", MUST, spec="fault:vllm-project/vllm/issues/18412", needs=STREAM)
def test_parity(
    forced_choice: Case, tools_forced_weather: Recording, tools_forced_weather_stream: Recording
) -> None:
    """A stream holds the forced calls of the whole answer, arguments alike."""
    whole, stream = ended(tools_forced_weather), ended(tools_forced_weather_stream)
    need(whole.calls or stream.calls, f"{forced_choice.id}: no call in either mode")
    wrong = unlike(whole, stream)

    assert not wrong, listed(wrong)


@check("tools.forced.content-parity", MUST, spec="openai:chat-streaming", needs=STREAM)
def test_content_parity(
    forced_choice: Case, tools_forced_weather: Recording, tools_forced_weather_stream: Recording
) -> None:
    """Beside a forced call, a stream holds the text of the whole answer."""
    whole, stream = ended(tools_forced_weather), ended(tools_forced_weather_stream)
    need(whole.calls and stream.calls, f"{forced_choice.id}: not called in both modes")

    assert stream.content == whole.content, (
        f"streamed {stream.content[:120]!r}, whole {whole.content[:120]!r}"
    )


@check("tools.forced.wordless", SHOULD, spec=SPEC, needs=NEEDS, exchanges=FORCED)
def test_wordless(vllm_recordings: Recordings) -> None:
    """Beside a forced call there is no text."""
    told = [said for _, said in answered(vllm_recordings, "tools.forced.") if said.calls and said.complete]
    need(told, "no forced call was made")
    wrong = [f"{said.key}: {said.content[:80]!r}" for said in told if said.content]

    assert not wrong, listed(wrong)


@check("tools.two.called", MUST, spec="openai:chat/create#n", needs=NEEDS, exchanges=("tools.forced.two",))
def test_two(vllm_recordings: Recordings) -> None:
    """Of two choices, each has its own complete call."""
    told = [said for _, said in answered(vllm_recordings, "tools.forced.two") if said.finish != "length"]
    need(told, "both were cut")
    wrong = [
        f"{said.key}: {fault}"
        for said in told
        for fault in differences(said.calls[:1], [(WEATHER, WEATHER_ARGUMENTS)])
    ]

    assert not wrong, listed(wrong)
