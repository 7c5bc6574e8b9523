"""What a script says comes back: its calls, its text and its reasoning, however it is split and sent."""

from __future__ import annotations

from pytest_vllm import MUST, SHOULD, Case, Recording, Recordings, Server, check, listed, need, only_if, short

from .answers import call_pieces, said
from .forbidden import odd, sayable
from .phrasing import answer_rows
from .scripts import faults, opening_of, script_of

SPEC = "vllm:features/tool_calling"
NEEDS = ("chat", "scripted")
STREAM = (*NEEDS, "stream")
WHOLE, STREAMED = "scripted.answer.whole[", "scripted.answer.stream["
SPLIT = "scripted.answer.split["


@check("scripted.answer.whole", MUST, spec=SPEC, needs=NEEDS)
def test_whole(
    vllm_server: Server,
    scripted_answer: Case,
    scripted_answer_whole: Recording,
    scripted_forbidden: Recording,
) -> None:
    """A whole answer holds the calls, the text and the reasoning that the model wrote."""
    sayable(scripted_answer_whole, scripted_forbidden, may_be=odd(scripted_answer))
    wrong = faults(vllm_server, script_of(vllm_server, scripted_answer), said(scripted_answer_whole))

    assert not wrong, listed(wrong)


@check("scripted.answer.stream", MUST, spec=SPEC, needs=STREAM)
def test_stream(
    vllm_server: Server,
    scripted_answer: Case,
    scripted_answer_stream: Recording,
    scripted_forbidden: Recording,
) -> None:
    """A stream joins to the calls, the text and the reasoning that the model wrote."""
    sayable(scripted_answer_stream, scripted_forbidden, may_be=odd(scripted_answer))
    wrong = faults(vllm_server, script_of(vllm_server, scripted_answer), said(scripted_answer_stream))

    assert not wrong, listed(wrong)


@check("scripted.answer.split", MUST, spec=SPEC, needs=STREAM)
def test_split(
    vllm_server: Server,
    scripted_answer: Case,
    scripted_answer_split: Recording,
    scripted_forbidden: Recording,
) -> None:
    """A stream says the same wherever the model's tokens end."""
    sayable(scripted_answer_split, scripted_forbidden, may_be=odd(scripted_answer))
    wrong = faults(vllm_server, script_of(vllm_server, scripted_answer), said(scripted_answer_split))

    assert not wrong, listed(wrong)


@check("scripted.answer.chunks", MUST, spec=SPEC, needs=STREAM)
def test_chunks(
    vllm_server: Server,
    scripted_answer: Case,
    scripted_answer_chunks: Recording,
    scripted_forbidden: Recording,
) -> None:
    """A stream says the same when one event brings several tokens."""
    sayable(scripted_answer_chunks, scripted_forbidden, may_be=odd(scripted_answer))
    wrong = faults(vllm_server, script_of(vllm_server, scripted_answer), said(scripted_answer_chunks))

    assert not wrong, listed(wrong)


@check("scripted.answer.once", MUST, spec=SPEC, needs=STREAM)
def test_once(
    vllm_server: Server,
    scripted_answer: Case,
    scripted_answer_once: Recording,
    scripted_forbidden: Recording,
) -> None:
    """A stream says the same when its last event brings all but the first token."""
    sayable(scripted_answer_once, scripted_forbidden, may_be=odd(scripted_answer))
    wrong = faults(vllm_server, script_of(vllm_server, scripted_answer), said(scripted_answer_once))

    assert not wrong, listed(wrong)


@check(
    "scripted.thoughts.opening",
    MUST,
    spec="fault:vllm-project/vllm/issues/55195",
    needs=(*STREAM, "reasoning"),
    exchanges=(WHOLE,),
)
def test_opening(vllm_server: Server, vllm_recordings: Recordings, scripted_thoughts_late: Recording) -> None:
    """The marker that opens reasoning is not part of it, with other tokens or alone."""
    opening = opening_of(vllm_server).strip()
    only_if(opening, "reasoning of this parser begins without a marker")
    whole = [one for one in vllm_recordings.of(WHOLE) if one.status == 200]
    # some readers know reasoning at the beginning of an answer alone: an empty line before makes it text
    told = [*whole, *([scripted_thoughts_late] if said(scripted_thoughts_late).thoughts else [])]
    need(any(said(one).thoughts for one in told), "no answer holds reasoning")
    wrong = [f"{one.key}: {short(said(one).thoughts)}" for one in told if opening in said(one).thoughts]

    assert not wrong, listed(wrong)


