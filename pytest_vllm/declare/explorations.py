"""Requests that nobody wrote down: how a suite draws them, what follows from them, and how it judges them.

A *trial* is a few requests that belong together, such as one whole, streamed and once more. A trial is drawn
as a *shape*: JSON values by name, from which its requests are built, so that it can be made simpler.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_vllm.wire.recording import NotRun, Undecided

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from random import Random

    from pytest_vllm.wire.recording import Recording, Request
    from pytest_vllm.wire.server import Server
    from pytest_vllm.wire.store import RecordingStore

    Shape = Mapping[str, Any]

#: Where what was explored lies in a server's folder: the account, and the recordings of what failed.
ACCOUNT, EXPLORED = "explored.json", "explored"


@dataclass(frozen=True)
class Fault:
    """What is wrong with the answers of a trial.

    Args:
        rule: what they break; a trial that is made simpler has to break the same.
        said: what was observed, in words.
        certain: whether no healthy server may do that.
    """

    rule: str
    said: str
    certain: bool = True


@dataclass(frozen=True)
class Exploration:
    """How requests are drawn at random and judged.

    Args:
        draw: a shape, from a source of chance, for a server.
        simpler: shapes that ask for a little less, the simplest first.
        requests: the requests of a shape by their names.
        follow: what is to be asked once these recordings of a trial exist, by names; empty when nothing is.
        judge: what is wrong with the recordings of a trial; pure.
    """

    draw: Callable[[Random, Server], Shape]
    simpler: Callable[[Shape], Iterable[Shape]]
    requests: Callable[[Server, Shape], Mapping[str, Request]]
    follow: Callable[[Server, Sequence[Recording]], Mapping[str, Request]]
    judge: Callable[[Server, Sequence[Recording]], Sequence[Fault]]


@dataclass(frozen=True)
class Finding:
    """A trial that failed, as simple as it could be made.

    Args:
        id: the trial's number, or the regression's id.
        known: whether it comes from the profile's regressions, and was not drawn.
        again: how many of its repetitions failed in the same way; 0 where it was not seen again.
        repeated: how many repetitions there were.
        rules: what it broke.
        keys: name in the trial -> key of its recording.
        curl: the request that shows it.
        recordings: of the trial, named as its requests are.
    """

    id: str
    known: bool
    again: int
    repeated: int
    rules: tuple[str, ...]
    keys: Mapping[str, str]
    curl: str = ""
    recordings: tuple[Recording, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Explored:
    """What was asked at random, or again, in a run.

    Args:
        seed: from which everything was drawn; None where nothing was.
        seconds: that it took.
        trials: how many were drawn.
        requests: how many were sent.
        known: regressions that were asked again.
        stopped: why it ended early; empty when it did not.
        unasked: why nothing is drawn for this server; empty when something is.
        findings: what failed, and every regression that was asked.
        alive: what was asked at the end; name -> key.
        file: where regressions of this profile lie.
    """

    seed: int | None = None
    seconds: float = 0.0
    trials: int = 0
    requests: int = 0
    known: int = 0
    stopped: str = ""
    unasked: str = ""
    findings: tuple[Finding, ...] = ()
    alive: tuple[Recording, ...] = ()
    file: str = ""


def read_explored(folder: Path, store: RecordingStore) -> Explored | None:
    """What a run wrote down of its exploration; None where it explored nothing."""
    path = folder / ACCOUNT
    if not path.is_file():
        return None
    plain = json.loads(path.read_text("utf-8"))
    findings = [
        Finding(
            **{**row, "rules": tuple(row["rules"])},
            recordings=tuple(named(store.get(key), name) for name, key in row["keys"].items()),
        )
        for row in plain.pop("findings")
    ]
    alive = tuple(named(store.get(key), name) for name, key in plain.pop("alive").items())
    return Explored(**plain, findings=tuple(findings), alive=alive)


def named(recording: Recording, name: str) -> Recording:
    """The recording under its name in the trial."""
    return recording.with_response(key=name)


def objection(check: Callable[..., object], **given: object) -> str:
    """What a check has against what it is given; empty where it has nothing, or does not judge it."""
    try:
        check(**given)
    except AssertionError as error:
        return str(error).split("\nassert ", maxsplit=1)[0]
    except (NotRun, Undecided):
        return ""
    return ""
