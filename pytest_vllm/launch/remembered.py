"""What was found out about a line, while one log is read: several readers ask the same of it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

#: More than a digest of a log has lines.
_MOST = 1 << 15
_forget: list[Callable[[], None]] = []
_Asked = TypeVar("_Asked", bound="Callable[..., Any]")


def remembered(asked: _Asked) -> _Asked:
    """A function of a line that answers the same line once only, until `forget`."""
    kept: Any = lru_cache(maxsize=_MOST)(asked)
    _forget.append(kept.cache_clear)
    return kept  # type: ignore[no-any-return]


def forget() -> None:
    """Let go of the lines of a log that was read."""
    for clear in _forget:
        clear()
