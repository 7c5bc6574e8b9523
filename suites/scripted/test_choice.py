"""Calls that the tool choice forces, allows or forbids, and scripts that a grammar accepts or refuses."""

from __future__ import annotations

import json

from pytest_vllm import MUST, Case, Recording, Server, check, listed, need, only_if, short, undecided

from .answers import Said, call_faults, said, without
from .forbidden import sayable
from .phrasing import OSLO, PARIS
from .scripts import THOUGHT, faults, opening_of, spoken
from .tools import WEATHER

SPEC = "openai:chat/create#tool_choice"
FORMAT = "openai:chat/create#response_format"
NEEDS = ("chat", "scripted")
STREAM = (*NEEDS, "stream")
#: Reasoning parsers of models whose templates close the reasoning when a request switches thinking off.
SWITCHED = ("qwen3", "glm45", "holo2", "deepseek_v3")


def accepted(*recordings: Recording) -> Said:
    """The answer to the form that the server's grammar wants. Undecided when it takes neither."""
    for one in recordings:
        if one.status == 200 and not (found := said(one)).errors and (found.calls or found.finish):
            if found.calls:
                return found
            last = found
    taken = [one.key for one in recordings if one.status == 200 and not said(one).errors]
    if not taken:
        undecided(f"no form of the forced call was taken: {[(one.key, one.status) for one in recordings]}")
    return last


@check("scripted.forced.whole", MUST, spec=SPEC, needs=(*NEEDS, "tools.required"))
def test_forced(  # noqa: PLR0917 - one for each form
    vllm_server: Server,
    scripted_force: Case,
    scripted_forced_native: Recording,
    scripted_forced_apart: Recording,
    scripted_forced_json: Recording,
    scripted_forced_listed: Recording,
) -> None:
    """A forced call comes back as it was written, and the reasoning before it."""
    del scripted_force
    found = accepted(
        scripted_forced_native, scripted_forced_apart, scripted_forced_json, scripted_forced_listed
    )
    wrong = forced_faults(vllm_server, found)

    assert not wrong, listed(wrong)


@check("scripted.forced.stream", MUST, spec=SPEC, needs=(*STREAM, "tools.required"))
def test_forced_stream(  # noqa: PLR0917 - one for each form
    vllm_server: Server,
    scripted_force: Case,
    scripted_forced_native_stream: Recording,
    scripted_forced_apart_stream: Recording,
    scripted_forced_json_stream: Recording,
    scripted_forced_listed_stream: Recording,
) -> None:
    """A forced call is streamed as it was written, and the reasoning before it."""
    del scripted_force
    found = accepted(
        scripted_forced_native_stream,
        scripted_forced_apart_stream,
        scripted_forced_json_stream,
        scripted_forced_listed_stream,
    )
    wrong = forced_faults(vllm_server, found)

    assert not wrong, listed(wrong)


def forced_faults(server: Server, found: Said) -> list[str]:
    """How a forced call differs from its script. Some versions end named calls with `stop`."""
    wrong = call_faults(found.calls, [(WEATHER, OSLO.arguments)])
    if found.content.strip():
        wrong.append(f"content {short(found.content)} beside the call")
    if server.args.get("reasoning-parser") and without(found.thoughts, opening_of(server)).strip() != THOUGHT:
        wrong.append(f"reasoning {short(found.thoughts)}, not {THOUGHT!r}")
    if found.finish not in ("stop", "tool_calls"):
        wrong.append(f"finish_reason {found.finish!r}")
    return wrong


@check("scripted.none.whole", MUST, spec=SPEC, needs=NEEDS)
def test_none(vllm_server: Server, scripted_none_whole: Recording) -> None:
    """Where calls are forbidden, text is answered whole as it was written."""
    wrong = faults(vllm_server, spoken(vllm_server, "No call."), said(scripted_none_whole))

    assert not wrong, listed(wrong)