@check("scripted.answer.alike", SHOULD, spec=SPEC, needs=STREAM, exchanges=(WHOLE, STREAMED))
def test_alike(vllm_recordings: Recordings) -> None:
    """Text and reasoning are the same to the letter, blanks too, streamed or whole."""
    wrong = []
    # how text before and after calls is joined is nobody's promise
    plain = {f"{WHOLE}{case.id}]" for case in answer_rows() if not case["after"]}
    for whole in (one for one in vllm_recordings.of(WHOLE) if one.key in plain):
        stream = vllm_recordings.get(whole.key.replace(WHOLE, STREAMED))
        if whole.status == stream.status == 200:
            one, other = said(whole), said(stream)
            wrong += [
                f"{whole.key}: {what} whole {short(first, 40)}, streamed {short(second, 40)}"
                for what, first, second in (
                    ("content", one.content, other.content),
                    ("reasoning", one.thoughts, other.thoughts),
                )
                if first != second
            ]

    assert not wrong, listed(wrong)


@check("scripted.answer.arguments-alike", SHOULD, spec=SPEC, needs=STREAM, exchanges=(WHOLE, STREAMED))
def test_arguments_alike(vllm_recordings: Recordings) -> None:
    """Arguments are the same to the letter, streamed or whole."""
    wrong, seen = [], 0
    for whole in vllm_recordings.of(WHOLE):
        stream = vllm_recordings.get(whole.key.replace(WHOLE, STREAMED))
        if whole.status == stream.status == 200:
            one, other = ([call.arguments for call in said(each).calls] for each in (whole, stream))
            seen += len(one)
            if len(one) == len(other) and one != other:
                wrong.append(f"{whole.key}: whole {short(str(one), 60)}, streamed {short(str(other), 60)}")
    need(seen, "no whole answer holds a call")

    assert not wrong, listed(wrong)


@check("scripted.answer.ids", MUST, spec="openai:chat/object", needs=NEEDS, exchanges=(WHOLE, STREAMED))
def test_ids(vllm_recordings: Recordings) -> None:
    """Every call has an id of its own within its answer, and the type `function`."""
    wrong, seen = [], 0
    for one in [*vllm_recordings.of(WHOLE), *vllm_recordings.of(STREAMED)]:
        calls = said(one).calls if one.status == 200 else []
        seen += len(calls)
        ids = [call.id for call in calls]
        wrong += [f"{one.key}: ids {ids}"] if len(set(ids)) < len(ids) or not all(ids) else []
        wrong += [f"{one.key}: type {call.type!r}" for call in calls if call.type != "function"]
    need(seen, "no answer holds a call")

    assert not wrong, listed(wrong)


@check("scripted.answer.indices", MUST, spec="openai:chat-streaming", needs=STREAM, exchanges=(SPLIT,))
def test_indices(vllm_recordings: Recordings) -> None:
    """The calls of a stream are numbered 0, 1 … in the order they were written in."""
    wrong, seen = [], 0
    for one in vllm_recordings.of(SPLIT):
        parts = call_pieces(one) if one.status == 200 else []
        indices = list(dict.fromkeys(part.get("index") for part in parts))
        seen += len(indices)
        if indices != list(range(len(indices))):
            wrong.append(f"{one.key}: {indices}")
    need(seen, "no stream holds a call")

    assert not wrong, listed(wrong)


@check("scripted.answer.names-once", MUST, spec="openai:chat-streaming", needs=STREAM, exchanges=(SPLIT,))
def test_names_once(vllm_recordings: Recordings) -> None:
    """The name and the id of a streamed call come once, in its first delta."""
    wrong, seen = [], 0
    for one in vllm_recordings.of(SPLIT):
        begun = set()
        for part in call_pieces(one) if one.status == 200 else []:
            index, function = part.get("index"), part.get("function") or {}
            named = bool(function.get("name")) and bool(part.get("id"))
            if named == (index in begun):
                wrong.append(f"{one.key}: {str(part)[:100]}")
            begun.add(index)
        seen += len(begun)
    need(seen, "no stream holds a call")

    assert not wrong, listed(wrong)
