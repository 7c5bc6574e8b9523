"""Defects of what answers list for their tokens, and of where they end, in any request of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.choose import in_choices
from pytest_vllm.sim.defects.edit import choices, set_text, text_of
from pytest_vllm.sim.defects.make import ignores
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, only, remembering

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

BOTH = (CHAT, COMPLETIONS)
#: From so many candidates on one is missing.
MANY = 4

ignores(
    "oracle.ends-anyway",
    "Chats end by themselves, although their requests say that they must not.",
    ["ignore_eos"],
    (CHAT,),
    area="chat",
    catches=["chat.max-tokens.exact", "oracle.end.allowed"],
)


def _stop_stays() -> Callable[..., Any]:
    """The stop strings of a request hold for the next one too, as where a lane's state is not cleared."""
    left: list[Any] = []

    def kept(body: Any, path: str) -> Any:
        del path
        if not isinstance(body, dict):
            return body
        mine = body.get("stop")
        before = left.pop() if left else None
        if mine:
            left.append(mine)
        return {**body, "stop": before} if before and not mine else body

    return kept


add(
    "oracle.stop-stays",
    "The stop strings of a request hold for the next one too.",
    {"body": only(BOTH, remembering(_stop_stays))},
    catches=["cache.stopped.same-answer", "oracle.end.allowed"],
)


@defect(
    "oracle.candidates-fewer",
    on="events",
    paths=(CHAT,),
    catches=["oracle.listed.candidates"],
)
def candidates_fewer(events: list[Event], exchange: Exchange) -> list[Event]:
    """Streamed tokens have a candidate less than was asked for, where several were."""
    del exchange
    for _, choice in choices(events):
        for entry in (choice.get("logprobs") or {}).get("content") or ():
            if len(entry["top_logprobs"]) >= MANY:
                entry["top_logprobs"].pop()
    return events


def _piled_up(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    found = choice.get("logprobs") or {}
    before = ""
    for at, token in enumerate(found.get("tokens") or () if asked.get("echo") else ()):
        if token.strip("\n"):
            found["tokens"][at] = before + token
        else:
            before += token


in_choices(
    "oracle.line-ends-pile-up",
    "Each token of an echoed prompt begins with all line ends before it.",
    (COMPLETIONS,),
    _piled_up,
    area="logprobs",
    catches=["logprobs.prompt.named", "oracle.listed.joined"],
)


def _begun(choice: dict[str, Any], asked: dict[str, Any]) -> None:
    last = (asked.get("messages") or [{}])[-1].get("content")
    if asked.get("continue_final_message") and not asked.get("echo") and isinstance(last, str):
        set_text(choice, last + text_of(choice))


in_choices(
    "oracle.begun-repeated",
    "An answer that goes on with a message repeats it, although no echo was asked for.",
    (CHAT,),
    _begun,
    catches=["oracle.listed.joined"],
)


def _least_forgotten(body: Any, path: str) -> Any:
    del path
    both = isinstance(body, dict) and body.get("stop") and body.get("min_tokens")
    return {name: value for name, value in body.items() if name != "min_tokens"} if both else body


add(
    "oracle.stops-early",
    "A stop string ends an answer that must be longer.",
    {"body": only(BOTH, _least_forgotten)},
    catches=["oracle.end.allowed", "completions.min-tokens"],
)


def _own_id(events: list[Event], exchange: Exchange) -> list[Event]:
    for event in events if exchange.headers.get("x-request-id") else ():
        if isinstance(event.data, dict) and "id" in event.data:
            event.data["id"] = "chatcmpl-9d1f6c0a7b2e4835"
    return events


add(
    "oracle.id-of-streams",
    "A stream has an id of the server's own, although the request brought one.",
    {"events": only((CHAT,), _own_id)},
    catches=["oracle.events.asked-id"],
)


def _drawn_after_all(body: Any, path: str) -> Any:
    del path
    narrow = isinstance(body, dict) and body.get("temperature") == 0 and (body.get("top_p") or 1) < 1
    return {**body, "temperature": 1.0} if narrow else body


add(
    "oracle.greedy-narrowed",
    "A greedy request that narrows a draw, too, is drawn.",
    {"body": only(BOTH, _drawn_after_all)},
    catches=["oracle.same.text"],
)
