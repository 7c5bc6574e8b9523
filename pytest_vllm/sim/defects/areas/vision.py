"""Defects of servers that see: pictures that end in errors, are not counted, or are taken for others."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.reply import JSON, Exchange, Reply
from pytest_vllm.sim.defects.registry import add
from pytest_vllm.sim.defects.scope import CHAT, only, remembering
from pytest_vllm.sim.errors import ApiError
from pytest_vllm.sim.tokens.tokenizer import load
from pytest_vllm.sim.vision import END, PAD, START, Picture, pictures, read, url_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.persona.turn import Turn

AREA: dict[str, Any] = {"profile": "spark-qwen35"}
HERE = (CHAT,)
#: Tokens of answers that are written at the same time, and of no other answer to a picture.
LONG = 32
#: Pixels of the picture that most requests show, wide and high.
SIDE = 72
#: Pixels of the pictures that are sent after a bad one, wide and high.
AFTER = range(65, 69)
#: How many sizes a server takes before it breaks.
SIZES = 4
#: What remembers earlier requests needs a server: recordings are rewritten one by one.
LIVE: dict[str, Any] = {"step": lambda seconds, _engine: seconds}
Json = dict[str, Any]


def shown(body: Any) -> list[Picture]:
    """The pictures of a request, those that can be read."""
    found = []
    for part in pictures(body.get("messages") if isinstance(body, dict) else None):
        try:
            found.append(read(url_of(part)))
        except ApiError:
            continue
    return found


def sees(body: Any) -> bool:
    """Whether a request has pictures, readable or not."""
    return any(pictures(body.get("messages") if isinstance(body, dict) else None))


def _failure(message: str = "EngineCore encountered an issue.") -> Reply:
    error = {"message": message, "type": "InternalServerError", "param": None, "code": 500}
    return Reply(500, json.dumps({"error": error}).encode(), [JSON])


def _fails(name: str, summary: str, asked: Callable[[Json], object], **facts: Any) -> None:
    """Requests of some kind end in a server error."""

    def rewritten(reply: Reply, exchange: Exchange) -> Reply:
        return _failure() if sees(exchange.body) and asked(exchange.body) else reply

    add(name, summary, {"reply": only(HERE, rewritten)}, **AREA, **facts)


def _first_part(body: Json) -> Any:
    return body["messages"][-1]["content"][0].get("type")


_fails(
    "vision.pictures-fail",
    "The first picture that anyone sends ends in a server error.",
    lambda body: any(one.width == one.height == SIDE for one in shown(body)),
    catches=["vision.answered"],
)
_fails(
    "vision.picture-first-fails",
    "A picture before the text ends in a server error.",
    lambda body: _first_part(body) == "image_url",
    catches=["vision.places.answered"],
)
_fails(
    "vision.cut-breaks",
    "A picture that is cut short ends in a server error.",
    lambda body: not shown(body),
    catches=["vision.cut.refused"],
)
_fails(
    "vision.pixel-breaks",
    "A picture of a single pixel, or of one row, ends in a server error.",
    lambda body: any(min(one.width, one.height) < 3 for one in shown(body)),
    catches=["vision.odd.survived"],
)
_fails(
    "vision.blind-after-bad",
    "Once a picture was bad, good ones end in server errors.",
    lambda body: any(one.width == one.height and one.width in AFTER for one in shown(body)),
    catches=["vision.alive"],
)


def _many_sizes() -> Callable[..., Reply]:
    seen: set[tuple[int, int]] = set()

    def rewritten(reply: Reply, exchange: Exchange) -> Reply:
        """Sizes are remembered, and what remembers them is full after some."""
        sizes = {(one.width, one.height) for one in shown(exchange.body)}
        seen.update(sizes)
        return _failure() if sizes and len(seen) > SIZES else reply

    return rewritten


add(
    "vision.many-sizes-break",
    "After some pictures of different sizes every picture ends in a server error.",
    {"reply": only(HERE, remembering(_many_sizes)), **LIVE},
    faults=["ROBUST-026"],
    versions="0.6.0",
    catches=["vision.sizes.answered"],
    **AREA,
)


def _together() -> dict[str, Callable[..., Any]]:
    inside: list[int] = []

    def long(body: Any) -> bool:
        return sees(body) and body.get("max_tokens") == LONG

    def came(body: Any, path: str) -> Any:
        if path == CHAT and long(body):
            inside.append(1)
        return body

    def left(reply: Reply, exchange: Exchange) -> Reply:
        if not long(exchange.body):
            return reply
        crowded = len(inside) > 1
        inside.pop()
        return _failure() if crowded else reply

    return {"body": came, "reply": only(HERE, left)}


add(
    "vision.two-at-once-break",
    "While one picture is answered another one ends in a server error.",
    _together(),
    faults=["ROBUST-031"],
    versions="0.20, Qwen3.5-4B",
    catches=["vision.together.answered"],
    **AREA,
)


def _again(spoil: Callable[..., Any]) -> Callable[..., Any]:
    """What is done to the answers of a request with pictures that was sent before."""

    def make() -> Callable[..., Any]:
        asked: set[str] = set()

        def seen(value: Any, exchange: Exchange) -> Any:
            """The same request was there before."""
            told = json.dumps(exchange.body, sort_keys=True)
            if not sees(exchange.body) or told not in asked:
                asked.add(told)
                return value
            return spoil(value)

        return seen

    return only(HERE, remembering(make))


def _cheaper(body: Json) -> Json:
    body["usage"]["prompt_tokens"] -= 1
    body["usage"]["total_tokens"] -= 1
    return body


add(
    "vision.second-time-fails",
    "The second of two equal requests with a picture fails: its picture has no placeholders.",
    {"reply": _again(lambda _: _failure("attempted to assign 64 image tokens to 0 placeholders")), **LIVE},
    faults=["ROBUST-034"],
    versions="0.5",
    catches=["vision.again.answered"],
    **AREA,
)
add(
    "vision.second-time-cheaper",
    "A picture that is cached has fewer prompt tokens than the first time.",
    {"json": _again(_cheaper), **LIVE},
    catches=["vision.again.same-usage"],
    **AREA,
)


def _uncounted(asked: Callable[[Picture], bool]) -> Callable[..., list[int]]:
    def stripped(prompt: list[int], body: Json) -> list[int]:
        if not any(asked(one) for one in shown(body)):
            return prompt
        tokens = load()
        break_, marks = tokens.encode("\n"), [tokens.special_ids[mark] for mark in (START, PAD, END)]
        begin, end = prompt.index(marks[0]), len(prompt) - prompt[::-1].index(marks[2])
        begin -= prompt[begin - 1 : begin] == break_
        return prompt[:begin] + prompt[end + (prompt[end : end + 1] == break_) :]

    return stripped


add(
    "vision.pictures-free",
    "A picture has no prompt tokens.",
    {"prompt": _uncounted(lambda one: one.width == SIDE)},
    catches=["vision.usage.counted"],
    **AREA,
)
add(
    "vision.great-pictures-free",
    "A picture of more than 300 pixels across has no prompt tokens.",
    {"prompt": _uncounted(lambda one: one.width > 300 and one.height > 300)},
    catches=["vision.usage.sizes"],
    **AREA,
)


def _streamed(events: list[Event], exchange: Exchange) -> list[Event]:
    for event in events if sees(exchange.body) else ():
        if isinstance(event.data, dict) and event.data.get("usage"):
            _cheaper(event.data)
    return events


add(
    "vision.streams-cheaper",
    "Streamed, a picture has fewer prompt tokens.",
    {"events": only(HERE, _streamed)},
    catches=["vision.stream.same-usage"],
    **AREA,
)


def _unseen(turn: Turn, body: Json) -> Turn:
    del body
    turn.colours = []
    return turn


add(
    "vision.pictures-dropped",
    "The chat template leaves pictures out: the model never sees them, and nobody says so.",
    {"prompt": _uncounted(lambda _: True), "turn": _unseen},
    catches=["vision.colours.named", "vision.usage.counted", "vision.usage.sizes"],
    **AREA,
)


def _first_seen() -> Callable[..., Turn]:
    seen: dict[str, list[str]] = {}

    def taken(turn: Turn, body: Json) -> Turn:
        """The key of what is cached holds the words and the picture's size."""
        found = shown(body)
        if found:
            key = f"{turn.asked} {found[0].width} {found[0].height}"
            turn.colours = seen.setdefault(key, list(turn.colours))
        return turn

    return taken


