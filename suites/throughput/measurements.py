"""Loads of the throughput suite: one stream, many streams, long prompts, a mix, more than fits at once."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any

from pytest_vllm import (
    Case,
    Figures,
    Goal,
    Kind,
    Measured,
    Profile,
    Prompts,
    Server,
    Workload,
    cases,
    measurement,
    only_if,
)

#: Tokens of an answer: of a crowd's, and otherwise.
FEW, MANY = 16, 128
#: Seconds that answers may take to end, once the load is over.
PATIENCE = 300.0
#: Requests at once, as a multiple of what the server batches, when it is overloaded.
OVERLOAD = 4
#: Sequences beyond which that many connections are not a quick check.
MOST = 512
#: Seconds in which a fixed number of requests is to be over.
CROWD = 60.0
#: Tokens of a long prompt.
LONG = 2000
#: Tokens of an answer in the mix.
MIXED = 48
#: Requests that show what a proxy costs.
RELAYED = 8
#: How much surer a speed is to be than the loss that is allowed, and the finest that is asked for.
SURE, FINEST = 3.0, 0.005
#: How well a speed is to be known that no bound is set for, so that loads can be compared.
ROUGH = 0.5
#: Tokens of an answer whose form is constrained; no other load asks for so many.
FORMED = 47

throughput_streams = cases(
    "throughput_streams",
    [
        {"id": "8", "streams": 8},
        {"id": "32", "streams": 32},
        {"id": "full", "streams": "full"},
        {"id": "promised", "streams": "promised"},
    ],
)

Bounds = tuple[float | None, float | None]


def bounds(profile: Profile, figures: Figures | None, name: str, streams: int | None = None) -> Bounds:
    """Floor and ceiling that the profile sets, at so many streams if told; None where it sets none."""
    bound = profile.limits.get(name)
    if bound is None or (streams is not None and bound.load.streams != streams):
        return None, None
    floor = figures.floor(name, bound) if figures else bound.min
    return (
        float(floor) if isinstance(floor, int | float) else None,
        float(bound.max) if isinstance(bound.max, int | float) else None,
    )


def goal(server: Server, profile: Profile, name: str, bound: Bounds) -> tuple[Goal, ...]:
    """What a load is to decide: its bound, and on a real server how it stands to a baseline."""
    worse = None if server.simulated else profile.limits.regression.get(name)
    within = None if worse is None else max(worse / SURE, FINEST)
    return () if bound == (None, None) and worse is None else (Goal(name, *bound, within=within),)


def answers(server: Server, load: Any, prompts: Prompts | None = None) -> tuple[Prompts, int]:
    """Prompts and tokens of an answer: as the bound's load says, else short ones with `MANY` tokens.

    Short answers would measure how prompts are read.
    """
    room = (server.max_model_len or 4096) // 4
    if load is not None and load.prompt:
        prompts = Prompts(tokens=min(load.prompt, 2 * room))
    return prompts or Prompts(tokens=64), min(load.output if load is not None and load.output else MANY, room)


def long_prompt(server: Server, asked: int | None = None) -> int:
    """Tokens of a long prompt that leaves room for an answer."""
    return min(asked or LONG, (server.max_model_len or 4 * LONG) // 2)


@measurement("throughput.decode", weight=1.5)
def throughput_decode(server: Server, profile: Profile, figures: Figures | None, budget: float) -> Workload:
    """One stream after the other, the server to itself."""
    bound = profile.limits.get("decode-tok-s")
    kind = Kind("one", *answers(server, bound.load if bound else None))
    wanted = goal(server, profile, "decode-tok-s", bounds(profile, figures, "decode-tok-s", 1))
    wanted += goal(server, profile, "tpot", bounds(profile, figures, "tpot", 1))
    return Workload(kinds=(kind,), seconds=budget, goals=wanted, patience=PATIENCE)


@measurement("throughput.aggregate")
def throughput_aggregate(
    server: Server, profile: Profile, figures: Figures | None, budget: float, throughput_streams: Case
) -> Workload:
    """So many streams all the time."""
    streams = streams_of(throughput_streams, server, profile)
    bound = profile.limits.get("aggregate-tok-s")
    load = bound.load if bound and bound.load.streams == streams else None
    longest = min(256, (server.max_model_len or 4096) // 2)
    prompts, output = answers(server, load, Prompts(tokens=64, spread=0.3, longest=longest))
    kind = Kind("many", prompts, output, varied=0.5)
    wanted = goal(server, profile, "aggregate-tok-s", bounds(profile, figures, "aggregate-tok-s", streams))
    wanted = wanted or (Goal("aggregate-tok-s", within=ROUGH),)
    return Workload(streams=streams, kinds=(kind,), seconds=budget, goals=wanted, patience=PATIENCE)


def streams_of(case: Case, server: Server, profile: Profile) -> int:
    """How many streams a case means on this server. Raises NotRun where it means nothing of its own."""
    full = server.max_num_seqs
    bound = profile.limits.get("aggregate-tok-s")
    if case["streams"] == "promised":
        only_if(bound, "the profile sets no aggregate-tok-s")
        promised = bound.load.streams if bound else 0
        only_if(promised not in (8, 32, full), f"the same as [{'full' if promised == full else promised}]")
        return promised
    only_if(full or case["streams"] != "full", "how many sequences the server batches is not known")
    streams = int((full or 0) if case["streams"] == "full" else case["streams"])
    only_if(full is None or streams <= full, f"the server batches {full} sequences")
    only_if(case["streams"] != "full" or streams not in (8, 32), f"the same as [{streams}]")
    only_if(streams <= MOST, f"{streams} streams are not a quick check")
    promised = bound is not None and bound.load.streams == streams
    only_if(
        not server.simulated or streams == full or promised,
        "a rehearsal has a full batch, and what the profile promises",
    )
    return streams


@measurement("throughput.prefill")
def throughput_prefill(server: Server, profile: Profile, figures: Figures | None, budget: float) -> Workload:
    """One long prompt after the other, nothing of it in the cache."""
    bound = profile.limits.get("prefill-tok-s")
    kind = Kind("long", Prompts(tokens=long_prompt(server, bound.load.prompt if bound else None)), 1)
    wanted = goal(server, profile, "prefill-tok-s", bounds(profile, figures, "prefill-tok-s", 1))
    return Workload(kinds=(kind,), seconds=budget, goals=wanted)


@measurement("throughput.first-token", weight=0.7)
def throughput_first_token(
    server: Server, profile: Profile, figures: Figures | None, budget: float
) -> Workload:
    """Prompts as long as the profile's ttft says, nothing of them in the cache."""
    bound = profile.limits.get("ttft")
    only_if(bound or "ttft" in profile.limits.regression, "the profile sets no ttft")
    load: Any = bound.load if bound else None
    kind = Kind("first", Prompts(tokens=long_prompt(server, (load and load.prompt) or 64)), 2)
    wanted = goal(server, profile, "ttft", bounds(profile, figures, "ttft"))
    return Workload(streams=load.streams if load else 1, kinds=(kind,), seconds=budget, goals=wanted)


