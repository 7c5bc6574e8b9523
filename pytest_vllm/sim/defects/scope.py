"""Where and when a defect acts: on some paths, on streams, every so often, after some time."""

from __future__ import annotations

from functools import wraps
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"
MODELS = "/v1/models"


def only(paths: Sequence[str], function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, for exchanges whose path begins with one of `paths`; others pass unchanged."""

    @wraps(function)
    def limited(value: Any, exchange: Any, *more: Any) -> Any:
        path = exchange if isinstance(exchange, str) else exchange.path
        return function(value, exchange, *more) if path.startswith(tuple(paths)) else value

    return limited


def after(number: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, once it was asked more than `number` times; until then values pass unchanged."""
    asked = count(1)

    @wraps(function)
    def later(value: Any, *context: Any) -> Any:
        return function(value, *context) if next(asked) > number else value

    return later


def every(number: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function each `number`-th time; in between values pass unchanged."""
    asked = count(1)

    @wraps(function)
    def sometimes(value: Any, *context: Any) -> Any:
        return function(value, *context) if next(asked) % number == 0 else value

    return sometimes
