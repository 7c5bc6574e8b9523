"""The space of requests: what a trial may ask, how one is drawn, and how one is made simpler.

A shape holds what differs from `USUAL` and the route. The fields that few clients set are those of
`fixtures/cases/fields.json`, as far as the running version reads them on that route.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm import case_file, only_if

from .words import HEADERS, SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from random import Random

    from pytest_vllm import Server

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
RESPONSES, MESSAGES = "/v1/responses", "/v1/messages"
ROUTES = {CHAT: "chat", COMPLETIONS: "completions", RESPONSES: "responses", MESSAGES: "messages"}
#: Fields by route, with what they are set to; `refusable` and `prompt` as the suite `fields` has them.
FIELDS: list[dict[str, Any]] = json.loads(case_file("fields").read_text("utf-8"))
#: What is not asked of a route: it has no such thing, or nothing is known to hold of it there.
ABSENT = {
    CHAT: ("constraint", "prompts"),
    COMPLETIONS: ("turns", "tools", "parts", "system", "unused"),
    RESPONSES: (
        "n",
        "constraint",
        "least",
        "logprobs",
        "stop",
        "endless",
        "tools",
        "parts",
        "unused",
        "prompts",
    ),
    MESSAGES: (
        "n",
        "constraint",
        "least",
        "seed",
        "penalty",
        "logprobs",
        "endless",
        "parts",
        "unused",
        "prompts",
    ),
}
USUAL: dict[str, Any] = {
    "output": 4,
    "words": 4,
    "script": "latin",
    "turns": 1,
    "headers": "plain",
    "again": 0,
    "beside": 0,
    "system": False,
    "parts": False,
    "temperature": 0,
    "top_p": None,
    "top_k": None,
    "seed": None,
    "penalty": None,
    "n": 1,
    "prompts": 1,
    "endless": False,
    "least": 0,
    "stop": 0,
    "logprobs": None,
    "tools": 0,
    "unused": False,
    "constraint": "none",
    "fields": [],
}
CONSTRAINTS = ("json", "regex", "choice")
#: How much of a trial is unusual.
DENSITIES = (0.15, 0.4, 0.7)
#: Parts of the context that a prompt may take, and tokens that a word and a tool are counted as.
PART, EACH, TOOL = 3, 6, 60
#: Choices of a request, and tokens that all requests of a trial together may have and may make.
CHOICES, INPUT, OUTPUT = 16, 6000, 500


def draw(chance: Random, server: Server) -> dict[str, Any]:
    """A shape that this server can be asked. Raises NotRun where it generates nothing."""
    able = [path for path, name in ROUTES.items() if server.can(name) and _served(path, server)]
    only_if(able, "this server generates nothing")
    route = chance.choice(able)
    density = chance.choice(DENSITIES)
    drawn = {name: _DRAWN[name](chance) for name in USUAL if name != "fields"}
    kept = {name: value for name, value in drawn.items() if chance.random() < density}
    few = chance.choices((0, 1, 2, 3), (4, 3, 2, 1))[0] if density > DENSITIES[0] else 0
    known = [row["id"] for row in fields_of(route, server)]
    fields = sorted(chance.sample(known, min(few, len(known))))
    return fitting({"route": route, **kept, "fields": fields}, server)


def fields_of(route: str, server: Server) -> list[dict[str, Any]]:
    """The fields of a route that this version reads and that it may not refuse."""
    return [
        row
        for row in FIELDS
        if row["path"] == route
        and not (row.get("refusable") or row.get("prompt"))
        and server.takes(route, *row["set"])
    ]


def fitting(shape: Mapping[str, Any], server: Server) -> dict[str, Any]:
    """The shape without what the server lacks, or what does not go together; usual values are left out."""
    kept = {**USUAL, **shape}
    for name in ABSENT[kept["route"]]:
        kept[name] = USUAL[name]
    if kept["temperature"] == 0:  # several greedy choices are refused
        kept["n"] = 1
    if kept["constraint"] != "none" and not (server.can("structured-output") and server.at_least("0.11.0")):
        kept["constraint"] = "none"
    if kept["constraint"] != "none":
        kept |= {"endless": False, "least": 0, "stop": 0, "penalty": None, "fields": []}
    if kept["tools"] and not server.can("tools"):
        kept["unused"] = True  # without a parser no call may be left to the model
    if kept["tools"] and not (server.can("tools") or kept["route"] == CHAT):
        kept["tools"] = 0
    room = (server.max_model_len or 2048) // PART
    kept["tools"] = min(kept["tools"], room // TOOL)
    if not kept["tools"]:
        kept["unused"] = False
    if kept["logprobs"] is not None and not server.can("logprobs"):
        kept["logprobs"] = None
    _bounded(kept)
    kept["least"] = min(kept["least"], kept["output"])
    kept["words"] = max(1, min(kept["words"], room // (EACH * kept["turns"])))
    kept["turns"] = min(kept["turns"], max(1, room // (4 * EACH)) | 1)
    return {"route": kept["route"], **{name: kept[name] for name in USUAL if kept[name] != USUAL[name]}}


def _bounded(kept: dict[str, Any]) -> None:
    """Keep a trial small, so that a slow server is asked many: what is large alone is asked by `sizes`."""
    kept["prompts"] = max(1, min(kept["prompts"], CHOICES // kept["n"]))
    requests = 2 + kept["again"] + kept["beside"]
    kept["output"] = max(1, min(kept["output"], OUTPUT // (requests * kept["n"] * kept["prompts"])))
    each = INPUT // (EACH * requests * kept["prompts"])
    kept["turns"] = min(kept["turns"], max(1, each) | 1)
    kept["words"] = max(1, min(kept["words"], each // kept["turns"]))


def simpler(shape: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Shapes with one thing as usual, the most at once first; then those with numbers nearer to the usual."""
    given = [name for name in USUAL if name in shape]
    if len(given) > 2:
        for half in (given[len(given) // 2 :], given[: len(given) // 2]):
            yield {name: value for name, value in shape.items() if name not in half}
    for name in given:
        yield {key: value for key, value in shape.items() if key != name}
    for field in shape.get("fields", ()):
        yield {**shape, "fields": [one for one in shape["fields"] if one != field]}
    for name in given:
        yield from ({**shape, name: value} for value in _nearer(name, shape[name]))


def _nearer(name: str, value: Any) -> Iterator[Any]:
    usual = USUAL[name] or 0
    if isinstance(value, bool) or not isinstance(value, int) or name == "seed":
        return
    step = 2 if name == "turns" else 1
    for nearer in ((usual + value) // 2, value - step):
        if usual < nearer < value:
            yield nearer | 1 if name == "turns" else nearer


def _served(path: str, server: Server) -> bool:
    """Whether the version streams this interface for all models."""
    return path != RESPONSES or server.at_least("0.11.0")


def _up_to(most: int, least: int = 1) -> Any:
    """Small numbers as often as large ones."""

    def number(chance: Random) -> int:
        top = chance.choice([bound for bound in (4, 12, 40, 120, 400, 1200) if bound < most] + [most])
        return chance.randint(least, max(least, top))

    return number


def _one_of(*values: Any) -> Any:
    return lambda chance: chance.choice(values)


_DRAWN: dict[str, Any] = {
    "output": _up_to(96),
    "words": _up_to(700),
    "script": _one_of(*SCRIPTS),
    "turns": lambda chance: 2 * chance.randint(0, chance.choice((2, 8, 20))) + 1,
    "headers": _one_of(*HEADERS),
    "again": _up_to(3),
    "beside": _up_to(6),
    "system": _one_of(True),
    "parts": _one_of(True),
    "temperature": lambda chance: round(chance.uniform(0.1, 1.8), 2),
    "top_p": lambda chance: round(chance.uniform(0.05, 1.0), 2),
    "top_k": _up_to(60),
    "seed": lambda chance: chance.randint(0, 2**31 - 1),
    "penalty": lambda chance: round(chance.uniform(-1.0, 1.0), 1),
    "n": _up_to(12),
    "prompts": _up_to(9),
    "endless": _one_of(True),
    "least": _up_to(24),
    "stop": _up_to(4),
    "logprobs": lambda chance: chance.randint(0, 5),
    "tools": _up_to(70),
    "unused": _one_of(True),
    "constraint": _one_of(*CONSTRAINTS),
}
