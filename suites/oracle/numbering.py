"""How the calls, items and blocks of a stream are numbered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm import listed, observe, only_if

from .answers import CHAT, RESPONSES, answer_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm import Recording, Recordings

THREE = ["oracle.three[", "*"]
#: What is odd on purpose: how parsers read that has checks, and waivers, of its own.
EDGES = ("scripted.", "tools.marked", "tools.odd")
#: How events begin that belong to an item which is open.
INSIDE = ("response.content_part", "response.output_text", "response.reasoning_", "response.function_call")


def misnumbered(recordings: Recordings, path: str) -> str:
    """The streams of a route that do not number what they hold 0, 1, 2 …, each number for one of them."""
    read = [one for one in recordings.of("") if one.request.path == path and one.request.streams]
    plain = [one for one in read if answer_of(one) and not one.key.startswith(EDGES)]
    told = [(one.key, numbers) for one in plain for numbers in _numbers(one) if numbers]
    only_if(told, "no stream held a call, an item or a block")
    observe("of one stream, at most", max(len(numbers) for _, numbers in told))
    return listed(f"{key}: {numbers}" for key, numbers in told if numbers != list(range(len(numbers))))


def _numbers(one: Recording) -> Iterator[list[Any]]:
    """The numbers of what a stream holds, in the order in which they come, twice where one has two owners."""
    events = [event.json for event in one.events if not event.is_done]
    if one.request.path == CHAT:
        yield from _of_calls(events).values()
    elif one.request.path == RESPONSES:
        opened = [e for e in events if e.get("type") == "response.output_item.added"]
        begun = [e.get("output_index") for e in opened]
        inside = [e.get("output_index") for e in events if str(e.get("type")).startswith(INSIDE)]
        yield begun + [number for number in dict.fromkeys(inside) if number not in begun]
    else:
        starts = [e.get("index") for e in events if e.get("type") == "content_block_start"]
        pieces = [e.get("index") for e in events if e.get("type") == "content_block_delta"]
        yield starts + [number for number in dict.fromkeys(pieces) if number not in starts]


def _of_calls(events: list[dict[str, Any]]) -> dict[int, list[Any]]:
    """By choice: the numbers of its calls; one comes twice that two calls were given."""
    found: dict[int, list[Any]] = {}
    owners: dict[tuple[int, Any], Any] = {}
    for choice in (choice for event in events for choice in event.get("choices") or ()):
        for call in (choice.get("delta") or {}).get("tool_calls") or ():
            number, id_ = call.get("index"), call.get("id")
            numbers = found.setdefault(choice["index"], [])
            place = (choice["index"], number)
            if place not in owners or (id_ and owners[place] and id_ != owners[place]):
                numbers.append(number)
            owners[place] = id_ or owners.get(place)
    return found
