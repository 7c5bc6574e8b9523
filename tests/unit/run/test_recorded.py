"""What the step that records reports of a server: of what was asked first, and of what followed from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_vllm.declare.exchanges import ExchangeSpec
from pytest_vllm.profile.model import Profile, ServerPart
from pytest_vllm.run import steps
from pytest_vllm.run.context import Demand
from pytest_vllm.run.plan import Planned, Wanted
from pytest_vllm.run.state import ServerState
from pytest_vllm.wire.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_vllm.wire.recording import Request

GONE = "3 exchanges in a row found no server"
SERVER = Server("http://127.0.0.1:1", "m")
STILL = "the server stood still for 20 s"


@dataclass
class Reported:
    """What a recording came to."""

    stopped: str = ""
    stills: tuple[str, ...] = ()
    unended: tuple[str, ...] = ()

    def as_detail(self) -> dict[str, Any]:
        return {}


@dataclass
class Ran:
    """A run that keeps what it is told; it is its own progress."""

    said: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    concurrency: int = 1

    @property
    def progress(self) -> Ran:
        return self

    @property
    def run(self) -> Ran:
        return self

    def say(self, text: str) -> None:
        self.said.append(text)

    def spent(self, phase: str, started: float, **detail: Any) -> None:
        """Nothing is measured here."""

    def death(self) -> str:
        return ""


def first(server: Server) -> Request:
    return server.get("/health")


def follow(server: Server, recorded: object) -> Iterator[Request]:
    yield server.get("/ping")


def wanted(key: str, made: Any, **more: Any) -> Wanted:
    return Wanted(Planned(key, ExchangeSpec(key, made, **more)), {()})


@pytest.mark.parametrize(("reports", "died"), [(("", GONE), GONE), ((GONE, ""), GONE), (("", ""), "")])
def test_an_attached_server_that_ends_in_either_part_has_died(
    reports: tuple[str, str], died: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coming = [Reported(one, (f"{STILL} ({at})",)) for at, one in enumerate(reports)]

    async def record(*_args: object, **_more: object) -> Reported:
        return coming.pop(0)

    monkeypatch.setattr(steps, "_record", record)
    ran = Ran()
    profile = Profile(name="p", server=ServerPart(launcher="attach", url=SERVER.url))
    state = ServerState(profile, SERVER, tmp_path)
    demand = Demand({"a": wanted("a", first), "b": wanted("b", follow, afterwards=True)})

    found = steps.recorded(cast("Any", ran), state, demand)

    assert found.died == died
    assert ran.said == [f"{STILL} ({at})" for at in range(2 - len(coming))]
