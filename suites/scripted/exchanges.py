"""Requests whose answers are scripted: what the model says is known to the byte.

Every script is said whole; streamed in ordinary tokens; streamed in the smallest tokens there are (*split*:
each character one, each marker one), which ends a token everywhere a token can end; in events of several
tokens; and in two events, the first token and all else, as a client that lags behind gets it.
"""

from __future__ import annotations

from typing import Any

from pytest_vllm import Call, Case, Recording, Request, Server, cases, exchange

from .answers import said
from .phrasing import (
    ANSWERS,
    CUTS,
    OSLO,
    PARIS,
    QUIET,
    STOP,
    as_json,
    as_list,
    as_markup,
    calls_of,
    cut_at,
    forced,
    formed,
    messaged,
    odd_text,
    responded,
    stopped,
)
from .scripts import ASKED, pieces_of, say, script_of, spoken, text_of
from .tools import PING, UNKNOWN, offered

scripted_answer = cases("scripted_answer", ANSWERS)
#: More tokens than scripts have, but for the long ones: those come in a few events, for a stream that is
#: silent all along looks stalled. The first token always comes in an event of its own.
AT_ONCE = 500
#: One call, cut after each of its tokens; a longer one at as many places.
scripted_cut = cases("scripted_cut", [{"id": str(number), "tokens": number} for number in range(1, CUTS + 1)])
scripted_stop = cases(
    "scripted_stop",
    [{"id": where, "where": where} for where in ("nowhere", "argument", "content", "thought")],
)
scripted_shape = cases(
    "scripted_shape",
    [
        {"id": name}
        for name in ("unclosed", "empty", "blank", "twice", "call-inside", "call-unclosed", "edges")
    ],
)


@exchange("scripted.answer.whole")
def scripted_answer_whole(server: Server, scripted_answer: Case) -> Request:
    """A script, answered whole."""
    return say(server, text_of(server, script_of(server, scripted_answer)))


@exchange("scripted.answer.stream")
def scripted_answer_stream(server: Server, scripted_answer: Case) -> Request:
    """The same, streamed."""
    return say(server, text_of(server, script_of(server, scripted_answer)), streams=True)


@exchange("scripted.answer.split")
def scripted_answer_split(server: Server, scripted_answer: Case) -> Request:
    """The same, streamed in the smallest tokens; a long one in ordinary ones."""
    text = text_of(server, script_of(server, scripted_answer))
    return say(server, text if scripted_answer.get("long") else pieces_of(server, text), streams=True)


@exchange("scripted.answer.chunks")
def scripted_answer_chunks(server: Server, scripted_answer: Case) -> Request:
    """The same in ordinary tokens, several to an event; older versions send each by itself."""
    text = text_of(server, script_of(server, scripted_answer))
    return say(server, text, streams=True, stream_interval=5)


@exchange("scripted.answer.once")
def scripted_answer_once(server: Server, scripted_answer: Case) -> Request:
    """The same; all that follows the first token in the event that ends the stream."""
    text = text_of(server, script_of(server, scripted_answer))
    return say(server, text, streams=True, stream_interval=AT_ONCE)


@exchange("scripted.thoughts.late", alone=True)
def scripted_thoughts_late(server: Server) -> Request:
    """Reasoning after an empty line, several tokens to an event, so that its marker never comes alone.

    Alone: a busy server joins events as it likes.
    """
    return say(server, "\n" + text_of(server, spoken(server, "Done.")), streams=True, stream_interval=3)


@exchange("scripted.cut.whole")
def scripted_cut_whole(server: Server, scripted_cut: Case) -> Request:
    """A call that the token limit cuts."""
    pieces, limit = cut_at(server, scripted_cut["tokens"])
    return say(server, pieces, max_tokens=limit)


@exchange("scripted.cut.stream")
def scripted_cut_stream(server: Server, scripted_cut: Case) -> Request:
    """The same, streamed."""
    pieces, limit = cut_at(server, scripted_cut["tokens"])
    return say(server, pieces, streams=True, max_tokens=limit)


@exchange("scripted.stop.whole")
def scripted_stop_whole(server: Server, scripted_stop: Case) -> Request:
    """A stop string somewhere in the script."""
    return say(server, stopped(server, scripted_stop["where"]), stop=[STOP])


@exchange("scripted.stop.stream", alone=True)
def scripted_stop_stream(server: Server, scripted_stop: Case) -> Request:
    """The same, streamed."""
    return say(server, stopped(server, scripted_stop["where"]), streams=True, stop=[STOP])


@exchange("scripted.shape.whole")
def scripted_shape_whole(server: Server, scripted_shape: Case) -> Request:
    """Reasoning that is not closed, empty, given twice, or holds a call."""
    return say(server, odd_text(server, scripted_shape.id))


