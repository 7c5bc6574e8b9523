"""Calls that the model makes of its own accord, in its own format, through the server's parser."""

from pytest_vllm import (
    CAPABILITY,
    MUST,
    SHOULD,
    Case,
    Recording,
    Recordings,
    Server,
    check,
    listed,
    need,
    observe,
    only_if,
    unexpected,
)

from .answers import answer
from .gathered import answered, ended, with_calls
from .judgements import differences, index_faults, object_fault, schema_fault, unlike
from .requests import declared
from .tools import OSLO, PING, STORE, schemas

SPEC = "openai:chat/create#tools"
FAULT = "fault:vllm-project/vllm/issues/38579"
AUTO = "tools.auto."
NEEDS, STREAM = ("tools",), ("tools", "stream")
SILENT = 8
CALL_OR_TEXT = ("llama3_json", "llama4_json", "llama4_pythonic", "pythonic")


@check("tools.auto.answered", MUST, spec=SPEC, needs=NEEDS, exchanges=(AUTO,))
def test_answered(vllm_recordings: Recordings) -> None:
    """A request that offers a tool is answered with 200."""
    wrong = unexpected(vllm_recordings.of(AUTO))

    assert not wrong, listed(wrong)


@check("tools.auto.able", SHOULD, spec=SPEC, family=CAPABILITY, needs=NEEDS, exchanges=(AUTO,))
def test_able(vllm_recordings: Recordings) -> None:
    """Asked to call a tool, the model does so more often than not."""
    told = answered(vllm_recordings, AUTO)
    count = sum(bool(said.calls) for _, said in told)
    observe("calls made when asked for", f"{count} of {len(told)}")

    assert 2 * count > len(told), f"{count} of {len(told)} answers hold the call that was asked for"


@check("tools.auto.value", SHOULD, spec=SPEC, family=CAPABILITY, needs=NEEDS)
def test_value(auto_value: Case, tools_auto_value: Recording) -> None:
    """The model passes on the value that it was given, of its type."""
    said = ended(tools_auto_value)
    need(said.calls, "the model made no call")
    wrong = differences(said.calls, [(STORE, {"value": auto_value["value"]})])

    assert not wrong, listed(wrong)


@check("tools.auto.parity", MUST, spec="fault:vllm-project/vllm/issues/40861", needs=STREAM)
def test_parity(auto_value: Case, tools_auto_value: Recording, tools_auto_value_stream: Recording) -> None:
    """A stream holds the call of the whole answer, name and arguments alike."""
    whole = ended(tools_auto_value)
    stream = ended(tools_auto_value_stream)
    need(whole.calls or stream.calls, "the model made no call")
    right = [(STORE, {"value": auto_value["value"]})]
    need(
        not differences(whole.calls, right) or not differences(stream.calls, right),
        "the model did not make the call that it was asked to make, so the two may be two answers",
    )
    wrong = unlike(whole, stream)

    assert not wrong, listed(wrong)


@check("tools.auto.empty-parity", MUST, spec="fault:vllm-project/vllm/issues/28806", needs=STREAM)
def test_empty_parity(tools_auto_empty: Recording, tools_auto_empty_stream: Recording) -> None:
    """A call without parameters has the arguments `{}` in both modes."""
    both = [ended(tools_auto_empty), ended(tools_auto_empty_stream)]
    need(any(said.calls for said in both), "the model made no call")
    need(any(not differences(said.calls, [(PING, {})]) for said in both), "the model passed arguments")
    wrong = [f"{said.key}: {f}" for said in both for f in differences(said.calls, [(PING, {})])]

    assert not wrong, listed(wrong)


@check("tools.auto.object", MUST, spec=SPEC, needs=NEEDS, exchanges=(AUTO,))
def test_object(vllm_recordings: Recordings) -> None:
    """A whole answer's call, once parsed, has a JSON object as arguments."""
    told = [said for one, said in with_calls(vllm_recordings, AUTO) if not one.request.streams]
    need(told, "no whole answer holds a call")
    wrong = [f"{said.key}: {fault}" for said in told for call in said.calls if (fault := object_fault(call))]

    assert not wrong, listed(wrong)


@check("tools.auto.valid", SHOULD, spec=SPEC, family=CAPABILITY, needs=NEEDS, exchanges=(AUTO,))
def test_valid(vllm_recordings: Recordings) -> None:
    """The arguments of the model's calls are valid for their schemas."""
    told = [(schemas(declared(one)), said) for one, said in with_calls(vllm_recordings, AUTO)]
    wrong = [
        f"{said.key}: {fault}"
        for known, said in told
        for call in said.calls
        if (fault := object_fault(call) or schema_fault(call, known))
    ]

    assert not wrong, listed(wrong)


