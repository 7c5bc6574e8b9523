"""Ordinary tests: plain, in a class, asynchronous, over two servers, and one without any server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    import openai

    from pytest_vllm import Server


@pytest.fixture
def greeting(vllm_client: openai.OpenAI, vllm_server: Server) -> str:
    """What the server says to a greeting."""
    answer = vllm_client.chat.completions.create(
        model=vllm_server.model, messages=[{"role": "user", "content": "Hello"}], max_tokens=8
    )
    return answer.choices[0].message.content or ""


def test_a_greeting(greeting: str) -> None:
    assert greeting.strip()


class TestTokens:
    """Tests in a class."""

    @pytest.mark.parametrize("most", [1, 4])
    def test_are_limited(self, vllm_http: httpx.Client, vllm_server: Server, most: int) -> None:
        body = {"model": vllm_server.model, "prompt": "Hi", "max_tokens": most}
        answer = vllm_http.post("/v1/completions", json=body).raise_for_status().json()
        assert answer["usage"]["completion_tokens"] <= most

    def test_are_counted(
        self,
        vllm_http: httpx.Client,
        vllm_server: Server,
        vllm_metrics: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        with vllm_metrics() as grown:
            body = {"model": vllm_server.model, "prompt": "Hi", "max_tokens": 3}
            vllm_http.post("/v1/completions", json=body)
        assert grown("vllm:generation_tokens_total") >= 1


async def test_asynchronously(vllm_async_client: openai.AsyncOpenAI, vllm_server: Server) -> None:
    answer = await vllm_async_client.completions.create(model=vllm_server.model, prompt="Hi", max_tokens=2)
    assert answer.usage is not None
    assert answer.usage.completion_tokens <= 2


async def test_asynchronously_again(vllm_async_client: openai.AsyncOpenAI) -> None:
    assert (await vllm_async_client.models.list()).data


def test_without_a_server() -> None:
    assert sorted([2, 1]) == [1, 2]


def test_two_servers(vllm_servers: Callable[..., tuple[Server, ...]]) -> None:
    mine, other = vllm_servers("mine", "sim-lora")
    assert mine.url != other.url
    for server in (mine, other):
        assert httpx.get(f"{server.url}/v1/models", trust_env=False).json()["data"]
