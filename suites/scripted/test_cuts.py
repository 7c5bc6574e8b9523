"""Answers that a limit or a stop string ends, at a place that is known to the token."""

from __future__ import annotations

from pytest_vllm import (
    MUST,
    SHOULD,
    Case,
    Recording,
    Recordings,
    Server,
    Writer,
    check,
    listed,
    need,
    only_if,
    short,
)

from .answers import Said, call_faults, refusal, said, without
from .phrasing import CUT, STOP, cut_pieces, stop_texts
from .scripts import faults, opening_of, spoken, tokens_in
from .tools import NOTE

SPEC = "openai:chat/create"
FINISH = "fault:vllm-project/vllm/issues/53269"
FAULT = "fault:vllm-project/vllm/issues/47903"
NEEDS = ("chat", "scripted")
STREAM = (*NEEDS, "stream")
WHOLE, STREAMED = "scripted.cut.whole[", "scripted.cut.stream["


def uncut(server: Server, one: Recording) -> bool:
    """Whether the limit of a request leaves room for the whole script and its end."""
    pieces, _ = cut_pieces(server)
    return bool(one.request.json["max_tokens"] > tokens_in(server, pieces))


def cuts(server: Server, recordings: Recordings, prefix: str) -> list[tuple[str, Said]]:
    """The answers that their limit cut."""
    told = [
        (one.key, said(one)) for one in recordings.of(prefix) if one.status == 200 and not uncut(server, one)
    ]
    need(told, "no cut request was answered")
    return told


def refusals(recordings: Recordings, prefix: str) -> list[str]:
    """Cut requests that got no answer, for what is left of a call."""
    return [f"{one.key}: {told}" for one in recordings.of(prefix) if (told := refusal(one))]