@exchange("scripted.shape.stream")
def scripted_shape_stream(server: Server, scripted_shape: Case) -> Request:
    """The same, streamed."""
    return say(server, odd_text(server, scripted_shape.id), streams=True)


@exchange("scripted.unknown.whole")
def scripted_unknown_whole(server: Server) -> Request:
    """A call of a tool that nobody offered."""
    return say(server, text_of(server, spoken(server, "", Call(UNKNOWN, {"city": "Oslo"}))))


@exchange("scripted.unknown.stream")
def scripted_unknown_stream(server: Server) -> Request:
    """The same, streamed."""
    return say(server, text_of(server, spoken(server, "", Call(UNKNOWN, {"city": "Oslo"}))), streams=True)


#: A call that the tool choice forces, in each way that a version may want it written.
scripted_force = cases(
    "scripted_force",
    [
        {"id": f"{choice}-{'strict' if strict else 'lax'}", "choice": choice, "strict": strict}
        for choice in ("required", "named")
        for strict in (False, True)
    ],
)


@exchange("scripted.forced.json")
def scripted_forced_json(server: Server, scripted_force: Case) -> Request:
    """A forced call as plain JSON."""
    return forced(server, scripted_force, as_json(scripted_force), streams=False)


@exchange("scripted.forced.json-stream")
def scripted_forced_json_stream(server: Server, scripted_force: Case) -> Request:
    """The same, streamed."""
    return forced(server, scripted_force, as_json(scripted_force), streams=True)


@exchange("scripted.forced.native")
def scripted_forced_native(server: Server, scripted_force: Case) -> Request:
    """A forced call in the model's own markup."""
    return forced(server, scripted_force, as_markup(server), streams=False)


@exchange("scripted.forced.native-stream")
def scripted_forced_native_stream(server: Server, scripted_force: Case) -> Request:
    """The same, streamed."""
    return forced(server, scripted_force, as_markup(server), streams=True)


@exchange("scripted.forced.apart")
def scripted_forced_apart(server: Server, scripted_force: Case) -> Request:
    """The same as a model writes it after text: with what stands between the two."""
    return forced(server, scripted_force, as_markup(server, apart=True), streams=False)


@exchange("scripted.forced.apart-stream")
def scripted_forced_apart_stream(server: Server, scripted_force: Case) -> Request:
    """The same, streamed."""
    return forced(server, scripted_force, as_markup(server, apart=True), streams=True)


@exchange("scripted.forced.listed")
def scripted_forced_listed(server: Server, scripted_force: Case) -> Request:
    """The same as a list of calls with other keys."""
    return forced(server, scripted_force, as_list(), streams=False)


@exchange("scripted.forced.listed-stream")
def scripted_forced_listed_stream(server: Server, scripted_force: Case) -> Request:
    """The same, streamed."""
    return forced(server, scripted_force, as_list(), streams=True)


@exchange("scripted.none.whole")
def scripted_none_whole(server: Server) -> Request:
    """Text, where tools are offered and forbidden."""
    return say(server, text_of(server, spoken(server, "No call.")), tool_choice="none")


@exchange("scripted.none.stream")
def scripted_none_stream(server: Server) -> Request:
    """The same, streamed."""
    return say(server, text_of(server, spoken(server, "No call.")), streams=True, tool_choice="none")


@exchange("scripted.auto.strict")
def scripted_auto_strict(server: Server) -> Request:
    """A call of a strict tool, offered."""
    return say(server, text_of(server, spoken(server, "", OSLO)), tools=offered(strict=True), expect=None)


@exchange("scripted.auto.strict-stream")
def scripted_auto_strict_stream(server: Server) -> Request:
    """The same, streamed."""
    text = text_of(server, spoken(server, "", OSLO))
    return say(server, text, streams=True, tools=offered(strict=True), expect=None)


@exchange("scripted.single.whole")
def scripted_single_whole(server: Server) -> Request:
    """One call, where no more than one is allowed."""
    return say(server, text_of(server, spoken(server, "", OSLO)), parallel_tool_calls=False, expect=None)


@exchange("scripted.single.stream")
def scripted_single_stream(server: Server) -> Request:
    """The same, streamed."""
    text = text_of(server, spoken(server, "", OSLO))
    return say(server, text, streams=True, parallel_tool_calls=False, expect=None)


scripted_turn = cases("scripted_turn", [{"id": one} for one in ("one-call", "two-calls", "text", "thought")])


@exchange("scripted.turn.again")
def scripted_turn_again(server: Server, scripted_turn: Case) -> Request:
    """A conversation with this in it goes on, and the answer is a call once more."""
    past: dict[str, dict[str, Any]] = {
        "one-call": {"content": None, "tool_calls": calls_of(OSLO)},
        "two-calls": {"content": "Both.", "tool_calls": calls_of(OSLO, Call(PING, {}))},
        "text": {"content": "Hello."},
        "thought": {"content": "Hello.", "reasoning": "A thought.", "reasoning_content": "A thought."},
    }
    message = past[scripted_turn.id]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": "4 degrees"}
        for call in message.get("tool_calls", ())
    ]
    first = {"role": "user", "content": ASKED}
    messages = [first, {"role": "assistant", **message}, *results, *([] if results else [first])]
    return say(server, text_of(server, spoken(server, "Again.", PARIS)), messages=messages)


