"""What reaches the model and what comes back: no part of a conversation is lost, no character turned."""

from __future__ import annotations

import html

from pytest_vllm import MUST, Recording, Recordings, Server, check, listed, need, observe, only_if, parting

from .blocks import blocks, delta, first_word, last_word, of, prompt_tokens, spoken, streams
from .exchanges import LINES, stop_of

SPEC = "anthropic:messages"
STREAMING = "anthropic:messages-streaming"
#: Tokens by which conversations may differ that are joined otherwise; every part has several times as many.
JOINTS = 16


@check("messages.text.lines", MUST, spec=SPEC, needs=("messages", "chat"))
def test_lines(messages_lines: Recording, messages_lines_chat: Recording) -> None:
    """A text has the line breaks, blanks and marks that it has over chat."""
    chat = messages_lines_chat.ok["choices"][0]["message"].get("content") or ""
    fault = _turned(spoken(messages_lines.ok), str(chat))

    assert not fault, f"here and over chat: {fault}"


@check("messages.stream.lines", MUST, spec=STREAMING, needs=("messages", "stream"))
def test_lines_streamed(
    vllm_server: Server, messages_lines: Recording, messages_lines_stream: Recording
) -> None:
    """A streamed text has the line breaks, blanks and marks of the whole one."""
    found = map(delta, of(messages_lines_stream, "content_block_delta"))
    here, whole = "".join(str(one.get("text") or "") for one in found), spoken(messages_lines.ok)
    if vllm_server.can("reasoning"):  # what stands between thoughts and text is cut in whole answers alone
        here, whole = here.strip(), whole.strip()
    fault = _turned(here, whole)

    assert not fault, f"streamed and whole: {fault}"


@check(
    "messages.stream.usage-kept", MUST, spec=STREAMING, needs=("messages", "stream"), exchanges=["messages."]
)
def test_usage_kept(vllm_recordings: Recordings) -> None:
    """A stream counts the tokens of its prompt at its end as at its beginning."""
    told = {
        one.key: (prompt_tokens(first_word(one).get("usage")), prompt_tokens(last_word(one).get("usage")))
        for one in streams(vllm_recordings)
        if last_word(one)
    }
    both = {key: counts for key, counts in told.items() if all(counts)}
    only_if(both, "no stream counts its prompt at both ends")
    wrong = [f"{key}: {first}, then {last}" for key, (first, last) in both.items() if first != last]

    assert not wrong, listed(wrong)


@check("messages.stop.each", MUST, spec=SPEC, needs=("messages",))
def test_each(
    messages_plain: Recording, messages_again: Recording, messages_stopped_among: Recording
) -> None:
    """Of several stop sequences each ends the answer, wherever it stands among them."""
    stop, whole = stop_of(messages_again), spoken(messages_plain.ok)
    only_if(whole, "the model answers with reasoning alone")
    need(stop in whole and whole == spoken(messages_again.ok), "the server does not repeat itself")
    said = spoken(messages_stopped_among.ok)

    assert stop not in said, f"{stop!r} is in {said!r:.80}"


@check("messages.call.forbidden", MUST, spec=SPEC, needs=("messages", "tools"))
def test_forbidden(messages_uncalled: Recording) -> None:
    """A call that the request forbids is not made."""
    messages_uncalled.answered()
    only_if(messages_uncalled.status != 400, f"refused: {messages_uncalled.text[:120]}")
    made = blocks(messages_uncalled.ok, "tool_use")

    assert not made, f"called: {made!r:.160}"


@check("messages.input.several", MUST, spec=SPEC, needs=("messages", "chat", "tools", "tokenize"))
def test_several(messages_several: Recording, messages_several_count: Recording) -> None:
    """Every part of a system text, a turn or a tool's result reaches the model."""
    for one in (messages_several, messages_several_count):
        one.answered()
        only_if(one.status != 400, f"{one.key} is refused: {one.text[:120]}")
    here, chat = prompt_tokens(messages_several.ok.get("usage")), messages_several_count.ok["count"]
    observe("tokens, and those as a chat", f"{here}, {chat}")

    assert here >= chat - JOINTS, f"{here} tokens, as a chat the same conversation has {chat}"


def _turned(one: str, other: str) -> str:
    """How two texts of the same words differ; raises NotRun where their words do."""
    only_if(one or other, "neither holds any text: the tokens went into reasoning")
    only_if(_bare(one) == _bare(other), "the model does not repeat its own words")
    observe("said as asked", str(LINES in other))
    begin = max(0, parting(one, other) - 20)
    return "" if one == other else f"{one[begin : begin + 40]!r} and {other[begin : begin + 40]!r}"


def _bare(text: str) -> str:
    """A text without what routes turn: white space, letters beyond ASCII, the ways to write a mark."""
    plain = html.unescape(text).replace("\\n", "").replace('\\"', '"')
    return "".join(letter for letter in plain if letter.isascii() and not letter.isspace())
