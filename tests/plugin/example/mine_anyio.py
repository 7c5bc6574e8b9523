"""Tests that anyio runs, in a loop that is not the one of pytest-asyncio's fixtures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import openai


@pytest.fixture
def anyio_backend() -> str:
    """The loop that anyio runs."""
    return "asyncio"


@pytest.mark.anyio
@pytest.mark.parametrize("turn", [1, 2])
async def test_under_anyio(vllm_async_client: openai.AsyncOpenAI, turn: int) -> None:
    assert (await vllm_async_client.models.list()).data, f"in turn {turn}"
