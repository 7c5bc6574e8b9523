"""Raw HTTP to a simulator, with the standard library alone."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_vllm.sim.inprocess import Simulated

CHAT = "/v1/chat/completions"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The data of a stream's events: JSON values, and the end mark as text."""
        blocks = [block for block in self.body.decode().split("\n\n") if block]
        lines = [line[6:] for block in blocks for line in block.split("\n") if line.startswith("data: ")]
        return [json.loads(line) if line != "[DONE]" else line for line in lines]

    @property
    def chunks(self) -> list[Any]:
        """The JSON events."""
        return [event for event in self.events if event != "[DONE]"]

    @property
    def text(self) -> str:
        """The content of a chat stream."""
        return "".join(
            choice["delta"].get("content") or "" for chunk in self.chunks for choice in chunk["choices"]
        )


class Client:
    """Asks one simulator."""

    def __init__(self, sim: Simulated) -> None:
        """For a simulator that runs."""
        self.sim = sim

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """One request; a body that is no text is sent as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.sim.boot.port, timeout=20)
        sent = {"content-type": "application/json", **(headers or {})} if body is not None else headers or {}
        data = body if body is None or isinstance(body, str | bytes) else json.dumps(body)
        try:
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def get(self, path: str) -> Answer:
        """A GET."""
        return self.ask("GET", path)

    def post(self, path: str, **body: Any) -> Answer:
        """A POST of JSON."""
        return self.ask("POST", path, body)

    def chat(self, text: str, **params: Any) -> Answer:
        """One user message, greedy unless told otherwise."""
        messages = [{"role": "user", "content": text}]
        return self.ask("POST", CHAT, {"messages": messages, "temperature": 0, **params})

    def said(self, text: str, **params: Any) -> str:
        """What the whole answer to a message says."""
        content: str = self.chat(text, **params).json["choices"][0]["message"]["content"]
        return content

    def counter(self, name: str) -> float:
        """A sample of /metrics, summed over its labels."""
        lines = self.get("/metrics").body.decode().splitlines()
        rows = [line for line in lines if line.startswith((f"{name}{{", f"{name} "))]
        assert rows, f"{name} is not exported"
        return sum(float(line.rsplit(" ", 1)[1]) for line in rows)
