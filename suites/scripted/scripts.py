"""From a case to a script, the text that says it, and the request that makes a server say that text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytest_vllm import Call, Script, Writer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm import Case, Request, Server

    from .answers import Said

from .answers import against
from .tools import offered

#: What every scripted model thinks first, where its parser reads thoughts.
THOUGHT = "Let me look."
ASKED = "Go on."


def script_of(server: Server, case: Case) -> Script:
    """What a case says. Without a reasoning parser there is no reasoning in it."""
    thinking = case.get("thinking", THOUGHT) if server.args.get("reasoning-parser") else None
    calls = tuple(Call(one["name"], one["arguments"]) for one in case.get("calls", ()))
    return Script(thinking, case.get("content", ""), calls, case.get("after", ""))


def spoken(server: Server, content: str = "", *calls: Call, thinking: str | None = THOUGHT) -> Script:
    """A script that no case declares."""
    script = Script(thinking, content, calls)
    return script if server.args.get("reasoning-parser") else replace(script, thinking=None)


def text_of(server: Server, script: Script) -> str:
    """The script as a model of the server's parsers writes it."""
    return Writer.of(server.args).write(script)


def pieces_of(server: Server, text: str) -> list[str]:
    """The same in the smallest tokens that there are."""
    return Writer.of(server.args).pieces(text)


def faults(server: Server, script: Script, found: Said) -> list[str]:
    """How an answer differs from its script; see `answers.against`."""
    return against(found, script, opening_of(server))


def opening_of(server: Server) -> str:
    """What a model of the server's parser writes before its reasoning."""
    return markup_of_thoughts(server)[0]


def markup_of_thoughts(server: Server) -> tuple[str, str]:
    """What a model of the server's parser writes before and after its reasoning."""
    return Writer.of(server.args).around


def tokens_in(server: Server, pieces: Sequence[str]) -> int:
    """How many tokens such pieces are, without the one that ends the answer."""
    writer = Writer.of(server.args)
    markers = {*writer.markers, *writer.special}
    return sum(1 if piece in markers else len(piece.encode()) for piece in pieces)


def say(
    server: Server,
    text: str | Sequence[str],
    *,
    streams: bool = False,
    messages: Any = ASKED,
    expect: int | None = 200,
    **more: Any,
) -> Request:
    """A chat request whose answer is this text, token by token where it is a list."""
    body: dict[str, Any] = {"tools": offered(), "vllm_xargs": scripted(text), **more}
    if streams:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return server.chat(messages, expect=expect, **body)


def scripted(text: str | Sequence[str]) -> dict[str, Any]:
    """The field that carries a script."""
    return {"script": text if isinstance(text, str) else list(text)}
