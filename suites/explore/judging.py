"""What is wrong with a trial: the oracles of a run judge it, and what its requests promise.

An oracle is any MUST check of the suite `oracle` that judges recordings alone; one that is added there judges
here too. What an oracle does not decide is not a fault.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from pytest_vllm import MUST, Fault, Recordings, Request, objection

from ..oracle import test_accounts, test_events, test_same, test_texts  # noqa: TID252 - suites lie together
from ..oracle.answers import answer_of  # noqa: TID252 - suites lie together
from ..oracle.exchanges import counting, explaining  # noqa: TID252 - suites lie together
from .promises import promised
from .rendered import rendered_differently, rendering
from .served import unserved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_vllm import Recording, Server

GIVEN = {"vllm_recordings", "vllm_server"}
MODULES = (test_accounts, test_events, test_same, test_texts)
COUNT, EXPLAINED = "oracle.count", "oracle.explained"


def _oracles() -> Iterator[tuple[str, tuple[str, ...], Callable[..., None]]]:
    """Id, needs and function of each."""
    for module in MODULES:
        for function in vars(module).values():
            for mark in getattr(function, "pytestmark", ()):
                spec = mark.args[0] if mark.name == "vllm_check" else None
                if spec and spec.level is MUST and set(inspect.signature(function).parameters) <= GIVEN:
                    yield spec.id, spec.needs, function


#: The one about every prompt reads recordings that a trial does not have.
ORACLES = tuple(one for one in _oracles() if one[0] != "oracle.prompt.each-counted")


def follow(server: Server, recorded: Sequence[Recording]) -> dict[str, Request]:
    """What the oracles ask once these recordings exist: counts, candidates, the rendered prompt."""
    known = {one.key for one in recorded}
    asked: dict[str, Request] = {}
    own = [one for one in recorded if "[" not in one.key]
    if not any(key.startswith(COUNT) for key in known) and server.can("tokenize"):
        for at, request in enumerate(_different(counting(server, own))):
            asked[f"{COUNT}[{at}]"] = request
    if not any(key.startswith(EXPLAINED) for key in known) and server.can("logprobs"):
        for at, request in enumerate(explaining(server, recorded)):
            asked[f"{EXPLAINED}[{at}]"] = request
    return asked | rendering(server, recorded)


def judge(server: Server, recorded: Sequence[Recording]) -> list[Fault]:
    """What is wrong with the recordings of a trial."""
    told = [one for one in recorded if one.failure is None or not (one.failure.ours or _unfit(one))]
    asked = [one for one in told if "[" not in one.key]
    found = [fault for one in asked for fault in unserved(one)]
    answers = [(one, answer) for one in asked if (answer := answer_of(one))]
    for one, answer in answers:
        found += promised(one, answer, server)
    if answers:
        for id_, needs, function in ORACLES:
            if all(map(server.can, needs)) and (said := _objection(function, told, server)):
                found.append(Fault(id_, said))
    found += rendered_differently(told)
    return found


def _objection(function: Callable[..., None], told: Sequence[Recording], server: Server) -> str:
    """What an oracle has against these recordings; empty where it has nothing, or does not judge them."""
    given: Mapping[str, Any] = {"vllm_recordings": Recordings.these(told), "vllm_server": server}
    return objection(function, **{name: given[name] for name in inspect.signature(function).parameters})


def _unfit(one: Recording) -> bool:
    return one.failure is not None and one.failure.value in ("unfit", "not-sent")


def _different(requests: Iterator[Request]) -> list[Request]:
    """Each request once."""
    found: list[Request] = []
    for one in requests:
        if one not in found:
            found.append(one)
    return found