@check("scripted.cut.finish", MUST, spec=FINISH, needs=NEEDS, exchanges=(WHOLE,))
def test_finish(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """A whole answer cut within a call ends with `length`, unless it is complete."""
    wrong = refusals(vllm_recordings, WHOLE) or finish_faults(cuts(vllm_server, vllm_recordings, WHOLE))

    assert not wrong, listed(wrong)


@check("scripted.cut.stream-finish", MUST, spec=FINISH, needs=STREAM, exchanges=(STREAMED,))
def test_stream_finish(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """A stream cut within a call ends with `length`, unless it is complete."""
    wrong = refusals(vllm_recordings, STREAMED) or finish_faults(cuts(vllm_server, vllm_recordings, STREAMED))

    assert not wrong, listed(wrong)


@check("scripted.cut.always-length", SHOULD, spec=FINISH, needs=NEEDS, exchanges=("scripted.cut.",))
def test_always_length(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """What its limit cuts ends with `length`, even where the call in it is complete."""
    told = cuts(vllm_server, vllm_recordings, "scripted.cut.")
    wrong = [f"{key}: {one.finish!r}" for key, one in told if one.finish != "length"]

    assert not wrong, listed(wrong)


def finish_faults(told: list[tuple[str, Said]]) -> list[str]:
    """Answers that do not say that they were cut although no complete call is in them."""
    return [
        f"{key}: {one.finish!r}"
        for key, one in told
        if one.finish != "length" and call_faults(one.calls, [(CUT.name, CUT.arguments)])
    ]


@check("scripted.cut.arguments", MUST, spec=SPEC, needs=STREAM, exchanges=(STREAMED,))
def test_arguments(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """What a cut stream gives of a call's arguments is how they begin."""
    told = cuts(vllm_server, vllm_recordings, STREAMED)
    full = '{"text":"a"}'
    calls = [(key, call) for key, one in told for call in one.calls]
    need(calls, "no cut stream holds a call")
    wrong = [
        f"{key}: {call.name} {call.arguments!r}"
        for key, call in calls
        if call.name != NOTE or not full.startswith("".join(call.arguments.split()))
    ]

    assert not wrong, listed(wrong)


@check("scripted.cut.markup", MUST, spec=FAULT, needs=NEEDS, exchanges=(WHOLE,))
def test_markup(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """The content of a whole answer that is cut holds nothing of the call's markup."""
    told = cuts(vllm_server, vllm_recordings, WHOLE)
    wrong = [f"{key}: {short(one.content)}" for key, one in told if one.content.strip()]

    assert not wrong, listed(wrong)


@check("scripted.cut.stream-markup", MUST, spec=FAULT, needs=STREAM, exchanges=(STREAMED,))
def test_stream_markup(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """The content of a stream that is cut holds nothing of the call's markup."""
    told = cuts(vllm_server, vllm_recordings, STREAMED)
    wrong = [f"{key}: {short(one.content)}" for key, one in told if one.content.strip()]

    assert not wrong, listed(wrong)


@check("scripted.cut.thoughts", MUST, spec=SPEC, needs=(*NEEDS, "reasoning"), exchanges=("scripted.cut.",))
def test_thoughts(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """A cut in the call leaves the reasoning before it as it is."""
    told, opening = cuts(vllm_server, vllm_recordings, "scripted.cut."), opening_of(vllm_server)
    wrong = [
        f"{key}: {short(one.thoughts)}" for key, one in told if without(one.thoughts, opening).strip() != "Hm"
    ]

    assert not wrong, listed(wrong)


@check("scripted.cut.room", MUST, spec=SPEC, needs=NEEDS, exchanges=("scripted.cut.",))
def test_room(vllm_server: Server, vllm_recordings: Recordings) -> None:
    """With room for its last token, the call is whole."""
    told = [
        one for one in vllm_recordings.of("scripted.cut.") if one.status == 200 and uncut(vllm_server, one)
    ]
    need(told, "the call of this parser is longer than the longest limit")
    script = spoken(vllm_server, "", CUT, thinking="Hm")
    wrong = [f"{one.key}: {fault}" for one in told for fault in faults(vllm_server, script, said(one))]

    assert not wrong, listed(wrong)


@check("scripted.stop.whole", MUST, spec="openai:chat/create#stop", needs=NEEDS)
def test_stop(vllm_server: Server, scripted_stop: Case, scripted_stop_whole: Recording) -> None:
    """A stop string ends a whole answer where it stands, and is not part of it."""
    wrong = stop_faults(vllm_server, scripted_stop["where"], said(scripted_stop_whole))

    assert not wrong, listed(wrong)


@check("scripted.stop.stream", MUST, spec="openai:chat/create#stop", needs=STREAM)
def test_stop_stream(vllm_server: Server, scripted_stop: Case, scripted_stop_stream: Recording) -> None:
    """A stop string ends a stream where it stands, and is not part of it."""
    wrong = stop_faults(vllm_server, scripted_stop["where"], said(scripted_stop_stream))

    assert not wrong, listed(wrong)


def stop_faults(server: Server, where: str, found: Said) -> list[str]:
    """How an answer differs from its script up to the stop string.

    What a cut call looks like is another check's; of it only the reasoning and the text before are looked at.
    """
    content, argument, thought = stop_texts(where)
    reads = Writer.of(server.args).reasoning is not None
    only_if(reads or where != "thought", "without a reasoning parser no reasoning is said")
    meant = {
        "thought": (thought, ""),
        "content": (thought, content),
        "argument": (thought, content),
        "nowhere": (thought, content),
    }[where]
    wrong = []
    if reads and without(found.thoughts, opening_of(server)).strip() != meant[0].partition(STOP)[0].strip():
        wrong.append(f"reasoning {short(found.thoughts)}, not {short(meant[0].partition(STOP)[0])}")
    text = meant[1].partition(STOP)[0].strip()
    whole = found.content.strip()
    if (not whole.startswith(text)) if where == "argument" else whole != text:
        wrong.append(f"content {short(found.content)}, not {short(text)}")
    if STOP in found.content + found.thoughts:
        wrong.append("the stop string is part of the answer")
    if where == "nowhere" and [(call.name, argument in call.arguments) for call in found.calls] != [
        (NOTE, True)
    ]:
        wrong.append(f"calls {[(call.name, short(call.arguments)) for call in found.calls]}")
    return wrong