@measurement("throughput.cached", weight=0.7)
def throughput_cached(server: Server, profile: Profile, figures: Figures | None, budget: float) -> Workload:
    """Prompts that begin alike, as long as the profile's ttft-cached says."""
    bound = profile.limits.get("ttft-cached")
    only_if(bound or "ttft-cached" in profile.limits.regression, "the profile sets no ttft-cached")
    tokens = long_prompt(server, bound.load.prompt if bound else None)
    kind = Kind("cached", Prompts(tokens=tokens, shared=int(tokens * 0.95)), 2)
    wanted = goal(server, profile, "ttft-cached", bounds(profile, figures, "ttft-cached"))
    return Workload(kinds=(kind,), seconds=budget, warmup=3, goals=wanted, cold=False)


@measurement("throughput.mixed", weight=0)
def throughput_mixed(server: Server) -> Workload:
    """Short questions with long answers beside long prompts with short answers."""
    streams = min(8, server.max_num_seqs or 8)
    short = Kind("short", Prompts(tokens=32), MIXED, share=3)
    long = Kind("long", Prompts(tokens=long_prompt(server)), 4, share=1)
    return Workload(streams=streams, requests=4 * streams, kinds=(short, long), seconds=CROWD)


@measurement("throughput.direct", weight=0)
def throughput_direct(profile: Profile) -> Workload:
    """A few streams, one after the other, straight to a server behind the proxy."""
    only_if(profile.deployment.proxy, "the profile names no proxy in front of the server")
    return replace(_relayed(), direct=True)


@measurement("throughput.proxied", weight=0)
def throughput_proxied(throughput_direct: Measured) -> Workload:
    """The same through the proxy."""
    only_if(not throughput_direct.skipped, throughput_direct.skipped)
    return _relayed()


def _relayed() -> Workload:
    return Workload(kinds=(Kind("relayed", Prompts(tokens=32), MIXED),), requests=RELAYED, seconds=CROWD)


@measurement("throughput.overload", weight=0)
def throughput_overload(server: Server) -> Workload:
    """Four times as many requests at once as the server batches, once."""
    full = server.max_num_seqs
    only_if(full, "how many sequences the server batches is not known")
    streams = OVERLOAD * (full or 0)
    only_if(streams <= OVERLOAD * MOST, f"{streams} streams are not a quick check")
    kind = Kind("crowd", Prompts(tokens=32), FEW)
    return Workload(streams=streams, requests=streams, kinds=(kind,), seconds=CROWD)


@measurement("throughput.decode-again", weight=0.3)
def throughput_decode_again(
    throughput_decode: Measured, throughput_mixed: Measured, throughput_overload: Measured
) -> Workload:
    """One stream as at first, once crowds and long prompts have come and gone."""
    del throughput_mixed, throughput_overload
    only_if(not throughput_decode.skipped, throughput_decode.skipped)
    return replace(throughput_decode.workload, goals=(Goal("decode-tok-s", within=ROUGH),))


@measurement("throughput.grammar", weight=0)
def throughput_grammar() -> Workload:
    """A form that was never asked for, several times."""
    name = f"field_{secrets.token_hex(4)}"
    schema = {"type": "object", "properties": {name: {"type": "integer"}}, "required": [name]}
    form = {"type": "json_schema", "json_schema": {"name": "form", "schema": schema}}
    return _formed({"response_format": form})


@measurement("throughput.tool", weight=0)
def throughput_tool() -> Workload:
    """A tool that was never offered, several times."""
    name = f"note_{secrets.token_hex(4)}"
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    function = {"name": name, "description": "Writes a note", "parameters": schema}
    return _formed({"tools": [{"type": "function", "function": function}], "tool_choice": "required"})


def _formed(params: dict[str, Any]) -> Workload:
    kind = Kind("formed", Prompts(tokens=24), None, params={**params, "max_tokens": FORMED}, chat=True)
    return Workload(kinds=(kind,), requests=6, warmup=0, seconds=CROWD, cold=False)
