"""A text of which a constraint leaves one spelling comes in that spelling, on any model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Recording, Recordings, check, listed, need, observe, only_if, parting, text_of

from ..oracle.answers import CHAT, answer_of  # noqa: TID252 - suites lie together
from .texts import ASKED, CODE, EACH, LONG, SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BLANKS = "fault:vllm-project/vllm/issues/33457"
LETTERS = "fault:vllm-project/vllm/issues/8627"
STREAMED = "fault:vllm-project/vllm/issues/28804"
STOP = "openai:chat/create#stop"
NEEDS = ("completions", "structured-output")
WHOLE, STREAM, BEGIN = "spelling.whole[", "spelling.streamed[", 24


@check("spelling.blanks", MUST, spec=BLANKS, needs=NEEDS, exchanges=[WHOLE])
def test_blanks(vllm_recordings: Recordings) -> None:
    """Blanks, tabs, line breaks and marks come as the tokens spell them."""
    _judge(vllm_recordings, WHOLE, CODE)


@check("spelling.scripts", MUST, spec=LETTERS, needs=NEEDS, exchanges=[WHOLE])
def test_scripts(vllm_recordings: Recordings) -> None:
    """Letters of all scripts come as the tokens spell them."""
    _judge(vllm_recordings, WHOLE, SCRIPTS)


@check("spelling.streamed.blanks", MUST, spec=STREAMED, needs=(*NEEDS, "stream"), exchanges=[STREAM])
def test_streamed_blanks(vllm_recordings: Recordings) -> None:
    """The pieces of a stream are blanks, tabs, line breaks and marks as spelt."""
    _judge(vllm_recordings, STREAM, CODE)


@check("spelling.streamed.scripts", MUST, spec=STREAMED, needs=(*NEEDS, "stream"), exchanges=[STREAM])
def test_streamed_scripts(vllm_recordings: Recordings) -> None:
    """The pieces of a stream are letters of all scripts as spelt."""
    _judge(vllm_recordings, STREAM, SCRIPTS)


@check("spelling.stopped", MUST, spec=STOP, needs=("chat", "structured-output"))
def test_stopped(spelling_stopped: Recording) -> None:
    """A text that is stopped within a token ends with the stop string, if that shows."""
    only_if(spelling_stopped.status not in (400, 422), f"refused: {spelling_stopped.text[:120]}")
    _hold([spelling_stopped], CODE)


@check("spelling.stopped.exact", MUST, spec=STOP, needs=("chat", "structured-output"))
def test_stopped_exact(spelling_stopped: Recording, spelling_exact: Recording) -> None:
    """A stop string within the last token of the limit is what ends the answer."""
    only_if(spelling_stopped.status not in (400, 422), f"refused: {spelling_stopped.text[:120]}")
    one, other = (recording.ok["choices"][0] for recording in (spelling_stopped, spelling_exact))
    need(one["finish_reason"] == "stop", f"with room for more it ends with {one['finish_reason']!r} too")
    same = text_of(one) == text_of(other)
    need(same or other["finish_reason"] == "length", f"{text_of(other)!r}, with room {text_of(one)!r}")
    only_if(same, "the text was written in more tokens the second time")

    assert other["finish_reason"] == "stop", f"ends with {other['finish_reason']!r}, having said all"


@check("spelling.long", MUST, spec=STREAMED, needs=(*NEEDS, "stream"))
def test_long(spelling_long: Recording) -> None:
    """A text of hundreds of tokens comes as spelt to its end."""
    only_if(spelling_long.status not in (400, 422), f"refused: {spelling_long.text[:120]}")
    need(not spelling_long.late, f"{spelling_long.key}: {spelling_long.error}")
    text = "".join(LONG.splitlines(keepends=True)[: spelling_long.request.json["max_tokens"] // EACH])
    observe("characters", len(text))
    _hold([spelling_long], text)


def _judge(recordings: Recordings, asked: str, text: str) -> None:
    """Fail where an answer that could only be this text is another one."""
    case = "code" if text is CODE else "scripts"
    rows = [one for one in recordings.of(asked) if one.key.partition("[")[2].startswith(case)]
    judged = [one for one in rows if one.status is not None and one.status not in (400, 422)]
    only_if(judged, "this server refuses such constraints")
    spelt = [one for one in judged if not _thought(one)]
    only_if(spelt, "what is thought before the text takes all the tokens")
    _hold(spelt, text)


def _thought(one: Recording) -> bool:
    """Whether an answer was cut, and began with reasoning, which a constraint says nothing of."""
    answer = answer_of(one)
    choices = answer.choices if answer else ()
    return any("length" in choice.finish and choice.text != choice.content for choice in choices)


def _hold(rows: Sequence[Recording], text: str) -> None:
    """Fail where one of these is another text; Undecided where one did not come to its end."""
    wrong = list(_faults(rows, text))

    assert not wrong, listed(wrong)
    for one in rows:
        need(answer_of(one), f"{one.key} cannot be read: {one.status or one.error} {one.text[:80]}")
    found = [(one.key, choice) for one in rows if (answer := answer_of(one)) for choice in answer.choices]
    said = [(key, choice) for key, choice in found if choice.content or not choice.text]
    only_if(said, "the model thinks until its limit")
    cut = [key for key, choice in said if "length" in choice.finish]
    need(not cut, f"{', '.join(dict.fromkeys(cut))}: more tokens than were allowed")


def _faults(rows: Sequence[Recording], text: str) -> Iterator[str]:
    """How answers differ from the only text that they can be."""
    for one in rows:
        answer = answer_of(one)
        for choice in answer.choices if answer else ():
            said, right = _said(one.request.json, choice.content), _right(one.request.json, text)
            if one.request.path == CHAT:  # what parses an answer may strip it
                said, right = said.rstrip(), right.rstrip()
            right = right[: len(said)] if "length" in choice.finish else right
            if said != right:
                at = parting(said, right)
                begin = max(0, at - BEGIN)
                yield (
                    f"{one.key}: {said[begin : at + BEGIN]!r} at {at}, "
                    f"it can only be {right[begin : at + BEGIN]!r}"
                )


def _right(asked: dict[str, Any], text: str) -> str:
    """What an answer that can only be this text shows: up to what stops it."""
    shown = text
    for stop in asked.get("stop") or ():
        before, found, _ = shown.partition(stop)
        shown = f"{before}{found}" if asked.get("include_stop_str_in_output") else before
    return shown.lstrip()


def _said(asked: dict[str, Any], text: str) -> str:
    """A text without the prompt that it repeats, however the tags in that are shown."""
    before, word, behind = text.partition(ASKED) if asked.get("echo") else ("", ASKED, text)
    return (behind if word else f"{before} without its prompt").lstrip()
