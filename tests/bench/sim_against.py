"""How the simulator answers odd requests, compared with a real server: one line per difference.

    python -m tests.bench.sim_against http://127.0.0.1:8000 MODEL [serve arguments of that server …]

Every field of every request gets values of every JSON type, one at a time. Both servers are asked; status,
error type, `param` and message are compared. The simulator is started here, with the arguments given, as the
version that the real server tells.
"""

from __future__ import annotations

import http.client
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_vllm.sim.inprocess import Simulated
from pytest_vllm.sim.versions import facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

VALUES: list[Any] = [None, True, 0, 1, -1, 2.5, "x", "1", [], [1], ["a"], {}, {"a": 1}]
HI = [{"role": "user", "content": "Hi"}]
#: Schema: path and a body that is answered; streams are another matter.
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "ChatCompletionRequest": ("/v1/chat/completions", {"messages": HI, "max_tokens": 1, "temperature": 0}),
    "CompletionRequest": ("/v1/completions", {"prompt": "Hi", "max_tokens": 1, "temperature": 0}),
    "ResponsesRequest": ("/v1/responses", {"input": "Hi", "max_output_tokens": 1, "temperature": 0}),
    "AnthropicMessagesRequest": ("/v1/messages", {"messages": HI, "max_tokens": 1, "temperature": 0}),
    "AnthropicCountTokensRequest": ("/v1/messages/count_tokens", {"messages": HI}),
    "TokenizeCompletionRequest": ("/tokenize", {"prompt": "Hi"}),
    "TokenizeChatRequest": ("/tokenize", {"messages": HI}),
    "DetokenizeRequest": ("/detokenize", {"tokens": [5]}),
}
LEFT_OUT = ("stream",)


def odd(model: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(label, path, body) of every request."""
    schemas = facts("schema")["schemas"]
    for name, (path, base) in REQUESTS.items():
        for field in schemas[name]["properties"]:
            if field not in LEFT_OUT:
                for value in VALUES:
                    body = {"model": model, **base, field: value}
                    yield f"{path} {field}={json.dumps(value)}", path, body


def answer(url: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
    """Status, and what the error says; the body where there is none of it and nothing was sent."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    data = None if body is None else json.dumps(body)
    connection.request("GET" if body is None else "POST", path, data, {"content-type": "application/json"})
    with connection.getresponse() as response:
        text = response.read().decode(errors="replace")
    connection.close()
    if response.status == 200:
        return 200, json.loads(text) if body is None else "answered"
    try:
        error = json.loads(text)["error"]
    except (ValueError, KeyError):
        return response.status, text
    return response.status, (error.get("type"), error.get("param"), error.get("message"))


@dataclass(frozen=True)
class Difference:
    """A request that the two answer differently: status, and what the error says."""

    label: str
    real: tuple[int, Any]
    sim: tuple[int, Any]

    @property
    def told(self) -> str:
        """Both answers, for people."""
        return f"{self.label}\n  real {self.real[0]} {self.real[1]}\n  sim  {self.sim[0]} {self.sim[1]}"


def differences(real: str, model: str, argv: Sequence[str]) -> Iterator[Difference | None]:
    """For each request what differs; None where nothing does."""
    version = answer(real, "/version")[1]["version"].split("+")[0]
    with Simulated([model, *argv, "--sim-version", version]) as sim:
        for label, path, body in odd(model):
            theirs, ours = answer(real, path, body), answer(sim.url, path, body)
            yield None if theirs == ours else Difference(label, theirs, ours)


def main() -> int:
    """Ask both and print the differences."""
    real, model, *argv = sys.argv[1:]
    found = list(differences(real, model, argv))
    differing = [one for one in found if one]
    for one in differing:
        print(one.told)
    print(f"{len(found)} requests, {len(differing)} answered differently")
    return 0


if __name__ == "__main__":
    sys.exit(main())
