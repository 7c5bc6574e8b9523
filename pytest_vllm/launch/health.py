"""Whether a server answers that it is ready."""

from __future__ import annotations

from typing import Self

import httpx

from pytest_vllm.launch.attach import client_for

_ANSWER = 1.0


class Health:
    """Asks `/health`; a proxy that hides it is asked for the models instead."""

    def __init__(self) -> None:
        self._client: httpx.Client | None = None

    def __call__(self, url: str) -> bool:
        if self._client is None:
            self._client = client_for(url, _ANSWER)
        try:
            status = self._client.get(f"{url}/health").status_code
            if status in (404, 405):
                return self._client.get(f"{url}/v1/models").status_code < 404
        except httpx.HTTPError:
            return False
        return status == 200

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._client is not None:
            self._client.close()
