"""What was asked at random, or again because it failed once, is answered rightly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm import MUST, SHOULD, Explored, Fault, Finding, Server, check, need, observe, only_if

from .exchanges import EXPLORATION

if TYPE_CHECKING:
    from collections.abc import Sequence

CREATE = "openai:chat/create"
ROBUST = "fault:vllm-project/vllm/issues/50425"
DRAWN, KNOWN = ["explore.drawn["], ["explore.known["]


@check("explore.drawn.right", MUST, spec=CREATE, tier="explore", exchanges=DRAWN)
def test_right(vllm_explored: Explored, vllm_server: Server) -> None:
    """Requests drawn at random are served, and answered as every request is."""
    _account(vllm_explored)
    failed = [one for one in _drawn(vllm_explored) if one.again and _certain(one, vllm_server)]
    wrong = [_told(one, _certain(one, vllm_server), vllm_explored) for one in failed]

    assert not wrong, "\n".join(wrong)
    need(vllm_explored.trials, f"nothing was drawn: {vllm_explored.stopped or 'no time was left'}")
    need(not vllm_explored.stopped, f"the exploration ended early: {vllm_explored.stopped}")


@check("explore.drawn.clear", SHOULD, spec=CREATE, tier="explore", exchanges=DRAWN)
def test_clear(vllm_explored: Explored, vllm_server: Server) -> None:
    """No request drawn at random fails once, or is refused where it could be served."""
    _account(vllm_explored)
    unsure = [one for one in _drawn(vllm_explored) if not (one.again and _certain(one, vllm_server))]
    faults = [(one, EXPLORATION.judge(vllm_server, one.recordings)) for one in unsure]
    wrong = [_told(one, found, vllm_explored) for one, found in faults if found]

    assert not wrong, "\n".join(wrong)
    need(vllm_explored.trials, "nothing was drawn")


@check("explore.drawn.alive", MUST, spec=ROBUST, tier="explore", exchanges=DRAWN)
def test_alive(vllm_explored: Explored) -> None:
    """After all that was drawn the server answers its health and one token."""
    only_if(not vllm_explored.unasked, vllm_explored.unasked)
    need(vllm_explored.alive, f"it was not asked: {vllm_explored.stopped or 'nothing was explored'}")
    asked = [one for one in vllm_explored.alive if one.failure is None or not one.failure.ours]
    need(asked, "it could not be asked")
    wrong = [f"{one.key}: {one.status or one.error}" for one in asked if one.status != 200]

    assert not wrong, "; ".join(wrong)


@check("explore.known.right", MUST, spec=CREATE, tier="gate", exchanges=KNOWN)
def test_known(vllm_explored: Explored, vllm_server: Server) -> None:
    """What failed once on this profile does not fail again."""
    known = [one for one in vllm_explored.findings if one.known]
    only_if(known, "no exploration of this profile has left a regression")
    observe("regressions asked", f"{len(known)} of {vllm_explored.file}")
    judged = [one for one in known if any(each.status is not None for each in one.recordings)]
    wrong = [_told(one, found, vllm_explored) for one in judged if (found := _certain(one, vllm_server))]

    assert not wrong, "\n".join(wrong)
    need(len(judged) == len(known), f"{len(known) - len(judged)} of {len(known)} could not be asked")


def _drawn(explored: Explored) -> list[Finding]:
    return [one for one in explored.findings if not one.known]


def _account(explored: Explored) -> None:
    only_if(explored.seed is not None or explored.stopped, explored.unasked or "nothing was explored")
    observe("seed", explored.seed)
    observe("trials", f"{explored.trials}, {explored.requests} requests in {explored.seconds:.4g} s")


def _certain(one: Finding, server: Server) -> list[Fault]:
    return [fault for fault in EXPLORATION.judge(server, one.recordings) if fault.certain]


def _told(one: Finding, faults: Sequence[Fault], explored: Explored) -> str:
    """A finding in words, with the request that shows it."""
    where = f"regression {one.id}" if one.known else f"trial {one.id} of seed {explored.seed}"
    often = "" if one.known else f", failed {one.again} of {one.repeated} times more"
    said = "; ".join(dict.fromkeys(fault.said for fault in faults[:3]))
    return f"{where}{often}: {said}\n{one.curl}"
