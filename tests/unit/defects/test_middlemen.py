"""What stands between gives on what it gets, each kind in its way."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from pytest_vllm.sim.inprocess import Simulated
from tests.defects.middlemen import MIDDLEMEN, between

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CHAT = "/v1/chat/completions"
BODY: dict[str, Any] = {
    "model": "sim-model",
    "messages": [{"role": "user", "content": "Say that it rains in Zürich."}],
    "temperature": 0,
    "max_tokens": 12,
}


@pytest.fixture(scope="module")
def sims() -> Iterator[list[str]]:
    with Simulated(["sim-model"]) as one, Simulated(["sim-model"], {"VLLM_SIM_REPLICA": "-1"}) as other:
        yield [one.url, other.url]


@dataclass(frozen=True)
class Came:
    """An answer."""

    status: int
    headers: Mapping[str, str]
    text: str


def asked(url: str, path: str, body: Any = None, **headers: str) -> Came:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=20)
    data = None if body is None else json.dumps(body)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        method = "GET" if body is None else "POST"
        connection.request(method, parts.path + path, data, {"Content-Type": "application/json", **sent})
        answer = connection.getresponse()
        told = {name.lower(): value for name, value in answer.getheaders()}
        return Came(answer.status, told, answer.read().decode())
    finally:
        connection.close()


def said(answer: str) -> list[Any]:
    """What the choices of an answer or of a stream say."""
    lines = [line[6:] for line in answer.split("\n") if line.startswith("data: {")] or [answer]
    return [
        choice.get("delta") or choice.get("message")
        for line in lines
        for choice in json.loads(line)["choices"]
    ]


@pytest.mark.parametrize("name", sorted(MIDDLEMEN.keys() - {"hints"}))  # the standard library reads none
@pytest.mark.parametrize("stream", [False, True])
def test_what_a_server_says_comes_through(sims: list[str], name: str, stream: bool) -> None:
    body = {**BODY, "stream": stream}
    with between(name, sims[: MIDDLEMEN[name].replicas]) as url:
        through = asked(url, CHAT, body)

    assert through.status == 200
    assert said(through.text) == said(asked(sims[0], CHAT, body).text)


@pytest.mark.parametrize(
    ("name", "path", "status"),
    [
        ("hides-metrics", "/metrics", 404),
        ("forbids-metrics", "/metrics", 403),
        ("hides-metrics", "/version", 200),
        ("shows-v1", "/version", 404),
        ("shows-v1", "/v1/models", 200),
        ("hides-health", "/health", 404),
    ],
)
def test_what_is_kept_from_clients(sims: list[str], name: str, path: str, status: int) -> None:
    with between(name, sims) as url:
        answer = asked(url, path)

        assert answer.status == status
        assert ("<html>" in answer.text) == (status != 200)


def test_more_than_the_rate_is_turned_away(sims: list[str]) -> None:
    with between("limits-429", sims) as url:
        answers = [asked(url, "/version") for _ in range(120)]
        turned_away = [one for one in answers if one.status == 429]

    assert 0 < len(turned_away) < 120
    assert turned_away[0].headers["retry-after"] == "1"


def test_a_request_is_named_anew(sims: list[str]) -> None:
    with between("names-requests", sims) as url:
        answer = asked(url, CHAT, BODY, X_Request_Id="mine")
        name = answer.headers["x-request-id"]

        assert name != "mine"
        assert name in json.loads(answer.text)["id"]


def test_servers_take_turns(sims: list[str]) -> None:
    with between("balances", sims) as url:
        ids = {json.loads(asked(url, CHAT, BODY).text)["id"] for _ in range(4)}

    assert len(ids) == 4
