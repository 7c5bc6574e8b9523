"""Declared loads: who asks what, how often, for how long. Data only; `run.py` performs them.

Times are the server's seconds; a simulator whose clock is faster than the wall's is loaded that much faster.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: English words per token of an ordinary tokenizer, until the server's own usage tells better.
WORDS_PER_TOKEN = 0.72
_WORDS = re.findall(
    r"\w+",
    "river stone morning market window garden yellow captain winter letter bridge music silver kitchen "
    "forest island paper bottle summer harbour candle village doctor engine basket mountain corner "
    "dinner teacher pocket feather weather station butter copper valley lantern meadow orange painter",
)


@dataclass(frozen=True)
class Prompts:
    """Where prompts come from. Each begins with a salt of its own, so that no cache knows it.

    Args:
        tokens: length of a prompt in tokens, about; `usage` tells the exact one afterwards.
        spread: sigma of a log-normal spread of lengths around `tokens`; 0: all alike.
        longest: no prompt is longer than this.
        shared: tokens at the beginning that all prompts of this load have in common, before the salt.
        file: prompts line by line, plain or JSON with a `prompt`; taken in turn, salted all the same. Its
            path begins where the measurement is declared, or else in the root of the project.
    """

    tokens: int = 64
    spread: float = 0.0
    longest: int | None = None
    shared: int = 0
    file: str | None = None


@dataclass(frozen=True)
class Kind:
    """One kind of request in a load.

    Args:
        name: what its samples are labelled with.
        prompts: what is asked.
        output: tokens of every answer, forced by `ignore_eos` and `min_tokens`; None leaves it to the model.
        varied: by how much answers differ in length, evenly around `output`: 0.5 is from half of it to one
            and a half. Answers that are all alike end together, and their prompts are read in waves.
        share: how often among the kinds, relative to the others.
        params: further fields of the request's body.
        chat: whether it goes to chat completions instead of completions.
    """

    name: str = "all"
    prompts: Prompts = field(default_factory=Prompts)
    output: int | None = 64
    varied: float = 0.0
    share: float = 1.0
    params: Mapping[str, Any] = field(default_factory=dict)
    chat: bool = False


@dataclass(frozen=True)
class Goal:
    """A bound that the load is to decide, so that it may stop early.

    Args:
        name: as in `[limits]`: `decode-tok-s`, `aggregate-tok-s`, `prefill-tok-s`, `ttft`, `tpot`.
        floor: not below this, in tokens per second.
        ceiling: not above this, in seconds.
        kind: only samples of this kind.
        within: half the interval is to be no more than this share of the value.
    """

    name: str
    floor: float | None = None
    ceiling: float | None = None
    kind: str = ""
    within: float | None = None


@dataclass(frozen=True)
class Slo:
    """What a request must meet to count as good; seconds."""

    ttft: float | None = None
    tpot: float | None = None
    e2e: float | None = None


@dataclass(frozen=True)
class Workload:
    """A load on one server.

    Args:
        streams: requests in flight all the time (closed loop).
        rate: arrivals per second (open loop), Poisson; latency counts from the intended moment.
        trace: moments of arrival instead, seconds from the start.
        kinds: what is asked, mixed at random with a fixed seed.
        seconds: scored at most so long; up to three times where goals are set and that was too short for any
            estimate.
        requests: no more than so many; None: until the time is over or the goals are decided.
        warmup: requests before it, one at a time, not scored.
        goals: stop as soon as these are decided.
        slo: what counts as good.
        cold: whether no prompt may hit the prefix cache; hits make the numbers undecided.
        patience: how long running requests may take to finish afterwards.
        canary: whether a known question is asked before, during and after it.
        direct: whether it goes to a server behind the proxy, past it.
        seed: of the mix, the lengths and the arrivals.
    """

    streams: int = 1
    rate: float | None = None
    trace: tuple[float, ...] = ()
    kinds: tuple[Kind, ...] = (Kind(),)
    seconds: float = 20.0
    requests: int | None = None
    warmup: int = 1
    goals: tuple[Goal, ...] = ()
    slo: Slo | None = None
    cold: bool = True
    patience: float = 60.0
    canary: bool = True
    direct: bool = False
    seed: int = 1

    @property
    def open_loop(self) -> bool:
        """Whether requests come by the clock, not by what has ended."""
        return self.rate is not None or bool(self.trace)

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Workload:
        """What `plain` gave."""
        kinds = [Kind(**{**one, "prompts": Prompts(**one["prompts"])}) for one in values["kinds"]]
        return cls(
            **{
                **values,
                "trace": tuple(values["trace"]),
                "kinds": tuple(kinds),
                "goals": tuple(Goal(**one) for one in values["goals"]),
                "slo": Slo(**values["slo"]) if values["slo"] else None,
            }
        )


@dataclass(frozen=True)
class Asked:
    """A request to be sent: its kind, the text of its prompt and the tokens of its answer."""

    kind: Kind
    prompt: str
    output: int | None = None


class Script:
    """The endless list of a workload's requests, the same for the same seed but for the salts.

    Several processes share one list, and each takes every so manieth of it.

    Args:
        workload: what is mixed.
        salt: makes the prompts of this run unlike those of any other.
        lines: prompts by kind, instead of those of the kinds' files.
        turns: which process of how many takes from it, counted from 0.
    """

    def __init__(
        self,
        workload: Workload,
        salt: str,
        lines: Mapping[str, list[str]] | None = None,
        turns: tuple[int, int] = (0, 1),
    ) -> None:
        """Begin at the first request."""
        self.salt, self.count = salt, 0
        self.lines = lines if lines is not None else _lines_of(workload)
        self.words_per_token = WORDS_PER_TOKEN
        self._workload, self._turns = workload, turns
        self._drawn = random.Random(workload.seed)  # noqa: S311 - a load, no secret
        self._turn = -turns[0]

    def pass_over(self, count: int) -> None:
        """Leave out so many requests: another process has sent them."""
        for _ in range(count):
            self._draw(None)

    def next(self, kind: Kind | None = None) -> Asked:
        """The next request; of a kind of its own if that is given."""
        while True:
            asked = self._draw(kind)
            self._turn += 1
            if self._turn % self._turns[1] == 1 % self._turns[1]:
                return asked

    def _draw(self, kind: Kind | None) -> Asked:
        self.count += 1
        kinds = self._workload.kinds
        kind = kind or self._drawn.choices(kinds, [one.share for one in kinds])[0]
        output = kind.output
        if output is not None and kind.varied:
            output = max(2, round(output * self._drawn.uniform(1 - kind.varied, 1 + kind.varied)))
        return Asked(kind, self._prompt(kind), output)

    def learn(self, words: int, tokens: int) -> None:
        """So many words of such a prompt were so many tokens to this server."""
        self.words_per_token = min(1.2, max(0.2, words / tokens))

    def arrivals(self) -> Iterator[float]:
        """Its moments of arrival in seconds from the start, endless unless there is a trace."""
        yield from islice(self._all_arrivals(), self._turns[0], None, self._turns[1])

    def _all_arrivals(self) -> Iterator[float]:
        if self._workload.trace:
            yield from self._workload.trace
            return
        drawn = random.Random(self._workload.seed + 1)  # noqa: S311 - as above
        at = 0.0
        while self._workload.rate:
            at += drawn.expovariate(self._workload.rate)
            yield at

    def _prompt(self, kind: Kind) -> str:
        prompts = kind.prompts
        salt = f"{self.salt}{self.count:x}"
        if prompts.file:
            lines = self.lines[kind.name]
            return f"[{salt}] {lines[self.count % len(lines)]}"
        length = float(prompts.tokens)
        if prompts.spread:
            length = self._drawn.lognormvariate(0.0, prompts.spread) * length
        if prompts.longest:
            length = min(length, prompts.longest)
        common = _text(random.Random(f"{self.salt}{kind.name}"), prompts.shared * self.words_per_token)  # noqa: S311
        own = max(1.0, (length - prompts.shared) * self.words_per_token - len(salt) / 4)
        return f"{common}[{salt}] {_text(self._drawn, own)}"


def _text(drawn: random.Random, words: float) -> str:
    """A text of so many words, in sentences."""
    chosen = drawn.choices(_WORDS, k=round(words))
    return "".join(f"{word}. The " if at % 9 == 8 else f"{word} " for at, word in enumerate(chosen))


def with_files(workload: Workload, folders: Sequence[Path]) -> Workload:
    """The workload with its files of prompts found, each in the first folder that has it.

    Raises ValueError when one is in none of them, or holds no prompts.
    """
    kinds = [replace(kind, prompts=_found(kind.prompts, folders)) for kind in workload.kinds]
    return replace(workload, kinds=tuple(kinds))


def _found(prompts: Prompts, folders: Sequence[Path]) -> Prompts:
    if not prompts.file:
        return prompts
    places = dict.fromkeys(folder / prompts.file for folder in folders)
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        looked = " nor ".join(map(str, places))
        raise ValueError(f"the file of prompts {prompts.file} is missing: there is no {looked}")
    try:
        _lines(str(path))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"the file of prompts {path} cannot be read: {type(error).__name__}: {error}"
        ) from error
    return replace(prompts, file=str(path))


def _lines_of(workload: Workload) -> dict[str, list[str]]:
    return {kind.name: _lines(kind.prompts.file) for kind in workload.kinds if kind.prompts.file}


def _lines(name: str | None) -> list[str]:
    """The prompts of a file. Raises OSError, ValueError when it has none."""
    found = []
    for line in Path(name or "").read_text("utf-8").splitlines():
        text = str(json.loads(line)["prompt"]) if line.startswith("{") else line
        found += [text] if text.strip() else []
    if not found:
        raise ValueError(f"{name}: no prompts in it; one a line, plain or JSON with a `prompt`")
    return found
