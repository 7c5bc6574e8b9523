"""Requests of the edges suite: values that a careless program takes for none, and words that get trimmed."""

from __future__ import annotations

import json
from typing import Any

from pytest_vllm import Case, Recording, Request, Server, cases, exchange, only_if

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
RESPONSES, MESSAGES = "/v1/responses", "/v1/messages"
#: Blanks and line breaks around, double and rare ones within; letters that can be composed, or replaced by
#: others; what other notations escape; figures beyond what a double holds.
WORDS = (
    "\n \t  Cafe\u0301, A\u030angstro\u0308m, \u212b, \u1112\u1161\u11ab, \ufb01ve\u2460:  two  blanks, "
    "a\u00a0b\u3000c\u200bd\u2028e\r\nf\rg \U0001f469\u200d\U0001f469\u200d\U0001f467\ufe0f; "
    "&amp; <b>&lt;</b> %41%20+ \\n \\u0041 \\\\ \"'` ${x} {{y}}, 12345678901234567890.10  \n\n"
)
QUESTION = "What is the capital of France?"
#: More tokens than any template puts in the place of an answer that was not begun.
BEGUN = "The capital city of the country that lies to the south of Belgium and to the north of Spain is"
FAVOURITE = "My favourite words are"
#: What a call may hold: each is lost, or spelt otherwise, where values are taken for texts or for nothing.
VALUES: dict[str, Any] = {
    "number": 1234567890123456789012345678901234567890,
    "share": 0.1,
    "zero": 0,
    "off": False,
    "nothing": None,
    "empty": "",
    "none": [],
    "deep": {"letter": "é", "list": [0, "", {"a": None}]},
}
TOOL, CALL_ID = "note_bird", "abcdE1234"
#: No sampling default of the model's own may narrow what these open, or move its likeliest token.
PLAIN: dict[str, Any] = {"repetition_penalty": 1.0, "presence_penalty": 0, "frequency_penalty": 0}
HOT: dict[str, Any] = {"temperature": 2.0, "top_p": 1.0, "top_k": -1, **PLAIN}
#: Texts that are drawn at once with the seed zero.
CROWD = 4

ROUTES = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES}
edge_route = cases("edge_route", [{"id": name, "path": path} for name, path in ROUTES.items()])
stopping_route = cases("stopping_route", [{"id": "chat"}, {"id": "completions"}])
zero_bias = cases("zero_bias", [{"id": "toward", "bias": 100}, {"id": "against", "bias": -100}])
chat_bias = cases("chat_bias", [{"id": "first", "at": 0}, {"id": "second", "at": 1}])
edge_seed = cases("edge_seed", [{"id": "first"}, {"id": "again"}])
PENALTIES: list[dict[str, Any]] = [
    {"id": "frequency", "set": {"frequency_penalty": -2.0}},
    {"id": "presence", "set": {"presence_penalty": -2.0}},
    {"id": "repetition", "set": {"repetition_penalty": 0.5}},
]
rewarded = cases("rewarded", PENALTIES)
chat_penalty = cases(
    "chat_penalty",
    [
        {"id": "none", "set": {}},
        {"id": "above", "set": {"frequency_penalty": 2.0}},
        {"id": "below", "set": {"frequency_penalty": -2.0}},
    ],
)


def _able(server: Server, route: str) -> None:
    only_if(server.can(route), f"the server has no {route}")


def _talk(server: Server, route: str, turns: list[dict[str, Any]], **more: Any) -> Request:
    """A conversation over a route, for an answer of one token, or of as few as the route allows."""
    _able(server, route)
    if route == "responses":
        few: dict[str, Any] = {"max_output_tokens": 1, "temperature": 0, "store": False}
        return server.post(RESPONSES, {"input": turns, **few, **more}, expect=None)
    few = {"messages": turns, "max_tokens": 1, "temperature": 0}
    return server.post(ROUTES[route], {**few, **more}, expect=None)


@exchange("edges.text")
def edges_text(server: Server) -> Request:
    """The words to be gone on with."""
    return server.completion(WORDS, max_tokens=1)


