"""Draws trials until the time is up, and makes simpler what failed."""

from __future__ import annotations

import random
import re
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_vllm.wire import failure as wire

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from pytest_vllm.declare.explorations import Shape
    from pytest_vllm.run.trials import Asker, Trial

#: Repetitions of a trial that failed, and kinds of failures that are followed up in one run.
REPEATED, KINDS = 3, 12
#: Steps in which a failure is made simpler, and what of the whole time one may take at most.
STEPS, SHARE = 40, 0.25
#: What of the time nothing more is drawn in: a late failure is to be made simpler too.
RESERVE = 0.1
#: Trials that are kept of those that were under way when the server was gone.
SUSPECTS = 16
#: Seconds that a round of trials is to take, and trials of the first and of the largest.
ROUND, FIRST, LARGEST = 4.0, 4, 32


@dataclass
class Failure:
    """A trial that failed, and what became of it.

    Args:
        number: which of the drawn ones.
        trial: as simple as it could be made.
        again: how many of the repetitions failed in the same way.
        repeated: how many there were.
        fatal: whether the server ended or hung while it was asked.
    """

    number: int
    trial: Trial
    again: int = 0
    repeated: int = 0
    fatal: bool = False


@dataclass
class Search:
    """What is drawn from a seed.

    Args:
        asker: asks trials.
        seed: from which everything is drawn.
        seconds: that all of it may take.
        say: is given what happens, in words.
        without: parts of shapes that are not asked.
        drawn: trials so far.
        failures: one of each kind.
    """

    asker: Asker
    seed: int
    seconds: float
    say: Callable[[str], None]
    without: Collection[str] = ()
    drawn: int = 0
    failures: list[Failure] = field(default_factory=list)
    _kinds: set[tuple[object, ...]] = field(default_factory=set)
    _until: float = 0.0

    def run(self) -> None:
        """Draw, ask and judge until the time is up, enough failed, or the server is gone."""
        self._until = time.monotonic() + self.seconds
        size = FIRST
        while self._left() > RESERVE * self.seconds and len(self.failures) < KINDS and not self.asker.stopped:
            began = time.monotonic()
            numbers = range(self.drawn, self.drawn + size)
            trials = self.asker.shapes([self._shape(number) for number in numbers])
            self.drawn += size
            each = (time.monotonic() - began) / size
            if self.asker.stopped:
                broken = [pair for pair in zip(numbers, trials, strict=True) if _broke(pair[1])]
                self.failures += [Failure(number, trial, fatal=True) for number, trial in broken[:SUSPECTS]]
                return
            for number, trial in zip(numbers, trials, strict=True):
                if trial.faults:
                    self._follow(number, trial)
            size = max(1, min(LARGEST, 2 * size, int(min(ROUND, self._left()) / max(each, 1e-3))))

    def _shape(self, number: int) -> Shape:
        exploration, server = self.asker.exploration, self.asker.server
        shape = exploration.draw(random.Random(f"{self.seed}-{number}"), server)  # noqa: S311 - no secret
        return {
            name: [one for one in value if one not in self.without] if isinstance(value, list) else value
            for name, value in shape.items()
            if name not in self.without
        }

    def _left(self) -> float:
        return self._until - time.monotonic()

    def _follow(self, number: int, trial: Trial) -> None:
        """Ask again what failed; make it simpler where it fails again."""
        kind = _kind(trial)
        if kind in self._kinds or len(self.failures) >= KINDS:
            return
        self._kinds.add(kind)
        rules = trial.rules or frozenset(one.rule for one in trial.faults)
        shape = _shape_of(trial)
        again = [one for one in self.asker.shapes([shape] * REPEATED) if _breaks(one, rules)]
        failure = Failure(number, trial, len(again), REPEATED)
        self.failures.append(failure)
        if again:
            failure.trial = again[0]
            self._simplify(failure, rules)
        self._kinds.add(_kind(failure.trial))
        told = f"failed {failure.again} of {REPEATED} times more" if again else "was not seen again"
        self.say(f"explore: trial {number} {told}: {failure.trial.faults[0].said[:160]}")

    def _simplify(self, failure: Failure, rules: frozenset[str]) -> None:
        until = time.monotonic() + min(max(self._left(), 0.0), SHARE * self.seconds)
        for _ in range(STEPS):
            if time.monotonic() >= until or self.asker.stopped:
                return
            simpler = list(self.asker.exploration.simpler(_shape_of(failure.trial)))[:LARGEST]
            better = _first(self.asker.shapes(simpler), rules)
            if better is None:
                return
            failure.trial = better


def _broke(trial: Trial) -> bool:
    """Whether one of its requests was under way when the server was gone."""
    sent = (wire.Failure.NOT_SENT, wire.Failure.STOPPED, wire.Failure.UNFIT)
    return any(one.failure is not None and one.failure not in sent for one in trial.recordings)


def _first(trials: Iterable[Trial], rules: frozenset[str]) -> Trial | None:
    return next((one for one in trials if _breaks(one, rules)), None)


def _breaks(trial: Trial, rules: frozenset[str]) -> bool:
    """Whether a trial breaks one of the rules that it is about."""
    return bool({one.rule for one in trial.faults} & rules)


def _shape_of(trial: Trial) -> Shape:
    assert trial.shape is not None  # noqa: S101 - drawn
    return trial.shape


def _kind(trial: Trial) -> tuple[object, ...]:
    """What failures of one kind have in common: route, rules, and the words without their numbers."""
    paths = {one.request.path for one in trial.recordings if one.key == "whole"}
    said = {(one.rule, re.sub(r"\d+|'[^']*'", "#", one.said)[:60]) for one in trial.faults}
    return (*sorted(paths), *sorted(said))