@check("scripted.none.stream", MUST, spec=SPEC, needs=STREAM)
def test_none_stream(vllm_server: Server, scripted_none_stream: Recording) -> None:
    """Where calls are forbidden, text is streamed as it was written."""
    wrong = faults(vllm_server, spoken(vllm_server, "No call."), said(scripted_none_stream))

    assert not wrong, listed(wrong)


@check("scripted.auto.strict", MUST, spec=SPEC, needs=(*NEEDS, "tools"))
def test_strict(vllm_server: Server, scripted_auto_strict: Recording) -> None:
    """A call of a strict tool comes back as it was written."""
    wrong = faults(vllm_server, spoken(vllm_server, "", OSLO), said(scripted_auto_strict))

    assert not wrong, listed(wrong)


@check("scripted.auto.strict-stream", MUST, spec=SPEC, needs=(*STREAM, "tools"))
def test_strict_stream(vllm_server: Server, scripted_auto_strict_stream: Recording) -> None:
    """A call of a strict tool is streamed as it was written."""
    wrong = faults(vllm_server, spoken(vllm_server, "", OSLO), said(scripted_auto_strict_stream))

    assert not wrong, listed(wrong)


@check("scripted.single.whole", MUST, spec="openai:chat/create#parallel_tool_calls", needs=(*NEEDS, "tools"))
def test_single(vllm_server: Server, scripted_single_whole: Recording) -> None:
    """Where only one call is allowed, one call comes back as it was written."""
    wrong = faults(vllm_server, spoken(vllm_server, "", OSLO), said(scripted_single_whole))

    assert not wrong, listed(wrong)


@check(
    "scripted.single.stream", MUST, spec="openai:chat/create#parallel_tool_calls", needs=(*STREAM, "tools")
)
def test_single_stream(vllm_server: Server, scripted_single_stream: Recording) -> None:
    """Where only one call is allowed, one call is streamed as it was written."""
    wrong = faults(vllm_server, spoken(vllm_server, "", OSLO), said(scripted_single_stream))

    assert not wrong, listed(wrong)


@check("scripted.turn.again", MUST, spec="openai:chat/create#messages", needs=(*NEEDS, "tools"))
def test_again(vllm_server: Server, scripted_turn: Case, scripted_turn_again: Recording) -> None:
    """What stands in a conversation changes nothing about how the next answer is read."""
    del scripted_turn
    wrong = faults(vllm_server, spoken(vllm_server, "Again.", PARIS), said(scripted_turn_again))

    assert not wrong, listed(wrong)


@check("scripted.turn.second", MUST, spec="openai:chat/create#messages", needs=(*NEEDS, "tools"))
def test_second(vllm_server: Server, scripted_turn_second: Recording) -> None:
    """A server takes its own calls back with their results, and answers."""
    wrong = faults(vllm_server, spoken(vllm_server, "It is cold."), said(scripted_turn_second))

    assert not wrong, listed(wrong)


@check("scripted.hidden.whole", MUST, spec="vllm:features/reasoning_outputs", needs=(*NEEDS, "reasoning"))
def test_hidden(scripted_hidden_whole: Recording, scripted_forbidden: Recording) -> None:
    """Reasoning that is not wanted is left out of a whole answer, and its text stays."""
    sayable(scripted_hidden_whole, scripted_forbidden)
    found = said(scripted_hidden_whole)

    assert (found.thoughts, found.content.strip()) == ("", "Done."), f"{found}"


@check("scripted.hidden.stream", MUST, spec="vllm:features/reasoning_outputs", needs=(*STREAM, "reasoning"))
def test_hidden_stream(scripted_hidden_stream: Recording, scripted_forbidden: Recording) -> None:
    """Reasoning that is not wanted is left out of a stream, and its text stays."""
    sayable(scripted_hidden_stream, scripted_forbidden)
    found = said(scripted_hidden_stream)

    assert (found.thoughts, found.content.strip()) == ("", "Done."), f"{found}"


