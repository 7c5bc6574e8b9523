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


def remembering(make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """The function that `make` gives, made anew for every server: what it remembers is its own."""
    function = make()

    @wraps(function)
    def first(*passed: Any) -> Any:
        return function(*passed)

    first.fresh = make  # type: ignore[attr-defined]
    return first


def live(seconds: float, settings: Any) -> float:
    """Nothing, as `ready`: what remembers earlier requests can't be applied to recordings one by one."""
    del settings
    return seconds


def fresh(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as it was before anything was asked of it."""
    make = getattr(function, "fresh", None)
    made: Callable[..., Any] = make() if make else function
    return made


def only(paths: Sequence[str], function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, for exchanges whose path begins with one of `paths`; others pass unchanged."""

    def make() -> Callable[..., Any]:
        inner = fresh(function)

        @wraps(function)
        def limited(value: Any, exchange: Any, *more: Any) -> Any:
            path = exchange if isinstance(exchange, str) else exchange.path
            return inner(value, exchange, *more) if path.startswith(tuple(paths)) else value

        return limited

    scoped = remembering(make)
    scoped.paths = tuple(paths)  # type: ignore[attr-defined]
    return scoped


def acts_on(function: Callable[..., Any], path: str) -> bool:
    """Whether a function may change what is answered under a path: not where `only` keeps it from that."""
    paths = getattr(function, "paths", None)
    return paths is None or path.startswith(paths)


def after(number: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, once it was asked more than `number` times; until then values pass unchanged."""
    return _when(lambda asked: asked > number, function)


def first(number: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function the first `number` times it is asked; after that values pass unchanged."""
    return _when(lambda asked: asked <= number, function)


def every(number: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function each `number`-th time; in between values pass unchanged."""
    return _when(lambda asked: asked % number == 0, function)


def _when(due: Callable[[int], bool], function: Callable[..., Any]) -> Callable[..., Any]:
    def make() -> Callable[..., Any]:
        asked, inner = count(1), fresh(function)

        @wraps(function)
        def sometimes(value: Any, *context: Any) -> Any:
            return inner(value, *context) if due(next(asked)) else value

        return sometimes

    return remembering(make)
