"""Whether a server answers that it is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.wire.ask import ask
from pytest_vllm.wire.policy import route_to

if TYPE_CHECKING:
    from pytest_vllm.wire.policy import Access

_ANSWER = 1.0


class Health:
    """Asks `/health`; where that is hidden, or wants a key, for the models instead.

    Models that are refused for want of a key are an answer: the probe asks with the key, and names it.
    """

    def __init__(self, access: Access | None = None) -> None:
        """Nothing is asked yet."""
        self._access = access

    def __call__(self, url: str) -> bool:
        """Whether the server at this URL is ready."""
        try:
            route = route_to(url, self._access)
            status = ask(route, "/health", timeout=_ANSWER).status
            if status in (400, 401, 403, 404, 405):
                return ask(route, "/v1/models", timeout=_ANSWER).status < 404
        except OSError:
            return False
        return status == 200
