"""Requests of a covering array: two things that work each on its own may not work together.

Every pair of the values below that makes sense comes in one request at least. Answers ignore the end of a
text or have to keep a constraint, so that their length or form is known for any model.
"""

from __future__ import annotations

from typing import Any

from pytest_vllm import Case, Recording, Request, Server, cases, exchange, only_if

from . import engine
from .covering import covering

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
VALUES: dict[str, list[str]] = {
    "route": ["chat", "completions"],
    "answer": ["whole", "stream"],
    "drawing": ["greedy", "drawn", "seeded"],
    "constraint": ["none", "json", "regex", "choice"],
    "turns": ["1", "3", "9", "13"],
    "tools": ["none", "one", "unused"],
    "script": ["latin", "thai", "arabic", "korean", "emoji", "hindi"],
    "client": ["plain", "openai", "anthropic", "trace", "proxy"],
    "output": ["1", "8", "24"],
    "choices": ["1", "2", "5"],
    "report": ["none", "logprobs", "ids"],
    "sampling": ["none", "narrow", "penalised"],
}
#: What other suites ask for on its own.
ELSEWHERE = ("report", "sampling")
TEXTS = {
    "latin": "How many herons are there?",
    "thai": "มีนกกี่ตัว",
    "arabic": "كم عدد الطيور؟",
    "korean": "새가 몇 마리입니까?",
    "emoji": "🐦👍🏽?",
    "hindi": "कितने पक्षी हैं?",
}
CONSTRAINTS: dict[str, dict[str, Any]] = {
    "json": {"json": {"enum": ["heron"]}},
    "regex": {"regex": "[0-9]{2}"},
    "choice": {"choice": ["heron", "crane"]},
}
HEADERS: dict[str, dict[str, str]] = {
    "plain": {},
    "openai": {"X-Stainless-Lang": "python", "User-Agent": "OpenAI/Python 2.3.0"},
    "anthropic": {"Anthropic-Version": "2023-06-01"},
    "trace": {"Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
    "proxy": {"X-Forwarded-For": "203.0.113.7", "Via": "1.1 gate"},
}
DRAWING: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0},
    "drawn": {"temperature": 1.0},
    "seeded": {"temperature": 1.0, "seed": 11},
}
#: Candidates for each token.
CANDIDATES = 4
#: Enough for any of the constraints, in tokens.
ROOM = 48


def fits(row: dict[str, str]) -> bool:
    """Whether these values can go together.

    Turns and tools are chat's; a constraint is asked of a completion, where no thinking comes before it;
    several greedy choices are refused. What a parser takes out of a chat's stream may be listed nowhere.
    """
    completes, chats = row.get("route") == "completions", row.get("route") == "chat"
    talks = row.get("turns", "1") != "1" or row.get("tools", "none") != "none"
    bound = row.get("constraint", "none") != "none"
    several = row.get("choices", "1") != "1"
    return not (
        (completes and talks)
        or (chats and bound)
        or (talks and bound)
        or (several and row.get("drawing") == "greedy")
        or (chats and row.get("answer") == "stream" and row.get("report", "none") != "none")
    )


ROWS = [{"id": f"row-{at:02}", **row} for at, row in enumerate(covering(VALUES, fits))]
#: What is usual on each route; of several choices none can be greedy.
USUAL = {
    route: {**{name: values[0] for name, values in VALUES.items()}, "route": route}
    for route in VALUES["route"]
}
#: Each value alone, everything else as usual, under the name that a row finds it by.
ALONE = [
    {"id": f"{route}-{name}-{value}", **row}
    for route, usual in USUAL.items()
    for name, values in VALUES.items()
    for value in values
    if fits(
        row := {**usual, name: value, **({"drawing": "drawn"} if name == "choices" and value != "1" else {})}
    )
    and name not in ("route", *ELSEWHERE)
]
lone_row = cases("lone_row", ALONE)
free_row = cases("free_row", [row for row in ROWS if row["constraint"] == "none"])
engine_row = cases("engine_row", engine.ROWS)
engine_alone = cases("engine_alone", engine.ALONE)
bound_row = cases("bound_row", [row for row in ROWS if row["constraint"] != "none"])


@exchange("pairs.free")
def pairs_free(server: Server, free_row: Case) -> Request:
    """A request of the array that leaves the answer free."""
    return _request(server, free_row)


