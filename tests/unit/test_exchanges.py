"""Exchanges are declared once, multiplied by their cases, and known under fixture names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.declare import exchanges
from pytest_vllm.declare.exchanges import all_cases, by_fixture_name, fixture_name, key_of
from pytest_vllm.face.decorators import cases, exchange
from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.wire.recording import Recording, Request


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    declared, sets = dict(exchanges.EXCHANGES), dict(exchanges.CASE_SETS)
    exchanges.EXCHANGES.clear()
    exchanges.CASE_SETS.clear()
    yield
    exchanges.EXCHANGES.clear()
    exchanges.CASE_SETS.clear()
    exchanges.EXCHANGES.update(declared)
    exchanges.CASE_SETS.update(sets)


def test_a_fixture_is_named_like_the_exchange() -> None:
    assert fixture_name("chat.stop-string") == "chat_stop_string"


def test_parameters_name_dependencies_and_cases() -> None:
    cases("bad_request", [{"id": "empty"}, {"id": "huge"}])

    @exchange("a.first")
    def first(server: Server, bad_request: exchanges.Case) -> Request:
        return server.get(bad_request["id"])

    @exchange("a.second", metrics=True)
    def second(server: Server, a_first: Recording) -> Request:
        return server.get("/")

    spec = by_fixture_name()["a_second"]
    assert (spec.after, spec.cases, spec.alone) == (("a_first",), (), True)
    assert all_cases(spec) == ("bad_request",)
    assert key_of(spec.id, ["empty"]) == "a.second[empty]"


def test_two_exchanges_never_share_an_id() -> None:
    @exchange("a.first")
    def one(server: Server) -> Request:
        return server.get("/one")

    with pytest.raises(ValueError, match="declared twice"):

        @exchange("a.first")
        def two(server: Server) -> Request:
            return server.get("/two")


def test_an_exchange_id_is_dotted_lower_case() -> None:
    with pytest.raises(ValueError, match="dotted lower-case words"):
        exchange("Chat Plain")(lambda server: server.get("/health"))


def test_request_builders_are_greedy_and_name_the_model() -> None:
    server = Server("http://127.0.0.1:1", "m")

    assert server.chat("Hi", max_tokens=1).json == {
        "model": "m",
        "temperature": 0,
        "messages": [{"role": "user", "content": "Hi"}],
        "max_tokens": 1,
    }
    assert server.completion("Hi", temperature=1, model="other").json == {
        "model": "other",
        "temperature": 1,
        "prompt": "Hi",
    }