@check("scripted.quiet.whole", MUST, spec="vllm:features/reasoning_outputs", needs=(*NEEDS, "reasoning"))
def test_quiet(vllm_server: Server, scripted_quiet_whole: Recording) -> None:
    """With thinking switched off, the text of a whole answer is content."""
    only_if(switches(vllm_server), "models of this parser always think")
    found = said(scripted_quiet_whole)

    assert (found.thoughts.strip(), found.content.strip()) == ("", "Done."), f"{found}"


@check("scripted.quiet.stream", MUST, spec="vllm:features/reasoning_outputs", needs=(*STREAM, "reasoning"))
def test_quiet_stream(vllm_server: Server, scripted_quiet_stream: Recording) -> None:
    """With thinking switched off, the text of a stream is content."""
    only_if(switches(vllm_server), "models of this parser always think")
    found = said(scripted_quiet_stream)

    assert (found.thoughts.strip(), found.content.strip()) == ("", "Done."), f"{found}"


def switches(server: Server) -> bool:
    """Whether a request can switch the reasoning of the parser's models off."""
    return str(server.args.get("reasoning-parser", "")) in SWITCHED


@check("scripted.form.whole", MUST, spec=FORMAT, needs=(*NEEDS, "structured-output"))
def test_form(vllm_server: Server, scripted_form_whole: Recording, scripted_form_bare: Recording) -> None:
    """JSON under a schema comes back as written, the reasoning before it apart."""
    wrong = form_faults(vllm_server, taken(scripted_form_whole, scripted_form_bare))

    assert not wrong, listed(wrong)


@check("scripted.form.stream", MUST, spec=FORMAT, needs=(*STREAM, "structured-output"))
def test_form_stream(
    vllm_server: Server, scripted_form_stream: Recording, scripted_form_bare_stream: Recording
) -> None:
    """JSON under a schema is streamed as written, the reasoning before it apart."""
    wrong = form_faults(vllm_server, taken(scripted_form_stream, scripted_form_bare_stream))

    assert not wrong, listed(wrong)


def taken(one: Recording, other: Recording) -> Said:
    """The answer to the first of two forms, or to the other where the server's grammar wants that."""
    refused = one.status != 200 or said(one).errors
    return said(other if refused and other.status == 200 and not said(other).errors else one)


def form_faults(server: Server, found: Said) -> list[str]:
    """How an answer differs from the reasoning and the JSON that were written."""
    wrong = [f"error {one[:100]}" for one in found.errors]
    try:
        value = json.loads(found.content)
    except ValueError:
        value = None
    if value != {"sum": 12}:
        wrong.append(f"content {short(found.content)}")
    if server.args.get("reasoning-parser") and without(found.thoughts, opening_of(server)).strip() != THOUGHT:
        wrong.append(f"reasoning {short(found.thoughts)}, not {THOUGHT!r}")
    return wrong


@check("scripted.form.refused", MUST, spec=FORMAT, needs=(*NEEDS, "structured-output"))
def test_refused(scripted_form_broken: Recording) -> None:
    """A text that the schema forbids ends in an error, never in an answer."""
    need(scripted_form_broken.status is not None, f"no answer: {scripted_form_broken.error}")

    assert scripted_form_broken.status != 200, f"answered with {scripted_form_broken.text[:200]}"


@check("scripted.form.stream-refused", MUST, spec=FORMAT, needs=(*STREAM, "structured-output"))
def test_stream_refused(scripted_form_broken_stream: Recording) -> None:
    """A streamed text that the schema forbids ends in an error, never in an answer."""
    one = scripted_form_broken_stream
    need(one.status is not None, f"no answer: {one.error}")
    only_if(one.status == 200, "the request is refused before the stream begins")

    assert said(one).errors, f"no error in the stream: {one.text[-200:]}"
