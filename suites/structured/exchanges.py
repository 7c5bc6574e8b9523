"""Requests of the structured suite.

A grammar leaves the model no way out: what comes back fits its constraint for any weights. Answers are kept
short by the constraint itself, and a model that may think is asked not to where thinking is not the matter.
"""

from __future__ import annotations

from typing import Any

from pytest_vllm import Case, Recording, Request, Server, case_file, cases, exchange

from .awkward import AWKWARD

schema_case = cases("schema_case", case_file("structured-schemas"))
keyword_case = cases("keyword_case", case_file("structured-keywords"))
wish_case = cases("wish_case", case_file("structured-wishes"))
awkward_case = cases("awkward_case", AWKWARD)
refusal_case = cases("refusal_case", case_file("structured-refusals"))
lane_case = cases("lane_case", [{"id": f"lane-{n}", "regex": f"{n}{n}-[a-c]{{4}}-{n}"} for n in range(8)])
#: Answers at once in one request, and what each has to be.
CROWD, CROWD_RULE = 8, "[a-d]{1,12}!"
legacy_case = cases(
    "legacy_case",
    [
        {"id": "json", "value": {"enum": ["zz-json"]}},
        {"id": "regex", "value": "zz-[0-9]{3}"},
        {"id": "choice", "value": ["zz-choice"]},
        {"id": "grammar", "value": 'root ::= "zz-grammar"'},
    ],
)

PING = {
    "type": "function",
    "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}},
}
#: Forms that differ in one value: what keeps grammars by less than all of a schema mixes them up.
alike_case = cases(
    "alike_case",
    [
        {"id": "heron", "birds": ["heron"], "count": "integer"},
        {"id": "crane", "birds": ["crane"], "count": "integer"},
        {
            "id": "word",
            "birds": ["heron"],
            "count": "string",
            "more": {"tools": [PING], "tool_choice": "none"},
        },
    ],
)
#: So often that a fault of one answer in 30 shows with a probability of 74 %: 1 - (29 / 30) ** 40.
OFTEN = 40
often_case = cases("often_case", [{"id": f"{number:02}"} for number in range(OFTEN)])
BIRD = "Name a bird and how many there are, as JSON on one line."
BIRDS: dict[str, Any] = {
    "type": "object",
    "properties": {"bird": {"enum": ["heron", "crane"]}, "count": {"enum": [1, 2, 3]}},
    "required": ["bird", "count"],
    "additionalProperties": False,
}
#: Small, and with nothing in it that could go on for ever.
LIGHT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "state": {"enum": ["on", "off"]},
        "color": {"enum": ["red", "green", "blue"]},
        "code": {"type": "string", "pattern": "^[A-C]{2}-[0-9]{2}$"},
    },
    "required": ["state", "color", "code"],
    "additionalProperties": False,
}
ASKED = (
    "Describe the light at the door as JSON on one line, such as "
    '{"state":"on","color":"green","code":"AB-12"}.'
)
#: Chat templates that know none of the two names ignore them.
THINK: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}}
PROSE = "Write one short sentence about the sea inside a Markdown code fence, in plain words, without braces."


@exchange("structured.schema")
def structured_schema(server: Server, schema_case: Case) -> Request:
    """A form with a strict schema, an example of it in the question."""
    question = f"Tell me about {schema_case['about']} as JSON on one line, such as {schema_case['text']}."
    return _form(server, question, schema_case["schema"])


@exchange("structured.keyword")
def structured_keyword(server: Server, keyword_case: Case) -> Request:
    """A schema with a keyword that a server may enforce or refuse; versions that it may end are spared."""
    if not server.at_least("0.30.0"):
        return server.chat("Hi", max_tokens=1, expect=None)
    question = f"Tell me about {keyword_case['about']} as JSON on one line."
    return _form(server, question, keyword_case["schema"], expect=None)


@exchange("structured.often", spread=True)
def structured_often(server: Server, often_case: Case) -> Request:
    """A small form, filled in many times at once, streamed."""
    del often_case
    return _form(server, BIRD, BIRDS, stream=True)


