"""A clock that is moved by hand and a server that follows a script."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from pytest_vllm.launch.protocol import Exit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass
class HandClock:
    """Time passes only by waiting; what is due then happens."""

    time: float = 1000.0
    due: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    slept: int = 0

    def now(self) -> float:
        """Seconds."""
        return self.time

    def sleep(self, seconds: float) -> None:
        """Jump."""
        self.time += seconds
        self.slept += 1
        for at, happen in [one for one in self.due if one[0] <= self.time]:
            self.due.remove((at, happen))
            happen()

    def at(self, second: float, happen: Callable[[], None]) -> None:
        """Let something happen this many seconds from now."""
        self.due.append((self.time + second, happen))


@dataclass
class ScriptedServer:
    """A handle whose server does what a test says."""

    lines: list[str] = field(default_factory=list)
    url: str | None = "http://127.0.0.1:1"
    ended: Exit | None = None
    healthy: bool = False
    has_logs: bool = True
    description: str = "container pytest-vllm-7c1e started"
    failure: Exception | None = None

    def alive(self) -> bool:
        """Until it ended."""
        return self.ended is None and self.failure is None

    def logs(self, after: int = 0) -> list[str]:
        """What was said."""
        return self.lines[after:]

    def exit(self) -> Exit | None:
        """How it ended."""
        return self.ended

    def facts(self) -> Mapping[str, Any]:
        """None."""
        return {}

    def stop(self) -> None:
        """End it."""
        self.ended = self.ended or Exit(0)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop."""
        self.stop()

    def say(self, line: str) -> Callable[[], None]:
        """An event that logs a line."""
        return lambda: self.lines.append(line)

    def die(self, ended: Exit) -> Callable[[], None]:
        """An event that ends it."""

        def happen() -> None:
            self.ended = ended

        return happen

    def get_well(self) -> None:
        """An event: it answers from now on."""
        self.healthy = True
