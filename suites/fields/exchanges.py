"""Requests that set what other suites leave out: every field that a route reads, on its own.

A field whose effect can be foreseen has an exchange of its own. Of any other it is judged that the request is
answered as it is without the field; the answers are two tokens long.
"""

from __future__ import annotations

import json
from typing import Any

from pytest_vllm import Case, Recording, Request, Server, case_file, cases, exchange, only_if

from .agents import AGENTS

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
RESPONSES, MESSAGES = "/v1/responses", "/v1/messages"
QUESTION = "What is the capital of France?"
OPENING = "The capital of France is"
BEGUN = "The capital city of"
ID = "pytest-vllm-field-5d1c"
KEEP, LONG, EVERY, TIMES = 5, 16, 4, 3
#: White space and the commonest letters: any text of a few words holds one of them.
COMMON = [" ", "e", "a", "i"]

TURNS = [{"role": "user", "content": QUESTION}]
#: Fields by route, as `fixtures/cases/fields.json` has them: `prompt` marks those that a template may render,
#: `refusable` those that a healthy server may refuse.
FIELDS: list[dict[str, Any]] = json.loads(case_file("fields").read_text("utf-8"))
#: What each route needs, whatever else is set.
BARE: dict[str, dict[str, Any]] = {
    CHAT: {"messages": TURNS, "max_tokens": 2},
    COMPLETIONS: {"prompt": OPENING, "max_tokens": 2},
    RESPONSES: {"input": QUESTION, "max_output_tokens": 2, "temperature": 0, "store": False},
    MESSAGES: {"messages": TURNS, "max_tokens": 2, "temperature": 0},
}
#: Ways to render a conversation: what is set, and whether an answer was begun.
RENDERINGS: list[dict[str, Any]] = [
    {"id": "closed", "set": {"add_generation_prompt": False}},
    {"id": "special", "set": {"add_special_tokens": True}},
    {"id": "begun", "set": {"add_generation_prompt": False, "continue_final_message": True}, "begun": True},
]

#: Fields at a value that asks for nothing, or at null, as many clients send them; none is about the prompt.
NEUTRAL: dict[str, dict[str, Any]] = {
    "uncut": {"truncate_prompt_tokens": -1},
    "unlimited": {"top_k": -1, "top_p": 1.0, "min_p": 0.0},
    "top-zero": {"top_k": 0},
    "empty": {"stop": [], "stop_token_ids": [], "logit_bias": {}, "bad_words": []},
    "plain": {"response_format": {"type": "text"}, "n": 1, "min_tokens": 0, "length_penalty": 1.0},
    "zero": {"presence_penalty": 0, "frequency_penalty": 0, "priority": 0},
    "off": {"ignore_eos": False, "echo": False, "stream": False, "include_stop_str_in_output": False},
    "null": dict.fromkeys(
        ("stop", "seed", "stream", "stream_options", "logit_bias", "top_p", "user", "response_format")
    ),
}
NEUTRAL_ROUTES = (CHAT, COMPLETIONS, RESPONSES)

chat_field = cases("chat_field", [row for row in FIELDS if row["path"] == CHAT])
completion_field = cases("completion_field", [row for row in FIELDS if row["path"] == COMPLETIONS])
response_field = cases("response_field", [row for row in FIELDS if row["path"] == RESPONSES])
message_field = cases("message_field", [row for row in FIELDS if row["path"] == MESSAGES])
bare_route = cases(
    "bare_route", [{"id": path.rpartition("/v1/")[2].replace("/", "-"), "path": path} for path in BARE]
)
agent = cases("agent", AGENTS)
rendering = cases("rendering", RENDERINGS)
neutral_field = cases(
    "neutral_field",
    [
        {"id": f"{path.split('/')[2]}-{name}", "path": path, "set": given}
        for path in NEUTRAL_ROUTES
        for name, given in NEUTRAL.items()
        if path != RESPONSES or name not in ("uncut", "plain")  # of which it reads nothing
    ],
)
named_route = cases(
    "named_route",
    [
        {"id": "chat", "path": CHAT},
        {"id": "completions", "path": COMPLETIONS},
        {"id": "responses", "path": RESPONSES},
    ],
)
cut_side = cases("cut_side", [{"id": side, "side": side} for side in ("left", "right")])


def served(server: Server, path: str, *names: str) -> None:
    """Raise NotRun unless the running version reads these fields on that route."""
    missing = [name for name in names if not server.takes(path, name)]
    only_if(not missing, f"vLLM {server.version} reads no {', '.join(missing)} on {path}")


@exchange("fields.bare")
def fields_bare(server: Server, bare_route: Case) -> Request:
    """A request that sets what it must and nothing else."""
    return server.post(bare_route["path"], BARE[bare_route["path"]])


