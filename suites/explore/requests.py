"""The requests of a trial: the same whole, streamed, again, over other routes, and others beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm import Request

from .space import CHAT, COMPLETIONS, FIELDS, MESSAGES, RESPONSES, USUAL
from .words import HEADERS, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm import Server

STREAM: dict[str, Any] = {"stream": True}
COUNTED: dict[str, Any] = {"stream_options": {"include_usage": True}}
CONSTRAINTS: dict[str, dict[str, Any]] = {
    "json": {"json": {"enum": ["heron"]}},
    "regex": {"regex": "[0-9]{2}"},
    "choice": {"choice": ["heron", "crane"]},
}
#: Texts that end an answer, from an unlikely one to a letter.
STOPS = ("\u2603\u2603", "heron", ".", "e")
#: Tokens that any of the constraints fits in.
ROOM = 48
OWN_ID = "X-Request-Id"
LIMITS = {RESPONSES: "max_output_tokens"}
#: What asks for the same over chat and over the other two, as `oracle` compares them.
PLAIN = ("route", "output", "words", "script", "turns", "headers", "again", "beside", "system")


def requests(server: Server, shape: Mapping[str, Any]) -> dict[str, Request]:
    """The requests of a shape by their names."""
    full = {**USUAL, **shape}
    full["least"] = min(full["least"], full["output"])
    whole = _request(server, full)
    found = {"whole": whole, "stream": _streamed(whole)}
    for at in range(full["again"]):
        found[f"again-{at}"] = _streamed(whole) if at % 2 else whole
    for at in range(full["beside"]):
        found[f"beside-{at}"] = _request(server, {**full, "again": 0}, beside=at + 1)
    if full["route"] in (RESPONSES, MESSAGES) and set(shape) <= set(PLAIN) and server.can("chat"):
        found["chat"] = _request(server, {**full, "route": CHAT})
    return {name: _own_name(name, request) for name, request in found.items()}


def _own_name(name: str, request: Request) -> Request:
    """The request with an id of its own where its header gives one: the answers' ids are made of it."""
    if OWN_ID not in request.headers:
        return request
    headers = {**request.headers, OWN_ID: f"{request.headers[OWN_ID]}-{name}"}
    return Request("POST", request.path, json=request.json, headers=headers)


def _request(server: Server, full: Mapping[str, Any], beside: int = 0) -> Request:
    route = full["route"]
    body: dict[str, Any] = {
        **_prompt(full, beside),
        LIMITS.get(route, "max_tokens"): full["output"],
        **_sampling(full),
        **_wishes(full),
        **_fields(full),
    }
    if route in (RESPONSES, MESSAGES):
        body.setdefault("temperature", 0)
    if route == RESPONSES:
        body["store"] = False
    asked = server.post(route, body)
    return Request("POST", route, json=asked.json, headers=HEADERS[full["headers"]])


def _streamed(request: Request) -> Request:
    counted = COUNTED if request.path in (CHAT, COMPLETIONS) else {}
    body = {**request.json, **STREAM, **counted}
    return Request("POST", request.path, json=body, headers=request.headers)


def _prompt(full: Mapping[str, Any], beside: int) -> dict[str, Any]:
    """The conversation; each of those beside has a code of its own, which no other answer may hold."""
    code = f" kestrel-{4000 + 7 * beside}" if beside else ""
    words = [
        text(full["script"], full["words"], at) + (code if not at else "") for at in range(full["turns"])
    ]
    if full["route"] == COMPLETIONS:
        more = [text(full["script"], full["words"], at) for at in range(1, full["prompts"])]
        return {"prompt": [words[0], *more] if more else words[0]}
    turns: list[dict[str, Any]] = [
        {"role": ("user", "assistant")[at % 2], "content": said} for at, said in enumerate(words)
    ]
    if full["parts"]:
        turns[-1]["content"] = [{"type": "text", "text": words[-1]}]
    above = "Answer briefly."
    if full["route"] == RESPONSES:
        return {"input": turns, **({"instructions": above} if full["system"] else {})}
    if full["route"] == MESSAGES:
        return {"messages": turns, **({"system": above} if full["system"] else {})}
    system = [{"role": "system", "content": above}] if full["system"] else []
    return {"messages": [*system, *turns]}


def _sampling(full: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: full[name] for name in ("temperature", "top_p", "top_k") if full[name] is not None}
    if full["route"] == MESSAGES:
        return {**given, "temperature": min(1.0, given["temperature"])}
    if full["seed"] is not None:
        given["seed"] = full["seed"]
    if full["penalty"] is not None:
        given["frequency_penalty"] = full["penalty"]
    return given


def _wishes(full: Mapping[str, Any]) -> dict[str, Any]:
    route, found = full["route"], dict[str, Any]()
    if full["n"] > 1:
        found["n"] = full["n"]
    if full["endless"]:
        found["ignore_eos"] = True
    if full["least"] and route in (CHAT, COMPLETIONS):
        found["min_tokens"] = full["least"]
    if full["stop"]:
        found["stop_sequences" if route == MESSAGES else "stop"] = list(STOPS[: full["stop"]])
    if full["logprobs"] is not None:
        scored = {"logprobs": True, "top_logprobs": full["logprobs"]}
        found |= scored if route == CHAT else {"logprobs": full["logprobs"]}
    if full["tools"]:
        found["tools"] = [_tool(at, route) for at in range(full["tools"])]
        if full["unused"]:
            found["tool_choice"] = "none"
    if full["constraint"] != "none":
        found |= {"structured_outputs": CONSTRAINTS[full["constraint"]], "max_tokens": ROOM}
        found["prompt"] = f"<think>\n</think>\n{_prompt(full, 0)['prompt']}"
    return found


def _fields(full: Mapping[str, Any]) -> dict[str, Any]:
    rows = [row for row in FIELDS if row["path"] == full["route"] and row["id"] in full["fields"]]
    return {name: value for row in rows for name, value in row["set"].items()}


def _tool(at: int, route: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"kind": {"type": "string"}, "most": {"type": "integer"}}}
    name, about = f"count_birds_{at}", f"Counts birds of the kind {at}."
    if route == MESSAGES:
        return {"name": name, "description": about, "input_schema": schema}
    return {"type": "function", "function": {"name": name, "description": about, "parameters": schema}}
