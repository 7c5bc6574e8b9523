"""Loads of the throughput suite: one stream, many streams, long prompts, a mix, more than fits.

Answers are as long as the budget allows, so that several of them end within it: at least `FEW` tokens, at most
`MANY`.
"""

from __future__ import annotations

from pytest_vllm import (
    Case,
    Figures,
    Goal,
    Kind,
    Profile,
    Prompts,
    Server,
    Workload,
    cases,
    measurement,
    only_if,
)

FEW, MANY = 16, 128
#: Answers of one stream that shall end within the budget.
ANSWERS = 4
#: Requests at once, as a multiple of what the server batches, when it is overloaded.
OVERLOAD = 4

throughput_streams = cases(
    "throughput_streams",
    [
        {"id": "1", "streams": 1},
        {"id": "8", "streams": 8},
        {"id": "32", "streams": 32},
        {"id": "full", "streams": 0},
    ],
)


def bounds(
    profile: Profile, figures: Figures | None, name: str, streams: int = 1
) -> tuple[float | None, float | None]:
    """Floor and ceiling that the profile sets at so many streams; None where it sets none."""
    bound = profile.limits.get(name)
    if bound is None or bound.load.streams != streams:
        return None, None
    floor = figures.floor(name, bound) if figures else bound.min
    floor = float(floor) if isinstance(floor, int | float) else None
    return floor, float(bound.max) if isinstance(bound.max, int | float) else None


def goals(profile: Profile, figures: Figures | None, *names: str, streams: int = 1) -> tuple[Goal, ...]:
    """What the load is to decide."""
    found = ((name, *bounds(profile, figures, name, streams)) for name in names)
    return tuple(Goal(*one) for one in found if one[1] is not None or one[2] is not None)


def answer(server: Server, figures: Figures | None, budget: float, streams: int = 1) -> int:
    """Tokens of an answer, so that some of them end within the budget at half of the speed that may be."""
    rate = figures.decode_ceiling() / 2 if figures else 100.0
    if figures and streams > 1:
        rate = figures.aggregate_ceiling(streams) / streams / 2
    room = (server.max_model_len or 4096) // 4
    return max(FEW, min(MANY, room, int(budget * rate / ANSWERS)))


@measurement("throughput.decode", weight=1.5)
def throughput_decode(server: Server, profile: Profile, figures: Figures | None, budget: float) -> Workload:
    """One stream after the other, the server to itself."""
    kind = Kind("one", Prompts(tokens=64), answer(server, figures, budget))
    return Workload(
        kinds=(kind,), seconds=budget, warmup=2, goals=goals(profile, figures, "decode-tok-s", "tpot", "ttft")
    )


@measurement("throughput.aggregate")
def throughput_aggregate(
    server: Server, profile: Profile, figures: Figures | None, budget: float, throughput_streams: Case
) -> Workload:
    """So many streams all the time."""
    full = server.max_num_seqs
    streams = throughput_streams["streams"] or full or 0
    only_if(streams, "how many sequences the server batches is not known")
    only_if(full is None or streams <= full, f"the server batches {full} sequences")
    only_if(streams != full or not throughput_streams["streams"], "the same as [full]")
    kind = Kind("many", Prompts(tokens=64, spread=0.3, longest=256), answer(server, figures, budget, streams))
    return Workload(
        streams=streams,
        kinds=(kind,),
        seconds=budget,
        goals=goals(profile, figures, "aggregate-tok-s", streams=streams),
    )
