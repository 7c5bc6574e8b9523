"""The points at which a defect can change what the simulator does.

Core code asks `hooks.run(point, value, *context)` and goes on with what comes back. A healthy server has no
hooks, so every point gives its value unchanged.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: Point: (the value that passes through and is returned, the context that comes with it).
POINTS = {
    "argv": ("the serve arguments, a list of words", ""),
    "again": ("the serve arguments of a server that is started once more, a list of words", ""),
    "stop": ("seconds to go on after the signal to end", "deployment"),
    "left": ("what stays when the server has ended: nothing, `memory` or a `worker`", "deployment"),
    "boot": ("None; raise BootFailure to end the start", "settings"),
    "ready": ("seconds to wait before serving", "settings"),
    "log": ("the log lines to print, a list", "deployment"),
    "route": ("None to go on, a Reply to answer at once, HANG to never answer", "request"),
    "body": ("the JSON body of a request, before validation", "path"),
    "prompt": ("prompt token ids", "body"),
    "turn": ("the Turn that the persona is asked", "body"),
    "answer": ("the persona's Answer", "turn"),
    "raw": ("the text as the model writes it, markers included", "turn"),
    "output": ("one choice's Output: tokens and visible pieces", "body"),
    "step": ("virtual seconds of an engine step", "engine"),
    "cache_hits": ("cached blocks that a request finds", "sequence"),
    "fetched": ("blocks that a request gets from a cache outside", "sequence"),
    "cancel": ("whether a client's departure is ignored", "sequence"),
    "freed": ("whether a finished sequence gives its blocks back", "sequence"),
    "finished": ("how many generations have ended", "server"),
    "json": ("the JSON body of a whole answer", "exchange"),
    "reply": ("the Reply of a whole answer: status, headers, body", "exchange"),
    "late": ("seconds of wall-clock time that a whole answer is held back", "exchange"),
    "head": ("(status, headers) of a stream", "exchange"),
    "events": ("the events of a stream, a list", "exchange"),
    "chunk": ("the bytes that go out for some events; None keeps them back", "exchange"),
    "forward": ("seconds of wall-clock time that the proxy holds a request back", "its bytes"),
    "back": ("the bytes that the proxy gives to the client; None keeps them back", ""),
    "close": ("how a stream ends: `end`, `cut` (the connection breaks) or `open` (it stays)", "exchange"),
    "metrics": ("the text of /metrics", "engine; None when a recording is rewritten"),
    "health": ("the status of /health", "engine"),
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
