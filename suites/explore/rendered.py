"""A conversation is answered as its rendered prompt is gone on with: chat and completions are one engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm import Fault

from ..oracle.answers import CHAT, answer_of  # noqa: TID252 - suites lie together
from ..oracle.sameness import greedy  # noqa: TID252 - suites lie together
from ..oracle.ties import excuse  # noqa: TID252 - suites lie together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_vllm import Recording, Request, Server

RENDERED, COUNT = "rendered", "oracle.count["
#: What a chat request may ask and a completion asks alike.
SHARED = ("max_tokens", "ignore_eos", "min_tokens", "stop", "seed", "top_p", "top_k")
OWN = {"model", "messages", "temperature", *SHARED}
#: Arguments of a server that reads an answer before it gives it out.
READING = ("reasoning-parser", "tool-call-parser")


def rendering(server: Server, recorded: Sequence[Recording]) -> dict[str, Request]:
    """The completion of the prompt that a plain chat was rendered to, once its tokens are known."""
    by_name = {one.key: one for one in recorded}
    whole = by_name.get("whole")
    if whole is None or f"{RENDERED}[0]" in by_name or not (answer_of(whole) and _plain(whole, server)):
        return {}
    tokens = _tokens(whole, recorded)
    body = whole.request.json
    kept = {name: body[name] for name in SHARED if name in body}
    if not tokens:
        return {}
    return {f"{RENDERED}[0]": server.completion(tokens, **kept, logprobs=5, expect=None)}


def rendered_differently(recorded: Sequence[Recording]) -> list[Fault]:
    """What the two answers differ in, unless a near-tie may be the reason."""
    by_name = {one.key: one for one in recorded}
    one, other = by_name.get("whole"), by_name.get(f"{RENDERED}[0]")
    said, gone_on = (answer_of(each) if each else None for each in (one, other))
    if not said or not gone_on or len(said.choices) != 1 or len(gone_on.choices) != 1:
        return []
    mine, theirs = said.choices[0], gone_on.choices[0]
    if mine.text == theirs.text or excuse([theirs], mine, theirs):
        return []
    words = f"chat answers {mine.text[:80]!r}, its rendered prompt goes on with {theirs.text[:80]!r}"
    return [Fault("rendered.same", words)]


def _plain(whole: Recording, server: Server) -> bool:
    body = whole.request.json
    return (
        whole.request.path == CHAT
        and set(body) <= OWN
        and greedy(body)
        and server.can("completions")
        and not any(server.args.get(name) for name in READING)
        and server.kind.starts
    )


def _tokens(whole: Recording, recorded: Sequence[Recording]) -> list[int]:
    """The prompt's tokens, as `/tokenize` was asked about the same messages."""
    for one in recorded:
        asked: Any = one.request.json
        counts = one.key.startswith(COUNT) and one.status == 200 and isinstance(asked, dict)
        if counts and asked.get("messages") == whole.request.json["messages"]:
            found = one.json.get("tokens") if isinstance(one.json, dict) else None
            return found if isinstance(found, list) else []
    return []
