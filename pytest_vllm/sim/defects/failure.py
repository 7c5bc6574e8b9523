"""How a start ends that does not succeed."""

from __future__ import annotations


class BootFailure(Exception):  # noqa: N818 - it is how vLLM ends, not an error of ours
    """The server does not come up: what it prints, and the exit status."""

    def __init__(self, lines: list[str], status: int = 1) -> None:
        """Keep both."""
        super().__init__(lines[-1])
        self.lines, self.status = lines, status
