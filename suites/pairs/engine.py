"""Rows of a second covering array: what the engine is asked for at once in one request, all of it legal.

How an answer may end, what it may not hold, how it is drawn, what is told of it, and when its turn comes.
Each row is exact: it ends at its limit, or keeps its constraint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm import only_if

from .covering import covering

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm import Case, Request, Server

VALUES: dict[str, list[str]] = {
    "route": ["completions", "chat"],
    "answer": ["whole", "stream"],
    "drawing": ["greedy", "drawn", "seeded"],
    "choices": ["1", "3"],
    "ending": ["none", "stop", "least"],
    "masking": ["none", "bias", "words", "allowed"],
    "sampling": ["none", "narrow", "penalised"],
    "report": ["none", "logprobs", "ids", "prompt", "echo"],
    "constraint": ["none", "regex"],
    "priority": ["none", "later"],
    "model": ["base", "adapter"],
}
DRAWING: dict[str, dict[str, Any]] = {
    "greedy": {"temperature": 0},
    "drawn": {"temperature": 1.0},
    "seeded": {"temperature": 1.0, "seed": 23},
}
SAMPLING: dict[str, dict[str, Any]] = {
    "none": {},
    "narrow": {"top_k": 20, "top_p": 0.9},
    "penalised": {"presence_penalty": 0.5, "frequency_penalty": 0.5, "repetition_penalty": 1.1},
}
#: Tokens of an answer, and the digits that the constraint allows.
TOKENS, DIGITS = 10, 4
PROMPT = "<think>\n</think>\nOne heron, two herons,"


def fits(row: Mapping[str, str]) -> bool:
    """Whether these values can go together in a request that nobody refuses.

    Several greedy choices are refused, and so are log probabilities of a streamed prompt; what may be drawn
    or ends an answer would contradict a constraint; a parser may take tokens out of a chat's stream. All
    prompts are short: a seeded request that is read in two steps ends the engine of vLLM on a CPU.
    """
    streams, chats = row.get("answer") == "stream", row.get("route") == "chat"
    bound, told = row.get("constraint", "none") != "none", row.get("report", "none")
    free = row.get("ending", "none") == row.get("masking", "none") == "none"
    return not (
        (row.get("choices", "1") != "1" and row.get("drawing") == "greedy")
        or (bound and (chats or not free))
        or (told == "echo" and chats)
        or (told == "prompt" and streams)
        or (chats and streams and told != "none")
    )


USUAL = {name: values[0] for name, values in VALUES.items()}
#: More than two of them: where text is held back for a stop string, the ids of its tokens come all the same.
HELD = {**USUAL, "answer": "stream", "ending": "stop", "report": "ids"}
ROWS = [
    *({"id": f"engine-{at:02}", **row} for at, row in enumerate(covering(VALUES, fits))),
    {"id": "engine-held", **HELD},
]
#: Each value alone, everything else as usual, under the name that a row finds it by.
ALONE = [
    {"id": f"{name}-{value}", **row}
    for name, values in VALUES.items()
    for value in values
    if value != USUAL[name]
    and fits(row := {**USUAL, "drawing": "drawn" if name == "choices" else "greedy", name: value})
]


def request(server: Server, row: Case, ids: list[int], adapter: str) -> Request:
    """What a row asks for.

    Args:
        server: what can be asked of it.
        row: a value for each dimension.
        ids: two tokens of words.
        adapter: the name of one; empty where there is none, and the base model is asked.
    """
    body: dict[str, Any] = {"max_tokens": TOKENS, "ignore_eos": True, **DRAWING[row["drawing"]]}
    body |= SAMPLING[row["sampling"]] | _ending(server, row, ids) | _masking(row, ids)
    if row["choices"] != "1":
        body["n"] = int(row["choices"])
    if row["answer"] == "stream":
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    if row["constraint"] != "none":
        only_if(server.at_least("0.11.0"), "this version names its constraints otherwise")
        body |= {"structured_outputs": {"regex": f"[0-9]{{{DIGITS}}}"}, "max_tokens": 48, "ignore_eos": False}
    if row["priority"] != "none":
        body["priority"] = 3 if server.args.get("scheduling-policy") == "priority" else 0
    body |= _report(server, row)
    if row["model"] == "adapter" and adapter:
        body["model"] = adapter
    if row["route"] == "chat":
        return server.chat("How many herons are there?", expect=None, **body)
    return server.completion(PROMPT, expect=None, **body)


def _ending(server: Server, row: Case, ids: list[int]) -> dict[str, Any]:
    if row["ending"] == "stop":
        return {"stop": ["never of this world"]}
    if row["ending"] == "least":
        only_if(not server.drafts, "where tokens are drafted the least number of them is not kept")
        return {"min_tokens": TOKENS, "stop_token_ids": ids[:1]}
    return {}


def _masking(row: Case, ids: list[int]) -> dict[str, Any]:
    masks: dict[str, dict[str, Any]] = {
        "bias": {"logit_bias": {str(ids[0]): -100}},
        "words": {"bad_words": ["zebra"]},
        "allowed": {"allowed_token_ids": ids},
    }
    return masks.get(row["masking"], {})


def _report(server: Server, row: Case) -> dict[str, Any]:
    told, chats = row["report"], row["route"] == "chat"
    listed = {"logprobs": True, "top_logprobs": 2} if chats else {"logprobs": 2}
    if told in ("logprobs", "prompt", "echo"):
        only_if(server.can("logprobs"), "the server gives no log probabilities")
    if told == "ids":
        path = "/v1/chat/completions" if chats else "/v1/completions"
        return server.taken(path, return_token_ids=True)
    reports: dict[str, dict[str, Any]] = {
        "logprobs": listed,
        "prompt": {"prompt_logprobs": 1},
        "echo": {"echo": True, "logprobs": 1},
    }
    return reports.get(told, {})