add(
    "vision.cached-for-another",
    "A picture of the same size under the same words is taken for the one that is cached.",
    {"turn": remembering(_first_seen)},
    faults=["vllm-project/vllm#20261", "waybarrios/vllm-mlx#718"],
    catches=["vision.mixed-up.cached", "vision.mixed-up.colours"],
    **AREA,
)

_NEXT = {"red": "green", "green": "blue", "blue": "yellow", "yellow": "red"}


def _of_another(turn: Turn, body: Json) -> Turn:
    del body
    turn.colours = [_NEXT.get(one, one) for one in turn.colours]
    return turn


add(
    "vision.of-another-request",
    "Each picture is answered with the colour of another request's.",
    {"turn": _of_another},
    catches=["vision.mixed-up.swapped"],
    **AREA,
)


def _poisoned() -> Callable[..., Reply]:
    refused: set[str] = set()

    def rewritten(reply: Reply, exchange: Exchange) -> Reply:
        """What was prepared for a request that is refused is believed to be in the engine."""
        asked = exchange.body.get("messages") if isinstance(exchange.body, dict) else None
        urls = {str(url_of(part)) for part in pictures(asked)}
        if urls and reply.status == 400 and b"context" in reply.body:
            refused.update(urls)
            return reply
        return _failure("Expected a cached item for mm_hash") if urls & refused else reply

    return rewritten