@exchange("fields.chat")
def fields_chat(server: Server, chat_field: Case) -> Request:
    """The same with a field that few clients set."""
    return _with(server, chat_field)


@exchange("fields.completion")
def fields_completion(server: Server, completion_field: Case) -> Request:
    """The same on another route."""
    return _with(server, completion_field)


@exchange("fields.response")
def fields_response(server: Server, response_field: Case) -> Request:
    """The same on another route."""
    return _with(server, response_field)


@exchange("fields.message")
def fields_message(server: Server, message_field: Case) -> Request:
    """The same on another route."""
    return _with(server, message_field)


@exchange("fields.neutral")
def fields_neutral(server: Server, neutral_field: Case) -> Request:
    """The same with fields at a value that asks for nothing."""
    path = neutral_field["path"]
    read = {name: value for name, value in neutral_field["set"].items() if server.takes(path, name)}
    only_if(read, f"vLLM {server.version} reads none of them on {path}")
    return server.post(path, {**BARE[path], **read})


@exchange("fields.agent")
def fields_agent(server: Server, agent: Case) -> Request:
    """What a coding agent sends on every request, as far as this version reads it."""
    path = agent["path"].partition("?")[0]
    read = {name: value for name, value in agent["set"].items() if server.takes(path, name)}
    request = server.post(agent["path"], read)
    return Request("POST", agent["path"], json=request.json, headers=agent["headers"])


@exchange("fields.rendered")
def fields_rendered(server: Server, rendering: Case) -> Request:
    """A conversation that is rendered in another way; some templates refuse it."""
    return server.chat(_turns(rendering), max_tokens=1, expect=None, **rendering["set"], **_listed(server))


@exchange("fields.rendered-count")
def fields_rendered_count(server: Server, rendering: Case) -> Request:
    """The same for its tokens."""
    return server.post("/tokenize", {"messages": _turns(rendering), **rendering["set"]}, expect=None)


@exchange("fields.ids")
def fields_ids(server: Server, tokenize_word: Recording) -> Request:
    """A chat answer of the only token that is allowed, with all token ids."""
    served(server, CHAT, "allowed_token_ids", "return_token_ids")
    only = {"allowed_token_ids": tokenize_word.ok["tokens"][-1:], "return_token_ids": True}
    return server.chat(QUESTION, max_tokens=3, **only)


@exchange("fields.cut")
def fields_cut(server: Server, cut_side: Case) -> Request:
    """A prompt of which a few tokens are kept, from one side."""
    served(server, COMPLETIONS, "truncate_prompt_tokens", "truncation_side", "return_token_ids")
    how = {"truncate_prompt_tokens": KEEP, "truncation_side": cut_side["side"], "return_token_ids": True}
    return server.completion(f"{OPENING} {OPENING}", add_special_tokens=False, max_tokens=1, **how)


@exchange("fields.cut-chat")
def fields_cut_chat(server: Server, cut_side: Case) -> Request:
    """The same of a conversation."""
    served(server, CHAT, "truncate_prompt_tokens", "truncation_side", "return_token_ids")
    how = {"truncate_prompt_tokens": KEEP, "truncation_side": cut_side["side"], "return_token_ids": True}
    return server.chat(QUESTION, max_tokens=1, expect=None, **how)


@exchange("fields.whole-prompt")
def fields_whole_prompt(server: Server) -> Request:
    """The same prompt, whole."""
    return server.post("/tokenize", {"prompt": f"{OPENING} {OPENING}", "add_special_tokens": False})


@exchange("fields.prompt-logprobs")
def fields_prompt_logprobs(server: Server) -> Request:
    """The log probabilities of a conversation's tokens."""
    served(server, CHAT, "prompt_logprobs")
    return server.chat(QUESTION, max_tokens=1, prompt_logprobs=1)


@exchange("fields.prompt-text")
def fields_prompt_text(server: Server) -> Request:
    """The text that the chat template made."""
    served(server, CHAT, "return_prompt_text")
    return server.chat(QUESTION, max_tokens=1, return_prompt_text=True)


@exchange("fields.echo")
def fields_echo(server: Server) -> Request:
    """An answer that was begun, gone on with, and wanted whole; some templates refuse it."""
    turns = [*TURNS, {"role": "assistant", "content": BEGUN}]
    goes_on = {"add_generation_prompt": False, "continue_final_message": True, "echo": True}
    return server.chat(turns, max_tokens=2, expect=None, **goes_on, **_listed(server))


@exchange("fields.echo-again")
def fields_echo_again(server: Server, fields_echo: Recording) -> Request:  # noqa: ARG001 - every exchange takes it
    """The same once more: its beginning is cached by then."""
    asked = fields_echo.request
    return Request(asked.method, asked.path, json=asked.json, expect=None)


