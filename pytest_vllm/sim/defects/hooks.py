"""The points at which a defect can change what the simulator does.

Core code asks `hooks.run(point, value, *context)` and goes on with what comes back. A healthy server has no
hooks, so every point gives its value unchanged.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: Point: (the value that passes, the context behind it).
POINTS = {
    "argv": ("list of serve arguments", ""),
    "boot": ("None; may raise BootFailure or wait", "settings"),
    "log": ("list of log lines to print", "settings"),
    "route": ("None to go on; a Reply, or HANG, to answer at once", "request"),
    "body": ("the JSON body of a request, before validation", "path"),
    "prompt": ("prompt token ids", "body"),
    "answer": ("the persona's Answer", "turn"),
    "output": ("one choice's Output: tokens and text", "body"),
    "step": ("virtual seconds of an engine step", "engine"),
    "cache_hits": ("cached blocks a request finds", "sequence"),
    "cancel": ("whether a client's departure is ignored", "sequence"),
    "json": ("the JSON body of a whole answer", "exchange"),
    "events": ("the list of events of a stream", "exchange"),
    "reply": ("status, headers and body of a whole answer", "exchange"),
    "head": ("status and headers of a stream", "exchange"),
    "metrics": ("the text of /metrics", "engine"),
    "health": ("status of /health", "engine"),
    "finished": ("how many generations have ended; may end the process", "server"),
}


class Hooks:
    """Functions by point, called in the order in which they were added."""

    def __init__(self) -> None:
        """None yet."""
        self._functions: defaultdict[str, list[Callable[..., Any]]] = defaultdict(list)

    def add(self, point: str, function: Callable[..., Any]) -> None:
        """Hook a function in. Raises KeyError for a point that does not exist."""
        if point not in POINTS:
            raise KeyError(f"no hook point {point!r}: there are {', '.join(POINTS)}")
        self._functions[point].append(function)

    def has(self, point: str) -> bool:
        """Whether anything is hooked in there."""
        return point in self._functions

    def run(self, point: str, value: Any, *context: Any) -> Any:
        """Pass a value through the functions of a point."""
        functions = self._functions.get(point)
        if functions:
            for function in functions:
                value = function(value, *context)
        return value