add(
    "vision.refused-poisons",
    "A picture of a request that was too long ends in server errors ever after.",
    {"reply": only(HERE, remembering(_poisoned)), **LIVE},
    faults=["vllm-project/vllm#43941", "vllm-project/vllm#46354"],
    catches=["vision.alive"],
    **AREA,
)


_fails(
    "vision.two-pictures-break",
    "Two pictures in one request end in a server error.",
    lambda body: len(shown(body)) > 1,
    faults=["vllm-project/vllm#28525"],
    catches=["vision.several.answered"],
)


def _counted() -> dict[str, Callable[..., Any]]:
    told: set[str] = set()

    def asked(value: Any, request: Any) -> Any:
        if request.path == "/tokenize":
            told.update(_DATA.findall(request.body))
        return value

    def rewritten(reply: Reply, exchange: Exchange) -> Reply:
        sent = json.dumps(exchange.body).encode() if sees(exchange.body) else b""
        return _failure("Expected a cached item") if told & set(_DATA.findall(sent)) else reply

    return {"route": asked, "reply": only(HERE, rewritten)}


_DATA = re.compile(rb"base64,([A-Za-z0-9+/=]+)")
add(
    "vision.counted-breaks",
    "A picture whose tokens were asked for ends in a server error.",
    _counted(),
    faults=["vllm-project/vllm#38543"],
    catches=["vision.alive"],
    **AREA,
)


def _turned() -> Callable[..., Any]:
    first: dict[tuple[bytes, ...], Any] = {}

    def answered(body: Any, exchange: Exchange) -> Any:
        sent = _DATA.findall(json.dumps(exchange.body).encode()) if sees(exchange.body) else []
        if len(sent) > 1 and isinstance(body, dict) and "choices" in body:
            body["choices"] = first.setdefault(tuple(sorted(sent)), body["choices"])
        return body

    return answered


add(
    "vision.order-ignored",
    "Two pictures in the other order are answered as in the first one.",
    {"json": only(HERE, remembering(_turned)), **LIVE},
    faults=["vllm-project/vllm#36708"],
    catches=["vision.mixed-up.order"],
    **AREA,
)
