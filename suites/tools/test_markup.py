"""Markup of calls is for the parser: none of it reaches clients, none of it as text."""

from pytest_vllm import MUST, SHOULD, Case, Recording, Recordings, check, listed, need

from .answers import Answer, answer, errors
from .gathered import answered, with_calls
from .markers import cut_marker, leaked, written_call
from .requests import declared
from .tools import schemas

FAULT = "fault:vllm-project/vllm/issues/40800"
CUT = "fault:vllm-project/vllm/issues/47903"
FORCED, AUTO, RESULT = "tools.forced.", "tools.auto.", "tools.result."


def leaks(said: Answer) -> list[str]:
    """The markers in an answer's text and names, with the text around the first."""
    names = " ".join(call.name for call in said.calls)
    return [
        f"{said.key}: {marker} in {said.content[:80]!r}{names[:40]}"
        for marker in leaked(said.content + names)
    ]


@check("tools.markup.forced", MUST, spec=FAULT, needs=("tools.required",), exchanges=(FORCED,))
def test_forced(vllm_recordings: Recordings) -> None:
    """Beside a forced call, text and names hold no markup."""
    wrong = [fault for _, said in with_calls(vllm_recordings, FORCED) for fault in leaks(said)]

    assert not wrong, listed(wrong)


@check("tools.markup.auto", MUST, spec=FAULT, needs=("tools",), exchanges=(AUTO,))
def test_auto(vllm_recordings: Recordings) -> None:
    """Beside a call that was parsed, text and names hold no markup."""
    wrong = [fault for _, said in with_calls(vllm_recordings, AUTO) for fault in leaks(said)]

    assert not wrong, listed(wrong)


@check("tools.markup.unread", MUST, spec=FAULT, needs=("tools",), exchanges=(AUTO,))
def test_unread(vllm_recordings: Recordings) -> None:
    """No well-formed call is left in the text."""
    told = [(one, said) for one, said in answered(vllm_recordings, AUTO) if said.complete]
    need(any(said.content or said.calls for _, said in told), "the model said nothing")
    found = [(said.key, written_call(said.content, schemas(declared(one)))) for one, said in told]
    wrong = [f"{key}: {text!r}" for key, text in found if text]

    assert not wrong, f"the parser left calls in the content: {listed(wrong)}"


@check(
    "tools.markup.thoughts",
    MUST,
    spec="fault:vllm-project/vllm/issues/39056",
    needs=("tools", "reasoning"),
    exchanges=(AUTO,),
)
def test_thoughts(vllm_recordings: Recordings) -> None:
    """No well-formed call is swallowed by the reasoning of an answer that makes none."""
    told = [(one, said) for one, said in answered(vllm_recordings, AUTO) if said.complete]
    found = [
        (said.key, written_call(said.reasoning, schemas(declared(one))))
        for one, said in told
        if not said.calls
    ]
    wrong = [f"{key}: {text!r}" for key, text in found if text]

    assert not wrong, f"calls within the reasoning: {listed(wrong)}"


@check("tools.markup.result", MUST, spec="fault:NVIDIA/TensorRT-LLM/issues/9256", needs=("tools",))
def test_result(tools_result_used: Recording) -> None:
    """An answer that follows a tool's result holds no control tokens."""
    said = answer(tools_result_used)
    need(said.content, "the answer holds no text")
    wrong = [marker for marker in leaked(said.content) if marker.startswith(("<|", "<\uff5c", "[TOOL"))]

    assert not wrong, f"{wrong} in {said.content[:120]!r}"


@check("tools.cut.answered", MUST, spec=CUT, needs=("tools.required", "stream"), exchanges=("tools.cut.",))
def test_cut_answered(vllm_recordings: Recordings) -> None:
    """A call that the limit of tokens cuts is answered, and breaks no stream."""
    told = vllm_recordings.of("tools.cut.")
    wrong = [f"{one.key}: {one.status or one.error}: {one.text[:80]}" for one in told if one.status != 200]
    wrong += [
        f"{one.key}: {fault}"
        for one in told
        if one.status == 200 and one.request.streams
        for fault in errors(one)
    ]

    assert not wrong, listed(wrong)


def cut(recording: Recording) -> Answer:
    """An answer that the limit of tokens cut. Undecided when the stream broke off, or when nothing cut it."""
    need(not (recording.request.streams and errors(recording)), f"{recording.key} broke off")
    said = answer(recording)
    limit = recording.request.json["max_tokens"]
    need(said.spent == limit, f"{said.spent} tokens of {limit}: nothing was cut")
    return said


@check("tools.cut.finish", MUST, spec="fault:vllm-project/vllm/issues/53269", needs=("tools.required",))
def test_cut_finish(cut_at: Case, forced_choice: Case, tools_cut_forced: Recording) -> None:
    """A call that the limit of tokens cuts finishes with `length`."""
    said = cut(tools_cut_forced)

    assert said.finish == "length", f"{forced_choice.id}, {cut_at.id} tokens: {said.finish!r}"


@check(
    "tools.cut.finish-stream",
    MUST,
    spec="fault:vllm-project/vllm/issues/53269",
    needs=("tools.required", "stream"),
)
def test_cut_finish_stream(cut_at: Case, forced_choice: Case, tools_cut_forced_stream: Recording) -> None:
    """A streamed call that the limit of tokens cuts finishes with `length`."""
    said = cut(tools_cut_forced_stream)

    assert said.finish == "length", f"{forced_choice.id}, {cut_at.id} tokens: {said.finish!r}"


@check("tools.cut.markup", MUST, spec=CUT, needs=("tools.required",))
def test_cut_markup(cut_at: Case, forced_choice: Case, tools_cut_forced: Recording) -> None:
    """A call that the limit of tokens cuts leaves no markup in the text."""
    said = cut(tools_cut_forced)
    found = [*leaked(said.content), cut_marker(said.content)]

    assert not any(found), f"{forced_choice.id}, {cut_at.id} tokens: {said.content[:120]!r}"


@check("tools.cut.markup-stream", MUST, spec=CUT, needs=("tools.required", "stream"))
def test_cut_markup_stream(cut_at: Case, forced_choice: Case, tools_cut_forced_stream: Recording) -> None:
    """A streamed call that the limit of tokens cuts leaves no markup in the text."""
    said = cut(tools_cut_forced_stream)
    found = [*leaked(said.content), cut_marker(said.content)]

    assert not any(found), f"{forced_choice.id}, {cut_at.id} tokens: {said.content[:120]!r}"


@check(
    "tools.cut.parity",
    SHOULD,
    spec="fault:vllm-project/vllm/issues/47137",
    needs=("tools.required", "stream"),
)
def test_cut_parity(
    cut_at: Case, forced_choice: Case, tools_cut_forced: Recording, tools_cut_forced_stream: Recording
) -> None:
    """A call that the limit of tokens cuts leaves the same text in both modes."""
    whole, stream = cut(tools_cut_forced), cut(tools_cut_forced_stream)

    assert stream.content == whole.content, (
        f"{forced_choice.id}, {cut_at.id}: streamed {stream.content[:60]!r}, whole {whole.content[:60]!r}"
    )
