"""What answers tell of the cache, on every route that tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

DETAILS = ("prompt_tokens_details", "input_tokens_details")


def told(usage: dict[str, Any]) -> Iterator[int]:
    """Tokens that a usage says were cached."""
    counts: list[Any] = [(usage.get(name) or {}).get("cached_tokens") for name in DETAILS]
    counts.append(usage.get("cache_read_input_tokens"))
    yield from (count for count in counts if isinstance(count, int))


def way(path: str, streams: bool) -> str:
    """How a prompt was asked, for people."""
    return f"{path}, {'streamed' if streams else 'whole'}"