@check("tools.auto.declared", SHOULD, spec=SPEC, family=CAPABILITY, needs=NEEDS, exchanges=(AUTO,))
def test_declared(vllm_recordings: Recordings) -> None:
    """The model calls only tools that it was offered."""
    told = [(schemas(declared(one)), said) for one, said in with_calls(vllm_recordings, AUTO)]
    wrong = [
        f"{said.key}: {call.name!r}" for known, said in told for call in said.calls if call.name not in known
    ]

    assert not wrong, listed(wrong)


@check("tools.auto.silent", MUST, spec="fault:cline/cline/issues/9622", needs=NEEDS, exchanges=(AUTO,))
def test_silent(vllm_recordings: Recordings) -> None:
    """What the model generated shows: as text, as reasoning or as a call."""
    told = [said for _, said in answered(vllm_recordings, AUTO) if said.spent is not None]
    need(told, "no answer reports its tokens")
    wrong = [
        f"{said.key}: {said.spent} tokens, finish {said.finish!r}"
        for said in told
        if (said.spent or 0) >= SILENT and not (said.content.strip() or said.reasoning or said.calls)
    ]

    assert not wrong, f"neither text nor call: {listed(wrong)}"


@check("tools.parallel.two", SHOULD, spec=SPEC, family=CAPABILITY, needs=NEEDS)
def test_two(tools_auto_parallel: Recording) -> None:
    """Asked for two independent calls, the model makes two."""
    said = ended(tools_auto_parallel)
    need(said.calls, "the model made no call")

    assert len(said.calls) == 2, f"{len(said.calls)} calls"


@check("tools.parallel.parity", MUST, spec="fault:vllm-project/vllm/issues/53965", needs=STREAM)
def test_parallel_parity(
    tools_auto_parallel: Recording,
    tools_auto_parallel_again: Recording,
    tools_auto_parallel_stream: Recording,
) -> None:
    """A stream holds all calls of the whole answer, in their order."""
    whole, again, stream = (
        ended(one) for one in (tools_auto_parallel, tools_auto_parallel_again, tools_auto_parallel_stream)
    )
    need(not unlike(whole, again), "the server does not repeat its calls")
    need(whole.calls or stream.calls, "the model made no call")
    wrong = unlike(whole, stream)

    assert not wrong, listed(wrong)


@check("tools.parallel.index", MUST, spec="openai:chat-streaming", needs=STREAM)
def test_parallel_index(tools_auto_parallel_stream: Recording) -> None:
    """Parallel calls of a stream are numbered 0, 1 … with one id each."""
    need(answer(tools_auto_parallel_stream).calls, "the model made no call")
    wrong = index_faults(tools_auto_parallel_stream)

    assert not wrong, listed(wrong)


@check("tools.words.parity", MUST, spec=FAULT, needs=STREAM)
def test_words_parity(
    vllm_server: Server,
    tools_auto_words: Recording,
    tools_auto_words_again: Recording,
    tools_auto_words_stream: Recording,
) -> None:
    """Beside a call, a stream holds the whole answer's text."""
    parser = vllm_server.args.get("tool-call-parser")
    only_if(parser not in CALL_OR_TEXT, f"{parser} reads an answer as a call or as text, never as both")
    whole, again, stream = (
        ended(one) for one in (tools_auto_words, tools_auto_words_again, tools_auto_words_stream)
    )
    need((whole.content, whole.finish) == (again.content, again.finish), "the server does not repeat itself")
    told = whole.spent is not None and whole.spent == stream.spent
    lost = [call.name for call in whole.calls if told and not stream.calls and call.name in stream.content]
    assert not lost, f"the call of {lost[0]} is streamed as text: {stream.content[:160]!r}"
    known = parser or (whole.calls and stream.calls)
    only_if(known, "no call came with a text, as with parsers that read one of both; this one is not known")
    need(whole.calls and stream.calls, "not called in both modes")
    texts = [said.content.rstrip() if said.content.strip() else said.content for said in (stream, whole)]

    assert texts[0] == texts[1], f"streamed {texts[0][:120]!r}, whole {texts[1][:120]!r}"


@check("tools.words.kept", SHOULD, spec=FAULT, family=CAPABILITY, needs=NEEDS)
def test_words_kept(tools_auto_words: Recording) -> None:
    """A sentence that was to come before a call is in the content."""
    said = ended(tools_auto_words)
    need(any(call.name == OSLO for call in said.calls), "the model made no call")

    assert "moment" in said.content.lower(), f"content {said.content[:120]!r}"
