"""What can be asked of a server: the dimensions of a request, and the fields that its routes take."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts.surface import Field, fields

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Route -> the class of vLLM that reads its body.
BODIES = {
    "/v1/chat/completions": "ChatCompletionRequest",
    "/v1/completions": "CompletionRequest",
    "/v1/responses": "ResponsesRequest",
    "/v1/messages": "AnthropicMessagesRequest",
}


@dataclass(frozen=True)
class Dimension:
    """One thing in which requests differ.

    Args:
        name: as reports name it.
        title: the same in words.
        values: what is to be reached, for things that are no numbers.
        bounds: upper ends of the ranges to be reached, for numbers.
        pair: whether pairs with the values of other dimensions are counted.
    """

    name: str
    title: str
    values: tuple[str, ...] = ()
    bounds: tuple[int, ...] = ()
    pair: bool = False

    @property
    def counted(self) -> tuple[str, ...]:
        """What is to be reached: the values, or the ranges in words."""
        if not self.bounds:
            return self.values
        begins = [0, *(bound + 1 for bound in self.bounds[:-1])]
        ranges = [_range(begin, bound) for begin, bound in zip(begins, self.bounds, strict=True)]
        return (*ranges, f"over {self.bounds[-1]}")

    def place(self, value: float) -> str:
        """The range that a number falls into."""
        number = sum(value > bound for bound in self.bounds)
        return self.counted[number]


def _range(begin: int, end: int) -> str:
    return str(end) if begin == end else f"{begin} to {end}"


@cache
def dimensions() -> tuple[Dimension, ...]:
    """Every dimension, in the order of reports."""
    return tuple(
        Dimension(
            row["name"],
            row["title"],
            tuple(row.get("values", ())),
            tuple(row.get("bounds", ())),
            bool(row.get("pair")),
        )
        for row in _table()["dimension"]
    )


@cache
def unsent() -> Mapping[str, str]:
    """Fields that no exchange sends, on whatever route, and why."""
    return {row["field"]: row["reason"] for row in _table()["unsent"]}


def request_fields(route: str, version: str = "") -> Mapping[str, Field]:
    """The fields that a route takes in a version; none for a route whose body is not known."""
    return fields(BODIES[route], version) if route in BODIES else {}


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "reach.toml").read_text("utf-8"))