@exchange("edges.text-count")
def edges_text_count(server: Server) -> Request:
    """Their tokens."""
    return server.post("/tokenize", {"prompt": WORDS}, expect=None)


@exchange("edges.words")
def edges_words(server: Server, edge_route: Case) -> Request:
    """The words as a message."""
    return _talk(server, edge_route.id, [{"role": "user", "content": WORDS}])


@exchange("edges.words-count")
def edges_words_count(server: Server) -> Request:
    """The tokens of that message."""
    return server.post("/tokenize", {"messages": [{"role": "user", "content": WORDS}]}, expect=None)


@exchange("edges.asked")
def edges_asked(server: Server, edge_route: Case) -> Request:
    """A question."""
    return _talk(server, edge_route.id, [{"role": "user", "content": QUESTION}])


@exchange("edges.begun")
def edges_begun(server: Server, edge_route: Case) -> Request:
    """The question, and how its answer begins; some templates refuse it."""
    turns = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": BEGUN}]
    return _talk(server, edge_route.id, turns)


@exchange("edges.called")
def edges_called(server: Server, edge_route: Case) -> Request:
    """A conversation with a call whose arguments are values of all kinds."""
    only_if(server.can("tools"), "the server has no tools")
    return _talk(server, edge_route.id, *_called(edge_route.id))


@exchange("edges.called-count")
def edges_called_count(server: Server) -> Request:
    """The tokens of that conversation as a chat."""
    return server.post("/tokenize", {"messages": _called("chat")[0]}, expect=None)


def _called(route: str) -> tuple[list[dict[str, Any]]]:
    """A question, a call and its result, as a route writes them."""
    asked, spelt = {"role": "user", "content": QUESTION}, json.dumps(VALUES)
    call: dict[str, Any]
    if route == "responses":
        call = {"type": "function_call", "call_id": CALL_ID, "name": TOOL, "arguments": spelt}
        return ([asked, call, {"type": "function_call_output", "call_id": CALL_ID, "output": "noted"}],)
    if route == "messages":
        used: dict[str, Any] = {"type": "tool_use", "id": CALL_ID, "name": TOOL, "input": VALUES}
        result = {"type": "tool_result", "tool_use_id": CALL_ID, "content": "noted"}
        said = [{"role": "assistant", "content": [used]}, {"role": "user", "content": [result]}]
        return ([asked, *said],)
    call = {"id": CALL_ID, "type": "function", "function": {"name": TOOL, "arguments": spelt}}
    made = {"role": "assistant", "content": "", "tool_calls": [call]}
    return ([asked, made, {"role": "tool", "tool_call_id": CALL_ID, "content": "noted"}],)


@exchange("edges.zeros")
def edges_zeros(server: Server) -> Request:
    """A prompt of the token zero, and an answer that can be nothing else."""
    ids = server.taken(COMPLETIONS, return_token_ids=True)
    only: dict[str, Any] = {"allowed_token_ids": [0], "ignore_eos": True, "max_tokens": 3, **ids}
    return server.completion([0, 0, 0, 0], expect=None, **only)


@exchange("edges.zero-biased")
def edges_zero_biased(server: Server, zero_bias: Case, tokenize_word: Recording) -> Request:
    """Two tokens are allowed, and a bias is toward the token zero or against it; some servers refuse it."""
    ids = server.taken(COMPLETIONS, return_token_ids=True)
    pair = {"allowed_token_ids": [tokenize_word.ok["tokens"][-1], 0], "logit_bias": {"0": zero_bias["bias"]}}
    return server.completion("Say", expect=None, ignore_eos=True, max_tokens=3, **pair, **ids)


@exchange("edges.zero-stops")
def edges_zero_stops(server: Server, stopping_route: Case) -> Request:
    """An answer of the token zero, which is to end it."""
    chats = stopping_route.id == "chat"
    only_if(server.templated or not chats, "what a chat of this model may begin with is its format's")
    only: dict[str, Any] = {"allowed_token_ids": [0], "stop_token_ids": [0]}
    ask: Any = server.chat if chats else server.completion
    return ask(QUESTION, expect=None, ignore_eos=True, max_tokens=3, **only)  # type: ignore[no-any-return]


