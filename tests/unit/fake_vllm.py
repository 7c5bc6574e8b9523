"""A vLLM as the probe sees one: every answer can be replaced."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.launch.protocol import BootError
from pytest_vllm.profile.model import Profile, ServerPart
from pytest_vllm.run.probe import probe
from tests.unit.wire.fake import Call, fake_server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from pytest_vllm.wire.server import Server

KEY = "token-0123456789"
METRICS = (
    "vllm:num_requests_running 0.0\n"
    'vllm:cache_config_info{block_size="16",enable_prefix_caching="True"} 1.0\n'
)
COMPLETION = {"object": "chat.completion", "choices": [{"message": {"content": "Hi"}}], "usage": {}}


class FakeVLLM:
    """Answers as a vLLM does. A rule is (status, body) or a function of the call and its JSON body."""

    def __init__(self, rules: Mapping[str, Any] | None = None, *, key: str | None = None) -> None:
        self.key = key
        self.headers: dict[str, str] = {}
        self.rules: dict[str, Any] = {
            "GET /v1/models": (200, {"data": [{"id": "org/m", "owned_by": "vllm", "max_model_len": 4096}]}),
            "GET /version": (200, {"version": "0.32.0"}),
            "GET /metrics": (200, METRICS.encode()),
            "GET /openapi.json": (200, {"paths": {"/v1/chat/completions": {}}}),
            "POST /v1/chat/completions": (200, COMPLETION),
            "POST /v1/completions": (200, {}),
            "POST /tokenize": (200, {}),
        } | dict(rules or {})

    async def __call__(self, call: Call) -> None:
        method, path, _ = call.line.split(" ")
        guarded = self.key is not None and path.startswith("/v1")
        if guarded and call.header("authorization") != f"Bearer {self.key}":
            await call.answer({"error": "Unauthorized"}, 401)
            return
        rule = self.rules.get(f"{method} {path}", (404, {"detail": "Not Found"}))
        status, body = rule(json.loads(call.body or "null")) if callable(rule) else rule
        if status is None:
            return  # closes without a word
        await call.answer(body, status, **self.headers)


ADAPTER = {"id": "adapter", "parent": "base", "owned_by": "vllm", "max_model_len": None}
BASE = {"id": "base", "parent": None, "owned_by": "vllm", "max_model_len": 2048}


def models(*rows: dict[str, Any]) -> FakeVLLM:
    return FakeVLLM({"GET /v1/models": (200, {"data": list(rows)})})


def run(
    handler: Callable[[Call], Awaitable[None]],
    *,
    key: str | None = None,
    path: str = "",
    ended: Callable[[], BootError | None] = lambda: None,
    **server: Any,
) -> Server:
    profile = Profile(name="p", server=ServerPart(**({"launcher": "attach"} | server)))

    async def probed() -> Server:
        async with fake_server(handler) as fake:
            found = await probe(fake.url + path, profile, api_key=key, ended=ended)
            assert found.url == fake.url
            return found

    return asyncio.run(probed())


def refused(handler: Callable[[Call], Awaitable[None]], **options: Any) -> BootError:
    with pytest.raises(BootError) as caught:
        run(handler, **options)
    return caught.value


def how(handler: FakeVLLM, name: str, **options: Any) -> tuple[bool, str]:
    capability = run(handler, **options).capabilities[name]
    return capability.present, capability.how