@exchange("structured.alike")
def structured_alike(server: Server, alike_case: Case) -> Request:
    """A form that differs from the other ones in one value; one of them beside tools."""
    count = {"type": alike_case["count"], "enum": [3 if alike_case["count"] == "integer" else "three"]}
    properties = {"bird": {"type": "string", "enum": alike_case["birds"]}, "count": count}
    form = {"type": "object", "properties": properties, "required": ["bird", "count"]}
    more = alike_case.get("more", {}) if server.can("tools") else {}
    return _form(server, BIRD, {**form, "additionalProperties": False}, **more)


@exchange("structured.light")
def structured_light(server: Server) -> Request:
    """The form that several requests fill in."""
    return _form(server, ASKED, LIGHT)


@exchange("structured.light-stream")
def structured_light_stream(server: Server) -> Request:
    """The same form, streamed."""
    return _form(server, ASKED, LIGHT, stream=True)


@exchange("structured.light-turns")
def structured_light_turns(server: Server) -> Request:
    """The same form at the end of a conversation."""
    said = ("My lamp is new.", "Good to know.", "What does it show?", "A color.")
    turns = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)]
    return _form(server, [*turns, {"role": "user", "content": ASKED}], LIGHT)


@exchange("structured.light-completion")
def structured_light_completion(server: Server) -> Request:
    """The same form over completions."""
    return server.completion(f"{ASKED}\n", max_tokens=240, **format_of(LIGHT))


@exchange("structured.light-response")
def structured_light_response(server: Server) -> Request:
    """The same form over Responses."""
    form = {"type": "json_schema", "name": "light", "schema": LIGHT, "strict": True}
    body: dict[str, Any] = {"input": ASKED, "text": {"format": form}, "temperature": 0}
    return server.post("/v1/responses", {**body, **_calm(server), "max_output_tokens": _room(server)})


@exchange("structured.light-logprobs")
def structured_light_logprobs(server: Server) -> Request:
    """The same form with log probabilities."""
    return _form(server, ASKED, LIGHT, logprobs=True, top_logprobs=2)


@exchange("structured.light-three")
def structured_light_three(server: Server) -> Request:
    """Three fillings of the form at once."""
    return _form(server, ASKED, LIGHT, n=3, temperature=1.0, seed=5)


@exchange("structured.light-cut")
def structured_light_cut(server: Server) -> Request:
    """The form with too few tokens."""
    return server.chat(ASKED, max_tokens=4, **format_of(LIGHT), **_calm(server))


@exchange("structured.prose")
def structured_prose(server: Server) -> Request:
    """A question that wants anything but JSON, with the form."""
    return _form(server, PROSE, LIGHT)


@exchange("structured.object")
def structured_object(server: Server) -> Request:
    """Any JSON object."""
    question = "Give me a JSON object with the single key ok set to true, on one line, and nothing else."
    params: dict[str, Any] = {"response_format": {"type": "json_object"}, **_calm(server)}
    return server.chat(question, max_tokens=_room(server), **params)


@exchange("structured.thinking")
def structured_thinking(server: Server) -> Request:
    """The form for a model that may think first."""
    return server.chat(ASKED, max_tokens=1000, **format_of(LIGHT), **THINK)


@exchange("structured.thinking-free")
def structured_thinking_free(server: Server) -> Request:
    """The same question without the form."""
    return server.chat(ASKED, max_tokens=48, **THINK)


@exchange("structured.wish")
def structured_wish(server: Server, wish_case: Case) -> Request:
    """A constraint in vLLM's own words, over chat."""
    wanted = wish_of(server, wish_case["kind"], wish_case["value"])
    return server.chat("Choose one.", max_tokens=_room(server), **wanted, **_calm(server))


@exchange("structured.wish-completion")
def structured_wish_completion(server: Server, wish_case: Case) -> Request:
    """The same constraint over completions."""
    return server.completion(
        "I choose: ", max_tokens=64, **wish_of(server, wish_case["kind"], wish_case["value"])
    )