@exchange("scripted.turn.first")
def scripted_turn_first(server: Server) -> Request:
    """Two calls, to be answered with their results."""
    return say(server, text_of(server, spoken(server, "", OSLO, PARIS)))


@exchange("scripted.turn.second")
def scripted_turn_second(server: Server, scripted_turn_first: Recording) -> Request:
    """The server's own message and a result for each call, sent back."""
    message = scripted_turn_first.ok["choices"][0]["message"]
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": "4 degrees"}
        for call in said(scripted_turn_first).calls
    ]
    messages = [{"role": "user", "content": ASKED}, message, *results]
    return say(server, text_of(server, spoken(server, "It is cold.")), messages=messages)


@exchange("scripted.hidden.whole")
def scripted_hidden_whole(server: Server) -> Request:
    """Reasoning that the client does not want to see."""
    return say(server, text_of(server, spoken(server, "Done.")), include_reasoning=False)


@exchange("scripted.hidden.stream")
def scripted_hidden_stream(server: Server) -> Request:
    """The same, streamed."""
    return say(server, text_of(server, spoken(server, "Done.")), streams=True, include_reasoning=False)


@exchange("scripted.quiet.whole")
def scripted_quiet_whole(server: Server) -> Request:
    """Text without reasoning, with thinking switched off in the prompt."""
    return say(server, text_of(server, spoken(server, "Done.", thinking=None)), chat_template_kwargs=QUIET)


@exchange("scripted.quiet.stream")
def scripted_quiet_stream(server: Server) -> Request:
    """The same, streamed."""
    text = text_of(server, spoken(server, "Done.", thinking=None))
    return say(server, text, streams=True, chat_template_kwargs=QUIET)


@exchange("scripted.form.whole")
def scripted_form_whole(server: Server) -> Request:
    """Reasoning, then JSON as the schema says."""
    return formed(server, '{"sum": 12}', streams=False)


@exchange("scripted.form.stream")
def scripted_form_stream(server: Server) -> Request:
    """The same, streamed."""
    return formed(server, '{"sum": 12}', streams=True)


@exchange("scripted.form.bare")
def scripted_form_bare(server: Server) -> Request:
    """The same without what opens a text: a grammar may begin right after the reasoning."""
    return formed(server, '{"sum": 12}', streams=False, bare=True)


@exchange("scripted.form.bare-stream")
def scripted_form_bare_stream(server: Server) -> Request:
    """The same, streamed."""
    return formed(server, '{"sum": 12}', streams=True, bare=True)


@exchange("scripted.form.broken")
def scripted_form_broken(server: Server) -> Request:
    """A script that the schema forbids."""
    return formed(server, "Twelve.", streams=False)


@exchange("scripted.form.broken-stream")
def scripted_form_broken_stream(server: Server) -> Request:
    """The same, streamed."""
    return formed(server, "Twelve.", streams=True)


@exchange("scripted.choices")
def scripted_choices(server: Server) -> Request:
    """Three choices at once, all with the same script."""
    return say(server, text_of(server, spoken(server, "Done.", OSLO)), n=3, temperature=1, seed=7)


#: Scripts that the other interfaces render.
scripted_rendering = cases(
    "scripted_rendering",
    [row for row in ANSWERS if row.get("rendered")],
)


@exchange("scripted.response.whole")
def scripted_response_whole(server: Server, scripted_rendering: Case) -> Request:
    """A script over Responses."""
    return responded(server, scripted_rendering, streams=False)


@exchange("scripted.response.stream")
def scripted_response_stream(server: Server, scripted_rendering: Case) -> Request:
    """The same, streamed."""
    return responded(server, scripted_rendering, streams=True)


@exchange("scripted.message.whole")
def scripted_message_whole(server: Server, scripted_rendering: Case) -> Request:
    """A script over Anthropic's Messages."""
    return messaged(server, scripted_rendering, streams=False)


@exchange("scripted.message.stream")
def scripted_message_stream(server: Server, scripted_rendering: Case) -> Request:
    """The same, streamed."""
    return messaged(server, scripted_rendering, streams=True)


@exchange("scripted.forbidden", alone=True)
def scripted_forbidden(server: Server) -> Request:
    """Which of the scripts a grammar forbade, and where. Alone: after all that may be forbidden."""
    return server.completion("Which?", max_tokens=4000, expect=None, vllm_xargs={"forbidden": 1})
