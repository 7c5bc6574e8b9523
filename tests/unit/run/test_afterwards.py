"""Requests that follow from what was recorded, and those that are spread between others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.declare.exchanges import ExchangeSpec
from pytest_vllm.run.order import Queue
from pytest_vllm.run.plan import Planned, Wanted, afterwards, build
from pytest_vllm.wire.recording import Recording, Request
from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SERVER = Server("http://127.0.0.1:1", "m")
RECORDED = [Recording(str(n), Request("POST", "/x", json={"n": n % 2})) for n in range(6)]


def follow(server: Server, recorded: Sequence[Recording]) -> Iterator[Request]:
    for one in recorded:
        yield server.post("/asked", one.request.json)


def broken(server: Server, recorded: Sequence[Recording]) -> Iterator[Request]:
    raise KeyError("choices")


def wanted(made: object) -> dict[str, Wanted]:
    spec = ExchangeSpec("a.b", made, afterwards=True)  # type: ignore[arg-type]
    return {"a.b": Wanted(Planned("a.b", spec), {()})}


def test_each_request_is_planned_once() -> None:
    plan = afterwards(wanted(follow), SERVER, RECORDED)

    assert [one.key.startswith("a.b[") for one in plan] == [True, True]
    assert {str(build(one, SERVER, {}).json["n"]) for one in plan} == {"0", "1"}


def test_a_builder_that_raises_is_planned_and_fails_where_it_is_built() -> None:
    (one,) = afterwards(wanted(broken), SERVER, RECORDED)

    with pytest.raises(KeyError, match="choices"):
        build(one, SERVER, {})


def test_a_capability_that_is_missing_asks_for_nothing() -> None:
    wants = wanted(follow)
    wants["a.b"].needs.clear()
    wants["a.b"].needs.add(("tokenize",))

    assert afterwards(wants, SERVER, RECORDED) == []


def test_what_is_spread_comes_early_and_late() -> None:
    plan = [
        Planned(f"{kind}{number}", ExchangeSpec(f"{kind}{number}", follow, spread=kind == "s"))
        for kind in "sp"
        for number in range(20)
    ]
    queue = Queue(plan)
    for planned in queue.free():
        queue.push(planned, Request("GET", "/"), 1)
    order = [queue.pop()[0].key[0] for _ in plan]

    assert order[:10].count("s") == order[-10:].count("s") == 5
    assert not queue
