"""What is answered, and to what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.errors import encode

if TYPE_CHECKING:
    from pytest_vllm.sim.settings import Settings

JSON = ("content-type", "application/json")
HANG = "hang"


@dataclass
class Reply:
    """A whole answer."""

    status: int = 200
    body: bytes = b""
    headers: list[tuple[str, str]] = field(default_factory=list)

    @classmethod
    def json(cls, value: Any, status: int = 200) -> Reply:
        """A JSON answer."""
        return cls(status, encode(value), [JSON])


@dataclass
class Exchange:
    """What a defect may know of the request that it spoils the answer of."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    settings: Settings | None = None

    @property
    def streams(self) -> bool:
        """Whether a stream was asked for."""
        return isinstance(self.body, dict) and bool(self.body.get("stream"))