@exchange("pairs.bound")
def pairs_bound(server: Server, bound_row: Case) -> Request:
    """A request of the array with a constraint on its answer."""
    only_if(server.at_least("0.11.0"), "this version names its constraints otherwise")
    return _request(server, bound_row)


@exchange("pairs.alone")
def pairs_alone(server: Server, lone_row: Case) -> Request:
    """A request that is usual but for one thing: what fails here is no matter of pairs."""
    return _request(server, lone_row)


@exchange("pairs.alone-count")
def pairs_alone_count(server: Server, lone_row: Case) -> Request:
    """The tokens of its prompt."""
    return _count(server, lone_row)


@exchange("pairs.count")
def pairs_count(server: Server, free_row: Case) -> Request:
    """The tokens of the prompt of such a request."""
    return _count(server, free_row)


@exchange("pairs.count-bare")
def pairs_count_bare(server: Server, free_row: Case) -> Request:
    """The same without its tools: a server may leave those out that are not to be used."""
    only_if(free_row["tools"] == "unused", "its tools may be used")
    asked = _request(server, free_row).json
    return server.post("/tokenize", {"messages": asked["messages"]}, expect=None)


@exchange("pairs.engine")
def pairs_engine(
    server: Server,
    engine_row: Case,
    tokenize_word: Recording,
    tokenize_other_word: Recording,
    health_models: Recording,
) -> Request:
    """A request that asks the engine for several things at once."""
    ids = [tokenize_word.ok["tokens"][-1], tokenize_other_word.ok["tokens"][-1]]
    return engine.request(server, engine_row, ids, _adapter(health_models))


@exchange("pairs.engine-alone")
def pairs_engine_alone(
    server: Server,
    engine_alone: Case,
    tokenize_word: Recording,
    tokenize_other_word: Recording,
    health_models: Recording,
) -> Request:
    """A request that asks the engine for one of them."""
    ids = [tokenize_word.ok["tokens"][-1], tokenize_other_word.ok["tokens"][-1]]
    return engine.request(server, engine_alone, ids, _adapter(health_models))


def _adapter(models: Recording) -> str:
    """The name of an adapter that is listed; empty when there is none."""
    rows = models.json.get("data") if models.status == 200 and isinstance(models.json, dict) else None
    named = [row["id"] for row in rows or () if isinstance(row, dict) and row.get("parent")]
    return str(named[0]) if named else ""


def _request(server: Server, row: Case) -> Request:
    body: dict[str, Any] = {"max_tokens": int(row["output"]), "ignore_eos": True, **DRAWING[row["drawing"]]}
    body |= engine.SAMPLING[row["sampling"]]
    if row["report"] == "logprobs" and server.can("logprobs"):
        chats = row["route"] == "chat"
        body |= {"logprobs": True, "top_logprobs": CANDIDATES} if chats else {"logprobs": CANDIDATES}
    if row["report"] == "ids":
        body["return_token_ids"] = True
    if row["choices"] != "1":
        body["n"] = int(row["choices"])
    if row["answer"] == "stream":
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    if row["constraint"] != "none":
        body |= {
            "structured_outputs": CONSTRAINTS[row["constraint"]],
            "max_tokens": ROOM,
            "ignore_eos": False,
        }
    if row["tools"] != "none":
        body["tools"] = [_TOOL]
    if row["tools"] == "unused":
        body["tool_choice"] = "none"
    text = TEXTS[row["script"]]
    if row["route"] == "completions":
        request = server.post(COMPLETIONS, {"prompt": f"<think>\n</think>\n{text}", **body})
    else:
        request = server.post(CHAT, {"messages": _turns(text, int(row["turns"])), **body})
    return Request("POST", request.path, json=request.json, headers=HEADERS[row["client"]])


def _count(server: Server, row: Case) -> Request:
    asked = _request(server, row).json
    body = {name: asked[name] for name in ("messages", "prompt", "tools") if name in asked}
    return server.post("/tokenize", body, expect=None)


def _turns(text: str, number: int) -> list[dict[str, str]]:
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": f"{text} {at}"} for at in range(number)]


_TOOL = {
    "type": "function",
    "function": {
        "name": "count_birds",
        "description": "Counts birds.",
        "parameters": {"type": "object", "properties": {"kind": {"type": "string"}}},
    },
}