@exchange("edges.seeded", alone=True)
def edges_seeded(server: Server, edge_seed: Case) -> Request:  # noqa: ARG001 - asked for once for each case
    """Tokens that are drawn with the seed zero."""
    listed = {"logprobs": True} if server.can("logprobs") else {}
    return server.chat("Tell me a story.", max_tokens=4, ignore_eos=True, seed=0, **listed, **HOT)


@exchange("edges.seeded-crowd")
def edges_seeded_crowd(server: Server) -> Request:
    """Four texts at once that are drawn with it."""
    return server.completion([FAVOURITE] * CROWD, max_tokens=4, ignore_eos=True, seed=0, **HOT)


@exchange("edges.rewarded")
def edges_rewarded(
    server: Server, rewarded: Case, tokenize_word: Recording, tokenize_other_word: Recording
) -> Request:
    """What repeats one of two tokens, with a penalty below nothing: a reward."""
    pair = [tokenize_word.ok["tokens"][-1], tokenize_other_word.ok["tokens"][-1]]
    only = {"allowed_token_ids": pair, "max_tokens": 16, "logprobs": 0, **PLAIN, **rewarded["set"]}
    return server.completion(" hello hello hello hello hello hello", expect=None, **only)


@exchange("edges.penalised-chat")
def edges_penalised_chat(
    server: Server, chat_penalty: Case, tokenize_word: Recording, tokenize_other_word: Recording
) -> Request:
    """A chat answer of two tokens, with a penalty on repetition, with none, with a reward."""
    only_if(server.templated, "what a chat of this model may hold is its format's")
    pair = [tokenize_word.ok["tokens"][-1], tokenize_other_word.ok["tokens"][-1]]
    only = {"allowed_token_ids": pair, "max_tokens": 24, "logprobs": True, **PLAIN, **chat_penalty["set"]}
    return server.chat("Say hello hello hello hello.", expect=None, **only)


@exchange("edges.biased-chat")
def edges_biased_chat(
    server: Server, chat_bias: Case, tokenize_word: Recording, tokenize_other_word: Recording
) -> Request:
    """A chat answer of two tokens, with a bias against one of them; drafting servers may refuse it."""
    only_if(server.templated, "what a chat of this model may hold is its format's")
    pair = [tokenize_word.ok["tokens"][-1], tokenize_other_word.ok["tokens"][-1]]
    against: dict[str, Any] = {"allowed_token_ids": pair, "logit_bias": {str(pair[chat_bias["at"]]): -100}}
    ids = server.taken(CHAT, return_token_ids=True)
    return server.chat("Say hello.", expect=None, ignore_eos=True, max_tokens=3, **against, **ids)


@exchange("edges.barred-chat")
def edges_barred_chat(
    server: Server,
    tokenize_word: Recording,
    tokenize_other_word: Recording,
    completions_pair: Recording,
    tokenize_repeated: Recording,
) -> Request:
    """A chat answer of two tokens, one of which is a bad word; drafting servers may refuse it."""
    only_if(server.templated, "what a chat of this model may hold is its format's")
    pair = [tokenize_word.ok["tokens"][-1], tokenize_other_word.ok["tokens"][-1]]
    word, spelt = completions_pair.ok["choices"][0]["logprobs"]["tokens"][0], tokenize_repeated.ok["tokens"]
    only_if(len(spelt) == 1 and spelt[0] in pair, f"{word!r} by itself is other tokens")
    only: dict[str, Any] = {"allowed_token_ids": pair, "bad_words": [word], **PLAIN}
    ids = server.taken(CHAT, return_token_ids=True)
    return server.chat("Say hello.", expect=None, ignore_eos=True, max_tokens=3, **only, **ids)


#: A conversation in which each turn has two parts.
PARTS = [
    {"role": role, "content": [{"type": "text", "text": f"{word} {at}."} for at in range(2)]}
    for role, word in (
        ("system", "Rule"),
        ("user", "Question"),
        ("assistant", "Answer"),
        ("user", "Question"),
    )
]


