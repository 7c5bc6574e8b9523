"""The texts behind the exchanges: calls that are cut, stopped, forced or replayed, odd reasoning."""

from __future__ import annotations

import json
from typing import Any

from pytest_vllm import Call, Case, Request, Server, Writer, case_file

from .scripts import ASKED, pieces_of, say, script_of, scripted, spoken, text_of, tokens_in
from .tools import NOTE, WEATHER, named, offered, offered_to_messages, offered_to_responses

ANSWERS: list[dict[str, Any]] = json.loads(case_file("scripted-answers").read_text("utf-8"))

STOP = "HALT"
#: Switches thinking off; families call the switch differently, and pass over what they do not know.
QUIET = {"enable_thinking": False, "thinking": False}
#: vLLM's versions from which on these interfaces carry a script.
RESPONSES_SINCE, MESSAGES_SINCE = "0.16.0", "0.29.0"
OSLO = Call(WEATHER, {"city": "Oslo"})
PARIS = Call(WEATHER, {"city": "Paris"})
#: At how many places a call is cut.
CUTS = 64
#: The call that is cut after each of its tokens.
CUT = Call(NOTE, {"text": "a"})
_TEXT = "\u0000"
FORM = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
    "additionalProperties": False,
}


def answer_rows() -> list[Case]:
    """Every script of `scripted_answer`, for checks over all of them."""
    return [Case(str(row["id"]), row) for row in ANSWERS]


def cut_pieces(server: Server) -> tuple[list[str], int]:
    """The call that is cut, in smallest tokens, and how many of them come before it."""
    script = spoken(server, "", CUT, thinking="Hm")
    before = pieces_of(server, text_of(server, spoken(server, "", thinking="Hm")))
    pieces = pieces_of(server, text_of(server, script))
    return pieces, tokens_in(server, before)


def cut_at(server: Server, number: int) -> tuple[list[str], int]:
    """The call that is cut, and the limit of its cut of that number, from 1 to CUTS.

    The last leaves room for the end. A call of more tokens is cut at as many places, evenly.
    """
    pieces, before = cut_pieces(server)
    whole = tokens_in(server, pieces) + 1 - before
    return pieces, before + (number if whole <= CUTS else -(-number * whole // CUTS))


def stop_texts(where: str) -> tuple[str, str, str]:
    """Content, argument and reasoning, one of them with the stop string in it."""
    content, argument, thought = (
        f"{name} up to {STOP if name == where else 'here'} now" for name in ("content", "argument", "thought")
    )
    return content, argument, thought


def stopped(server: Server, where: str) -> str:
    """A text with a stop string in one place."""
    content, argument, thought = stop_texts(where)
    return text_of(server, spoken(server, content, Call(NOTE, {"text": argument}), thinking=thought))


def odd_text(server: Server, shape: str) -> str:
    """Reasoning in a shape that models produce and nobody wants."""
    written = {
        name: text_of(server, spoken(server, content, thinking=thinking))
        for name, thinking, content in (
            ("unclosed", "one two", ""),
            ("empty", "", "Done."),
            ("blank", "\n\n", "Done."),
            ("edges", "  one  ", "  two  "),
            ("first", "one", "two"),
            ("second", "three", "four"),
        )
    }
    call = text_of(server, spoken(server, "", Call(WEATHER, {"city": "Oslo"}), thinking=None))
    inside = text_of(server, spoken(server, "Done.", thinking=f"one {call} two"))
    return {
        **written,
        "unclosed": written["unclosed"].partition("two")[0] + "two",
        "twice": written["first"] + written["second"],
        "call-inside": inside,
        "call-unclosed": inside.partition(" two")[0],
    }[shape]


def forced(server: Server, case: Case, text: str, *, streams: bool) -> Request:
    """A forced call, written in one way; the server's grammar may want the other."""
    choice = "required" if case["choice"] == "required" else named(WEATHER)
    before = text_of(server, spoken(server)).rstrip()
    offer = offered(strict=case["strict"])
    return say(server, before + text, streams=streams, tool_choice=choice, tools=offer, expect=None)


def as_json(case: Case) -> str:
    """A forced call as plain JSON: a list of calls, or the arguments of the one that is named."""
    call = {"name": WEATHER, "parameters": OSLO.arguments}
    return json.dumps([call] if case["choice"] == "required" else OSLO.arguments)


def as_list() -> str:
    """A forced call as a list of calls in the words that Mistral's first models have for them."""
    return json.dumps([{"name": WEATHER, "arguments": OSLO.arguments}])


def as_markup(server: Server, *, apart: bool = False) -> str:
    """A forced call in the model's own markup, alone or with what stands between text and calls."""
    tool = Writer.of(server.args).tool
    glue = tool.markup.glue if apart and tool else ""
    return glue + text_of(server, spoken(server, "", OSLO, thinking=None)).strip()


def calls_of(*calls: Call) -> list[dict[str, Any]]:
    """Calls as a history holds them."""
    return [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for number, call in enumerate(calls)
    ]


def formed(server: Server, text: str, *, streams: bool, bare: bool = False) -> Request:
    """An answer under a schema, after reasoning and, unless it is bare, after what opens a text."""
    form = {"type": "json_schema", "json_schema": {"name": "form", "schema": FORM}}
    opened = text_of(server, spoken(server, _TEXT)).partition(_TEXT)[0]
    before = (text_of(server, spoken(server)) if bare else opened).rstrip()
    return server.chat(
        ASKED, response_format=form, vllm_xargs=scripted(before + text), stream=streams, expect=None
    )


def responded(server: Server, case: Case, *, streams: bool) -> Request:
    """A case as a Responses request."""
    body = {
        "input": ASKED,
        "tools": offered_to_responses(),
        "vllm_xargs": scripted(text_of(server, script_of(server, case))),
        "stream": streams,
        "store": False,
    }
    return server.post("/v1/responses", body)


def messaged(server: Server, case: Case, *, streams: bool) -> Request:
    """A case as a Messages request."""
    body = {
        "messages": [{"role": "user", "content": ASKED}],
        "max_tokens": 2000 if server.at_least(MESSAGES_SINCE) else 1,
        "tools": offered_to_messages(),
        "vllm_xargs": scripted(text_of(server, script_of(server, case))),
        "stream": streams,
    }
    return server.post("/v1/messages", body)
