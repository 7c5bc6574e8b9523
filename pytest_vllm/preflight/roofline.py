"""How a measured speed stands to what hardware and model allow, and what an implausible one means.

Pure: `Figures` gives the ceilings, this judges against them. Efficiency is measured over ceiling.

Usual efficiencies are the least of those that people published for deployments that were in order, as
`docs/roofline.md` lists them with their sources: one stream with steps of 20 ms and more 0.58 to 0.87, with
shorter steps 0.51 to 0.64 (the host's 1 to 4 ms per step weigh more), mixtures of experts with few active
parameters 0.33 to 0.75, many streams 0.46 and up, prompts 0.3 to 0.6 of the peak.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from pytest_vllm.profile.units import Load

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_vllm.profile.derived import Figures

#: Above the ceiling by more than this, a figure is impossible: hardware files are good to a few per cent.
MARGIN = 0.1
#: Below this share of the ceiling a figure is implausible whatever the deployment is.
TENTH = 0.1
#: Below this share of the usual efficiency something is wrong: half, since the published figures vary by two.
HALF = 0.5
#: Steps longer than this hide the host's own time behind the reading of weights.
LONG_STEP = 0.020
#: Steps shorter than this are mostly the host's time: nothing follows from the hardware.
SHORT_STEP = 0.001
PREFILL = "prefill-tok-s"
SPARSE, LONG, BRIEF, MANY, PROMPT = 0.30, 0.60, 0.50, 0.45, 0.30

EAGER = re.compile(
    r"Enforce eager set, disabling|[Cc]udagraph is disabled under eager mode|enforce_eager=True\b"
)
_LOG_CAUSES = (
    (
        re.compile(
            r"does not have native support for FP[48]|Using '?MARLIN|Weight-only FP[48]", re.IGNORECASE
        ),
        "a kernel for other hardware: weights are unpacked for every multiplication",
    ),
    (re.compile(r"fall(?:ing|s)? back to|fell back to", re.IGNORECASE), "a kernel fell back to a slow one"),
    (re.compile(r"Using default (?:MoE|W8A8)", re.IGNORECASE), "kernels are not tuned for this GPU"),
    (
        re.compile(r"device_config=(?:device\()?(?:type=)?'?cpu|backend:? cpu\b", re.IGNORECASE),
        "it runs on the CPU",
    ),
)


class Place(StrEnum):
    """Where a figure lies."""

    IMPOSSIBLE = "above the ceiling"
    USUAL = "usual"
    LOW = "far below what is usual"
    IMPLAUSIBLE = "under a tenth of the ceiling"
    UNTOLD = "not told"


@dataclass(frozen=True)
class Standing:
    """A measured figure beside its ceiling.

    Args:
        limit: `decode-tok-s`, `aggregate-tok-s` or `prefill-tok-s`.
        measured: tokens per second.
        ceiling: tokens per second that hardware and model allow.
        usual: the least efficiency that is usual; 0 where nothing is known.
        place: where it lies.
        causes: what is likely behind it, the likeliest first; empty when it is usual.
    """

    limit: str
    measured: float
    ceiling: float
    usual: float
    place: Place
    causes: tuple[str, ...] = ()

    @property
    def efficiency(self) -> float:
        """Measured over ceiling."""
        return self.measured / self.ceiling

    @property
    def possible(self) -> bool:
        """Whether it is not above the ceiling."""
        return self.place is not Place.IMPOSSIBLE

    @property
    def low(self) -> bool:
        """Whether it is far below what is usual, or under a tenth of the ceiling."""
        return self.place in (Place.LOW, Place.IMPLAUSIBLE)

    def __str__(self) -> str:
        """`35 tok/s, 15 % of the ceiling of 228, usual are 50 % and more: …`."""
        told = (
            f"{_number(self.measured)} tok/s, {self.efficiency:.0%} of the ceiling of {_number(self.ceiling)}"
        )
        if self.low and self.usual:
            told += f", usual are {self.usual:.0%} and more"
        return f"{told}: {'; '.join(self.causes)}" if self.causes else told


class Roofline:
    """What hardware and model allow, and how measured figures stand to it.

    Args:
        figures: the deployment's ceilings.
        log: the server's log lines; causes are chosen by them. Empty where there is no log.
    """

    def __init__(self, figures: Figures, log: Iterable[str] = ()) -> None:
        """Lines are read once."""
        self.figures = figures
        self._log = tuple(log)

    @property
    def eager(self) -> bool:
        """Whether a GPU does without CUDA graphs and compiled kernels, by arguments or log.

        On a CPU there are no graphs to do without.
        """
        if self.figures.hardware.vendor == "cpu":
            return False
        return bool(self.figures.args.get("enforce-eager")) or any(map(EAGER.search, self._log))

    def usual(self, limit: str, load: Load | None = None) -> float:
        """The least efficiency that is usual for a limit; 0 where nothing is known of such a deployment."""
        figures, load = self.figures, load or Load()
        if figures.hardware.vendor == "cpu":
            return 0.0
        if limit == PREFILL:
            return PROMPT
        if limit == "aggregate-tok-s" and load.streams > 1:
            return min(MANY, SPARSE) if figures.model.experts else MANY
        step = figures.step_seconds(1, 0)
        if step < SHORT_STEP or limit not in ("decode-tok-s", "aggregate-tok-s"):
            return 0.0
        if figures.model.experts:
            return SPARSE
        return LONG if step >= LONG_STEP else BRIEF

    def lines(self) -> list[str]:
        """What is to be expected, for `pytest-vllm show` and preflight, one line for each limit."""
        found = []
        for limit, streams in (
            ("decode-tok-s", 1),
            ("aggregate-tok-s", self.figures.max_num_seqs),
            (PREFILL, 1),
        ):
            load = Load(streams)
            ceiling, share = self.figures.ceiling(limit, load), self.usual(limit, load)
            if ceiling and share:
                at = f" with {streams} streams" if streams > 1 else ""
                least, low = ceiling * share, ceiling * share * HALF
                found.append(
                    f"{limit:<15} {share:.0%} of the ceiling{at} and more is usual: {_number(least)} tok/s; "
                    f"below {_number(low)} something is wrong"
                )
        return [f"{'eager mode':<15} decoding is slower by far"] * self.eager + found

    def standing(self, limit: str, measured: float, load: Load | None = None) -> Standing | None:
        """A measured figure beside its ceiling; None for limits without one.

        Args:
            limit: the name of a limit in tokens per second.
            measured: tokens per second.
            load: what it was measured under; one stream unless told otherwise.
        """
        ceiling = self.figures.ceiling(limit, load or Load())
        if not ceiling or not limit.endswith("-tok-s"):
            return None
        usual = self.usual(limit, load)
        place = self._place(limit, measured / ceiling, usual)
        return Standing(limit, measured, ceiling, usual, place, tuple(self._causes(limit, place)))

    def _place(self, limit: str, efficiency: float, usual: float) -> Place:
        drafted = bool(self.figures.args.get("speculative-config")) and limit != PREFILL
        if efficiency > 1 + MARGIN and not drafted:
            return Place.IMPOSSIBLE
        if limit != PREFILL and self.figures.step_seconds(1, 0) < SHORT_STEP:
            return Place.UNTOLD
        if efficiency < TENTH:
            return Place.IMPLAUSIBLE
        bar = usual if self.eager else usual * HALF
        return Place.LOW if efficiency < bar else Place.USUAL

    def _causes(self, limit: str, place: Place) -> Iterator[str]:
        if place is Place.IMPOSSIBLE:
            yield from self._too_fast(limit)
        elif place in (Place.LOW, Place.IMPLAUSIBLE):
            yield from self._too_slow(limit)

    def _too_fast(self, limit: str) -> Iterator[str]:
        if limit == PREFILL:
            yield "the prompt came out of the prefix cache"
        else:
            yield "tokens are counted that no step made"
        yield "another model, or other hardware, than the profile names"
        yield "the answers are not right"

    def _too_slow(self, limit: str) -> Iterator[str]:
        args, model = self.figures.args, self.figures.model
        if self.eager:
            yield "eager mode: no CUDA graphs and no compiled kernels; leave enforce-eager out"
        for pattern, cause in _LOG_CAUSES:
            if self.figures.hardware.vendor != "cpu" and any(map(pattern.search, self._log)):
                yield cause
        if model.hybrid and limit != "decode-tok-s" and args.get("enable-chunked-prefill") is not False:
            yield "chunked prefill on a hybrid model: try no-enable-chunked-prefill, or larger chunks"
        if limit == PREFILL and (chunk := args.get("max-num-batched-tokens")) and chunk < 2048:
            yield f"prompts are computed {chunk} tokens at a time (max-num-batched-tokens)"
        yield "the GPU is shared, throttled or power-capped"
        if not self._log:
            yield "there is no log to say more: which kernels were chosen, and is it the GPU that computes?"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
