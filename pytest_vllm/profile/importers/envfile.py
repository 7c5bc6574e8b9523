"""Env files, as docker compose, docker, podman and systemd read them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.marks import DOLLAR

if TYPE_CHECKING:
    from collections.abc import Iterator

_ENTRY = re.compile(r"(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*(?:([=:])[ \t]*(.*))?", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "$": DOLLAR}


def dotenv(text: str, first: int = 1) -> Iterator[tuple[str, str | None, int]]:
    """Name, value (None: passed on from outside) and line of each entry, as docker compose reads them.

    Quotes may span lines; between single ones nothing is replaced; a ` #` begins a comment outside of quotes.
    What is not an entry has an empty name and the line as its value.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    at = 0
    while at < len(lines):
        number, raw = first + at, lines[at].strip()
        at += 1
        if not raw or raw.startswith("#"):
            continue
        found = _ENTRY.fullmatch(raw)
        if found is None:
            yield "", raw, number
            continue
        name, sign, value = found[1], found[2], found[3] or ""
        quote = value[:1] if value[:1] in ("'", '"') else ""
        if quote and _closing(value, quote) < 0:
            ended = lines[number - first]
            value += ended[len(ended.rstrip()) :]  # between quotes the blanks at a line's end count
            while _closing(value, quote) < 0 and at < len(lines):
                value, at = f"{value}\n{lines[at]}", at + 1
        yield name, _value(value, quote) if sign else None, number


def plain(text: str, first: int = 1) -> Iterator[tuple[str, str | None, int]]:
    """The same as `docker run --env-file` reads it: quotes and comments behind a value are part of it."""
    for number, raw in enumerate(text.splitlines(), first):
        line = raw.lstrip()
        if not line.strip() or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        named = re.fullmatch(r"[^\s=]+", name.strip()) is not None
        yield (
            (name.strip(), value.replace("$", DOLLAR) if equals else None, number)
            if named
            else ("", line, number)
        )


def _closing(value: str, quote: str) -> int:
    """Where a quoted value ends, -1 where it does not."""
    at = 1
    while at < len(value):
        if value[at] == "\\" and quote == '"':
            at += 2
            continue
        if value[at] == quote:
            return at
        at += 1
    return -1


def _value(value: str, quote: str) -> str:
    end = _closing(value, quote) if quote else -1
    if end < 0:
        return re.sub(r"(?:^|\s+)#.*", "", value, flags=re.DOTALL).rstrip()
    inner = value[1:end]
    if quote == "'":
        return inner.replace("$", DOLLAR)
    return re.sub(r"\\(.)", lambda one: _ESCAPES.get(one[1], one[0]), inner, flags=re.DOTALL)