@exchange("fields.named")
def fields_named(server: Server, named_route: Case) -> Request:
    """A request whose body brings its id."""
    path = named_route["path"]
    served(server, path, "request_id")
    return server.post(path, {**BARE[path], "request_id": ID})


@exchange("fields.score-ids")
def fields_score_ids(server: Server, tokenize_word: Recording, tokenize_other_word: Recording) -> Request:
    """The log probabilities of two tokens that are named by their ids."""
    served(server, CHAT, "logprob_token_ids", "return_tokens_as_token_ids")
    two = [tokenize_word.ok["tokens"][-1], tokenize_other_word.ok["tokens"][-1]]
    wanted: dict[str, Any] = {"logprobs": True, "logprob_token_ids": two, "return_tokens_as_token_ids": True}
    return server.chat(QUESTION, max_tokens=2, ignore_eos=True, **wanted)


@exchange("fields.stop-included")
def fields_stop_included(server: Server) -> Request:
    """A chat answer with the stop string that ends it."""
    return server.chat(QUESTION, max_tokens=12, stop=COMMON, include_stop_str_in_output=True)


@exchange("fields.repeats")
def fields_repeats(server: Server, tokenize_word: Recording) -> Request:
    """A chat answer that can only repeat one token, and is to end when it does."""
    served(server, CHAT, "repetition_detection", "allowed_token_ids")
    return server.chat(QUESTION, **_repeated(tokenize_word))


@exchange("fields.repeats-completion")
def fields_repeats_completion(server: Server, tokenize_word: Recording) -> Request:
    """The same as a completion."""
    served(server, COMPLETIONS, "repetition_detection", "allowed_token_ids")
    return server.completion(OPENING, **_repeated(tokenize_word))


@exchange("fields.interval")
def fields_interval(server: Server) -> Request:
    """A chat stream that is to come in pieces of four tokens."""
    served(server, CHAT, "stream_interval")
    return server.chat(QUESTION, max_tokens=LONG, ignore_eos=True, stream=True, stream_interval=EVERY)


@exchange("fields.interval-completion")
def fields_interval_completion(server: Server) -> Request:
    """The same as a completion."""
    served(server, COMPLETIONS, "stream_interval")
    return server.completion(OPENING, max_tokens=LONG, ignore_eos=True, stream=True, stream_interval=EVERY)


@exchange("fields.beams")
def fields_beams(server: Server) -> Request:
    """A search for a chat answer with two beams, which servers may refuse."""
    search = {"use_beam_search": True, "n": 2, "length_penalty": 0.5}
    return server.chat(QUESTION, max_tokens=4, expect=None, **search)


@exchange("fields.response-logprobs")
def fields_response_logprobs(server: Server) -> Request:
    """A response with log probabilities, which servers may refuse."""
    wanted = {"include": ["message.output_text.logprobs"], "top_logprobs": 2}
    return server.post(RESPONSES, {**BARE[RESPONSES], "max_output_tokens": 4, **wanted}, expect=None)


@exchange("fields.response-choice")
def fields_response_choice(server: Server) -> Request:
    """A response that can only be one word."""
    served(server, RESPONSES, "structured_outputs")
    only = {"structured_outputs": {"choice": ["heron"]}, "max_output_tokens": 512}
    return server.post(RESPONSES, {**BARE[RESPONSES], **only})


@exchange("fields.message-format")
def fields_message_format(server: Server) -> Request:
    """A message in a format that leaves no choice."""
    served(server, MESSAGES, "output_config")
    schema = {"type": "object", "properties": {"bird": {"const": "heron"}}, "required": ["bird"]}
    form = {"type": "json_schema", "schema": {**schema, "additionalProperties": False}}
    body = {**BARE[MESSAGES], "max_tokens": 512, "output_config": {"format": form}}
    return server.post(MESSAGES, body)


def _with(server: Server, field: Case) -> Request:
    served(server, field["path"], *field["set"])
    expect = None if field.get("refusable") else 200
    return server.post(field["path"], {**BARE[field["path"]], **field["set"]}, expect=expect)


def _turns(rendering: Case) -> list[dict[str, str]]:
    begun = [{"role": "assistant", "content": BEGUN}] if rendering.get("begun") else []
    return [*TURNS, *begun]


def _listed(server: Server) -> dict[str, Any]:
    """What makes an answer list its tokens, where the server can."""
    return {"logprobs": True} if server.can("logprobs") else {}


def _repeated(word: Recording) -> dict[str, Any]:
    only = {"allowed_token_ids": word.ok["tokens"][-1:], "max_tokens": LONG}
    return {
        **only,
        "repetition_detection": {"max_pattern_size": 1, "min_pattern_size": 1, "min_count": TIMES},
    }
