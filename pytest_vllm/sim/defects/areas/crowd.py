"""Defects of requests beside unlike ones: what one asks for is lost while another is drawn at random."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.edit import choices, set_text, text_of
from pytest_vllm.sim.defects.registry import add
from pytest_vllm.sim.defects.scope import CHAT, COMPLETIONS, remembering

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pytest_vllm.sim.api.events import Event
    from pytest_vllm.sim.api.reply import Exchange

    Change = Callable[[dict[str, Any]], None]

BOTH = (CHAT, COMPLETIONS)
#: Temperature from which on a request is hot, and seconds for which it counts as running.
HOT, BESIDE = 1.5, 0.3


def _hot(body: Any) -> bool:
    """Whether nothing keeps a request from unlikely tokens."""
    found = body.get("temperature") if isinstance(body, dict) else None
    return isinstance(found, int | float) and found >= HOT and not body.get("top_k") and not body.get("min_p")


def _forgets(fields: Sequence[str]) -> Callable[[], Callable[..., Any]]:
    """Requests beside a hot one lose these fields."""

    def make() -> Callable[..., Any]:
        seen = [-BESIDE]

        def changed(body: Any, path: str) -> Any:
            if _hot(body):
                seen[0] = time.monotonic()
            elif isinstance(body, dict) and path in BOTH and time.monotonic() - seen[0] < BESIDE:
                return {name: value for name, value in body.items() if name not in fields}
            return body

        return changed

    return make


def _beside(change: Change, when: Callable[[dict[str, Any]], object]) -> dict[str, Callable[..., Any]]:
    """Answers to some requests that came beside a hot one are changed, choice by choice."""
    seen = [-BESIDE]

    def noted(body: Any, path: str) -> Any:
        del path
        if _hot(body):
            seen[0] = time.monotonic()
        return body

    def whole(body: Any, exchange: Exchange) -> Any:
        asked = exchange.body if isinstance(exchange.body, dict) else {}
        if exchange.path in BOTH and time.monotonic() - seen[0] < BESIDE and not _hot(asked) and when(asked):
            for choice in (body.get("choices") or ()) if isinstance(body, dict) else ():
                change(choice)
        return body

    def stream(events: list[Event], exchange: Exchange) -> list[Event]:
        asked = exchange.body if isinstance(exchange.body, dict) else {}
        if exchange.path in BOTH and time.monotonic() - seen[0] < BESIDE and not _hot(asked) and when(asked):
            for _, choice in choices(events):
                change(choice)
        return events

    return {"body": noted, "json": whole, "events": stream}


def _lost(name: str, fields: Sequence[str], check: str, summary: str) -> None:
    add(f"crowd.{name}", summary, {"body": remembering(_forgets(fields))}, catches=[check])


_lost(
    "bias-lost",
    ["logit_bias"],
    "crowd.masks",
    "A bias is forgotten beside a request that is drawn at random.",
)
_lost(
    "stop-ids-lost",
    ["stop_token_ids"],
    "crowd.ends",
    "Tokens that stop an answer are forgotten beside a request that is drawn at random.",
)
_lost(
    "penalty-lost",
    ["frequency_penalty", "repetition_penalty", "presence_penalty"],
    "crowd.penalties",
    "Penalties are forgotten beside a request that is drawn at random.",
)
_lost("seed-lost", ["seed"], "crowd.seeds", "A seed is forgotten beside a request that is drawn at random.")


_lost(
    "form-lost",
    ["structured_outputs"],
    "crowd.forms",
    "A constraint is forgotten beside a request that is drawn at random.",
)


def _narrow(asked: dict[str, Any]) -> bool:
    return asked.get("top_k") == 1 or asked.get("min_p") == 1.0


def _scored(asked: dict[str, Any]) -> bool:
    return bool(asked.get("logprobs")) and not _narrow(asked) and not asked.get("allowed_token_ids")


def _unlikely(choice: dict[str, Any]) -> None:
    for top in (choice.get("logprobs") or {}).get("top_logprobs") or ():
        if len(top) > 1:
            top[list(top)[-1]] = 0.0


def _other(choice: dict[str, Any]) -> None:
    set_text(choice, text_of(choice)[::-1])


def _less(choice: dict[str, Any]) -> None:
    told = choice.get("logprobs") or {}
    for top in told.get("top_logprobs") or ():
        for name in top or ():
            top[name] -= 0.7
    told |= {
        "token_logprobs": [None if one is None else one - 0.7 for one in told.get("token_logprobs") or ()]
    }


def _fewer(choice: dict[str, Any]) -> None:
    for top in (choice.get("logprobs") or {}).get("top_logprobs") or ():
        while top and len(top) > 1:
            del top[list(top)[-1]]


for _name, _summary, _change, _when, _check in (
    ("unlikely", "What is narrowed to one token is drawn as if it were not.", _unlikely, _narrow, "narrowed"),
    ("reversed", "The text of a scored answer comes backwards.", _other, _scored, "answers"),
    ("scores-less", "Log probabilities are less than alone.", _less, _scored, "scores"),
    ("fewer-candidates", "Fewer candidates come than were asked for.", _fewer, _scored, "reports"),
):
    add(
        f"crowd.{_name}",
        f"{_summary[:-1]}, beside a request that is drawn at random.",
        _beside(_change, _when),
        catches=[f"crowd.{_check}"],
    )


def _each_its_own(body: Any, path: str) -> Any:
    several = isinstance(body, dict) and path in BOTH and (body.get("n") or 1) == 2
    return {name: value for name, value in body.items() if name != "min_tokens"} if several else body


add(
    "crowd.least-of-several",
    "The least number of tokens is forgotten where several choices are drawn.",
    {"body": _each_its_own},
    catches=["crowd.alone"],
)
