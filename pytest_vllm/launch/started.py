"""What all handles share: a log, `with`, and the error of a start that failed later on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pytest_vllm.launch.loglines import LogLines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_vllm.launch.protocol import BootError, LaunchContext

#: Seconds a server gets to end by itself before it is killed.
GRACE = 10.0


class StartedServer:
    """The common part of handles.

    Attributes:
        has_logs: whether log lines can ever come; a server that has none never stalls.
        failure: why a start that went on in the background failed; waiting raises it.
    """

    has_logs = True
    failure: BootError | None = None

    def __init__(self, context: LaunchContext, secrets: Iterable[str] = ()) -> None:
        """Nothing is started yet."""
        self.context = context
        self.lines = LogLines(secrets)
        self.was_ready = False

    def logs(self, after: int = 0) -> list[str]:
        """Log lines from line number `after` on; still readable once stopped."""
        return [line for _, line in self.lines.since(after)]

    def became_ready(self) -> None:
        """The server answered: from now on it may be in the middle of something when it is stopped."""
        self.was_ready = True

    @property
    def grace(self) -> float:
        """Seconds that it gets to end by itself; none while it starts, where it has nothing to finish."""
        return GRACE if self.was_ready else 0.0

    def free_memory(self) -> int | None:
        """Unknown here: the machine is to be asked."""
        return None

    def stop(self) -> None:
        """End everything that was started. Idempotent, safe at any moment."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        """The handle itself."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop, unless the run keeps its servers."""
        if not self.context.keep:
            self.stop()