@exchange("structured.lane")
def structured_lane(server: Server, lane_case: Case) -> Request:
    """One of several requests at once, each with a constraint of its own."""
    wanted = wish_of(server, "regex", lane_case["regex"])
    return server.chat("Choose one.", max_tokens=_room(server), **wanted, **_calm(server))


@exchange("structured.crowd")
def structured_crowd(server: Server) -> Request:
    """Eight completions at once under one constraint, which end at different lengths."""
    wanted = wish_of(server, "regex", CROWD_RULE)
    drawn: dict[str, Any] = {"temperature": 1.0, "max_tokens": 32}
    return server.completion([f"<think>\n</think>\nBird {at}: " for at in range(CROWD)], **drawn, **wanted)


@exchange("structured.crowd-objects")
def structured_crowd_objects(server: Server) -> Request:
    """Eight completions at once, each any JSON object."""
    asked = "A JSON object with the single key ok set to true, on one line, and nothing else:"
    prompts = [f"<think>\n</think>\n{at}. {asked} " for at in range(CROWD)]
    return server.completion(prompts, max_tokens=48, response_format={"type": "json_object"})


@exchange("structured.crowd-stream")
def structured_crowd_stream(server: Server) -> Request:
    """Four streamed choices under that constraint."""
    wanted = wish_of(server, "regex", CROWD_RULE)
    drawn: dict[str, Any] = {"temperature": 1.0, "max_tokens": 32, "n": 4, "stream": True}
    return server.completion("<think>\n</think>\nBird: ", **drawn, **wanted)


@exchange("structured.legacy")
def structured_legacy(server: Server, legacy_case: Case) -> Request:
    """A constraint in the words of vLLM before 0.12."""
    wanted = {f"guided_{legacy_case.id}": legacy_case["value"]}
    return server.chat("Choose one.", expect=None, max_tokens=_room(server, 24), **wanted, **_calm(server))


@exchange("structured.awkward")
def structured_awkward(server: Server, awkward_case: Case) -> Request:
    """A constraint that is hard to compile; versions that it may end are spared."""
    if not server.at_least(awkward_case["from"]):
        return server.chat("Hi", max_tokens=1, expect=None)
    params: dict[str, Any] = {"max_tokens": 8, **awkward_case["params"], **_calm(server)}
    return server.chat("Choose one.", expect=None, **params)


@exchange("structured.after-awkward")
def structured_after_awkward(server: Server, structured_awkward: Recording) -> Request:
    """One token, asked for once an awkward constraint was answered."""
    del structured_awkward
    return server.completion("Still there?", max_tokens=1)


@exchange("structured.refused")
def structured_refused(server: Server, refusal_case: Case) -> Request:
    """A constraint that contradicts itself; versions that it may end get a plain bad request."""
    if not server.at_least(refusal_case.get("from", "0.1.0")):
        return server.chat("Hi", max_tokens=1, temperature=-1, expect=None)
    return server.chat("Hi", max_tokens=1, expect=None, **refusal_case["set"])


def format_of(schema: Any) -> dict[str, Any]:
    """A strict `response_format`."""
    form = {"name": "form", "schema": schema, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def wish_of(server: Server, kind: str, value: Any) -> dict[str, Any]:
    """A constraint in the words of the server's version."""
    if server.at_least("0.11.0"):
        return {"structured_outputs": {kind: value}}
    return {f"guided_{kind}": value}


def _form(server: Server, question: Any, schema: Any, *, expect: int | None = 200, **params: Any) -> Request:
    wanted = {**format_of(schema), **_calm(server), **params}
    return server.chat(question, expect=expect, max_tokens=_room(server), **wanted)


def _room(server: Server, plain: int = 240) -> int:
    """Tokens for an answer; some models think, however much they are asked not to."""
    return 1000 if server.can("reasoning") else plain


def _calm(server: Server) -> dict[str, Any]:
    return {"chat_template_kwargs": {"enable_thinking": False}} if server.can("reasoning") else {}
