"""The bytes of the requests that a load sends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.measure import canary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_vllm.measure.workload import Asked
    from pytest_vllm.wire.policy import Route
    from pytest_vllm.wire.server import Server

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


class Asking:
    """Makes whole HTTP messages for one server.

    Args:
        server: whose model, key and host they name.
        route: the way to it, which says what stands in a request line and for whom.
    """

    def __init__(self, server: Server, route: Route) -> None:
        """Requests are made beforehand, so that sending one is one system call."""
        self._server = server
        key = f"authorization: Bearer {server.api_key}\r\n" if server.api_key else ""
        more = "".join(f"{name}: {value}\r\n" for name, value in route.fields)
        self._lead = route.lead
        self._fields = f"host: {route.authority}\r\n{key}{more}accept: */*\r\n"

    def get(self, path: str) -> bytes:
        """A GET."""
        return f"GET {self._lead}{path} HTTP/1.1\r\n{self._fields}\r\n".encode("latin-1")

    def load(self, asked: Asked, output: int | None) -> bytes:
        """A request of the load, answered as a stream of exactly `output` tokens unless that is None."""
        body: dict[str, Any] = {"model": self._server.model, "temperature": 0, "stream": True}
        body["stream_options"] = {"include_usage": True}
        if output is not None:
            body |= {"max_tokens": output, "min_tokens": output, "ignore_eos": True}
        if asked.kind.chat:
            body["messages"] = [{"role": "user", "content": asked.prompt}]
        else:
            body["prompt"] = asked.prompt
        return self.post(CHAT if asked.kind.chat else COMPLETIONS, {**body, **asked.kind.params})

    def canary(self) -> bytes:
        """The known question."""
        body = {
            "model": self._server.model,
            "prompt": canary.PROMPT,
            "max_tokens": canary.TOKENS,
            "min_tokens": canary.TOKENS,
            "ignore_eos": True,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return self.post(COMPLETIONS, body)

    def post(self, path: str, body: Mapping[str, Any]) -> bytes:
        """A POST of JSON."""
        text = json.dumps(body).encode()
        head = f"POST {self._lead}{path} HTTP/1.1\r\n{self._fields}content-type: application/json\r\n"
        return f"{head}content-length: {len(text)}\r\n\r\n".encode("latin-1") + text
