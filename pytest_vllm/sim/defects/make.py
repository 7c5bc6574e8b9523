"""Defects that many faults share, as one line each.

Each function declares a defect: a name, what to spoil, and the facts of `registry.defect`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.edit import change
from pytest_vllm.sim.defects.registry import Defect, add
from pytest_vllm.sim.defects.scope import only

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange, Reply

MISSING = object()


def spoil(
    name: str, summary: str, paths: Sequence[str], path: str, value: Any = MISSING, **facts: Any
) -> Defect:
    """A key of whole answers is another, or missing when no value is given.

    `path` is dotted, `*` is every member of a list: `choices.*.finish_reason`. A function as value gets the
    healthy one and gives the wrong one.
    """

    def spoiled(body: Any, exchange: Exchange) -> Any:
        del exchange
        change(body, path, value, MISSING)
        return body

    return add(name, summary, {"json": only(paths, spoiled)}, **facts)


def spoil_events(
    name: str, summary: str, paths: Sequence[str], path: str, value: Any = MISSING, **facts: Any
) -> Defect:
    """The same for every event of streams."""

    def spoiled(events: list[Event], exchange: Exchange) -> list[Event]:
        del exchange
        for event in events:
            if isinstance(event.data, dict):
                change(event.data, path, value, MISSING)
        return events

    return add(name, summary, {"events": only(paths, spoiled)}, **facts)


def without_events(
    name: str, summary: str, paths: Sequence[str], unwanted: Callable[[Event], bool], **facts: Any
) -> Defect:
    """Some events of streams are missing."""

    def thinned(events: list[Event], exchange: Exchange) -> list[Event]:
        del exchange
        return [event for event in events if not unwanted(event)]

    return add(name, summary, {"events": only(paths, thinned)}, **facts)


def ignores(
    name: str, summary: str, fields: Sequence[str], paths: Sequence[str] = ("/",), **facts: Any
) -> Defect:
    """Fields of requests are ignored, as if they had not been sent."""

    def ignoring(body: Any, path: str) -> Any:
        del path
        return (
            {key: value for key, value in body.items() if key not in fields}
            if isinstance(body, dict)
            else body
        )

    return add(name, summary, {"body": only(paths, ignoring)}, **facts)


def answers(
    name: str, summary: str, paths: Sequence[str], status: int, body: bytes = b"", **facts: Any
) -> Defect:
    """Requests to some paths are answered at once with a status and a body."""
    from pytest_vllm.sim.api.reply import JSON, Reply  # noqa: PLC0415 - defects are read before the server is

    def answering(value: Any, request: Any) -> Any:
        del value, request
        return Reply(status, body, [JSON] if body.startswith(b"{") else [])

    return add(name, summary, {"route": only(paths, answering)}, **facts)


def header(
    name: str, summary: str, paths: Sequence[str], key: str, value: str | None, **facts: Any
) -> Defect:
    """A response header has another value, or is missing when that is None; streams too."""

    def spoiled(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
        kept = [pair for pair in headers if pair[0].lower() != key.lower()]
        return kept if value is None else [*kept, (key, value)]

    def whole(reply: Reply, exchange: Exchange) -> Reply:
        del exchange
        reply.headers = spoiled(reply.headers)
        return reply

    def stream(head: tuple[int, list[tuple[str, str]]], exchange: Exchange) -> Any:
        del exchange
        return head[0], spoiled(head[1])

    return add(name, summary, {"reply": only(paths, whole), "head": only(paths, stream)}, **facts)


def metric(
    name: str, summary: str, family: str, value: Callable[[float], float] | None, **facts: Any
) -> Defect:
    """Samples of a metric family have other values, or the whole family is missing when `value` is None.

    `family` is a pattern for the sample's full name without labels.
    """
    line = re.compile(rf"^({family})(\{{[^}}]*\}})? (\S+)$", re.MULTILINE)
    comment = re.compile(rf"^# (?:HELP|TYPE) (?:{family})(?: .*)?\n", re.MULTILINE)

    def spoiled(text: str, engine: Any) -> str:
        del engine
        if value is None:
            return comment.sub("", re.sub(line.pattern + "\n", "", text, flags=re.MULTILINE))
        return line.sub(lambda found: f"{found[1]}{found[2] or ''} {value(float(found[3]))}", text)

    return add(name, summary, {"metrics": spoiled}, **facts)


def slower(name: str, summary: str, factor: float, **facts: Any) -> Defect:
    """Every engine step takes `factor` times as long."""

    def slowed(seconds: float, engine: Any) -> float:
        del engine
        return seconds * factor

    return add(name, summary, {"step": slowed}, **facts)


def logs(name: str, summary: str, line: str, **facts: Any) -> Defect:
    """A line more in the start-up log, after the one that names the KV cache size."""

    def more(lines: list[str], deployment: Any) -> list[str]:
        del deployment
        return [*lines, line] if any("KV cache size" in text for text in lines) else lines

    return add(name, summary, {"log": more}, **facts)