@exchange("edges.parts")
def edges_parts(server: Server) -> Request:
    """A conversation of parts; some templates refuse it."""
    return _talk(server, "chat", PARTS)


@exchange("edges.parts-count")
def edges_parts_count(server: Server) -> Request:
    """Its tokens."""
    return server.post("/tokenize", {"messages": PARTS}, expect=None)


#: Longer than what fits into a few events: a call's argument, and the tokens that it may take.
PAGE = " ".join(f"{at:02}: heron {at * 37 % 97}, stork {at * 53 % 89};" for at in range(12))
WRITER = "write_page"
ROOM, ROOM_TO_THINK = 420, 1024


@exchange("edges.long-call")
def edges_long_call(server: Server, edge_route: Case, tools_thinking_off: Recording) -> Request:
    """A stream for which a call with one long text is due."""
    _able(server, edge_route.id)
    only_if(server.can("tools.required") and server.can("stream"), "the server makes no such calls")
    path, switched = edge_route["path"], tools_thinking_off.status == 200
    calm = server.can("reasoning") and switched and server.takes(path, "chat_template_kwargs")
    room = ROOM_TO_THINK if server.can("reasoning") and not calm else ROOM
    given = {
        "type": "object",
        "properties": {"page": {"type": "string", "const": PAGE}},
        "required": ["page"],
    }
    asked = [{"role": "user", "content": f"Call {WRITER}."}]
    function = {"name": WRITER, "description": "Writes a page.", "parameters": given}
    messages_tool = {"name": WRITER, "description": "Writes a page.", "input_schema": given}
    bodies: dict[str, dict[str, Any]] = {
        CHAT: {
            "messages": asked,
            "tools": [{"type": "function", "function": function}],
            "tool_choice": "required",
            "max_tokens": room,
        },
        RESPONSES: {
            "input": asked,
            "store": False,
            "tools": [{"type": "function", **function}],
            "tool_choice": "required",
            "max_output_tokens": room,
        },
        MESSAGES: {
            "messages": asked,
            "tools": [messages_tool],
            "tool_choice": {"type": "any"},
            "max_tokens": room,
        },
    }
    shared: dict[str, Any] = {"temperature": 0, "stream": True}
    shared |= {"chat_template_kwargs": {"enable_thinking": False}} if calm else {}
    return server.post(path, {**bodies[path], **shared}, expect=None)


#: Tokens of a story: at such a temperature no two of so many are drawn alike.
STORY = 10
narrow_route = cases(
    "narrow_route",
    [
        {"id": "responses", "path": RESPONSES, "limit": "max_output_tokens", "said": "input"},
        {"id": "messages", "path": MESSAGES, "limit": "max_tokens", "said": "messages"},
    ],
)
narrow_draw = cases("narrow_draw", [{"id": name} for name in ("first", "second", "third", "fourth", "fifth")])


@exchange("edges.narrowed")
def edges_narrowed(server: Server, narrow_route: Case, narrow_draw: Case) -> Request:
    """A hot draw from the likeliest token alone, five times: rounding tips none so often."""
    del narrow_draw
    _able(server, narrow_route.id)
    path = narrow_route["path"]
    only_if(server.takes(path, "top_k"), f"vLLM {server.version} reads no top_k on {path}")
    turns = [{"role": "user", "content": "Tell me a story."}]
    body = {narrow_route["said"]: turns, narrow_route["limit"]: STORY, "temperature": 2.0, "top_k": 1}
    return server.post(path, body, expect=None)


@exchange("edges.seeded-two", alone=True)
def edges_seeded_two(server: Server, edge_seed: Case) -> Request:
    """Two choices that are drawn with one seed."""
    del edge_seed
    drawn: dict[str, Any] = {"n": 2, "seed": 23, "logprobs": 0, **HOT}
    return server.completion(FAVOURITE, max_tokens=4, ignore_eos=True, **drawn)
