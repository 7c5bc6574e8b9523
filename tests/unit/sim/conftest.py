"""Simulators for the tests of this folder, each started once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_vllm.sim.inprocess import Simulated
from tests.unit.sim.client import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PLAIN = ("sim-model", "--max-model-len", "4096")
TOOLS = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")


@pytest.fixture(scope="session")
def simulated() -> Iterator[Callable[..., Client]]:
    """A client of a simulator with these arguments; equal arguments share one."""
    running: dict[tuple[object, ...], Simulated] = {}

    def client(*argv: str, **environ: str) -> Client:
        key = (argv, tuple(sorted(environ.items())))
        if key not in running:
            running[key] = Simulated(argv, environ).__enter__()
        return Client(running[key])

    yield client
    for sim in running.values():
        sim.__exit__()


@pytest.fixture(scope="session")
def sim(simulated: Callable[..., Client]) -> Client:
    """A plain simulator of the newest version that was measured."""
    return simulated(*PLAIN, "--enable-prompt-tokens-details")


@pytest.fixture(scope="session")
def tools(simulated: Callable[..., Client]) -> Client:
    """One with a tool parser."""
    return simulated(*PLAIN, *TOOLS)
