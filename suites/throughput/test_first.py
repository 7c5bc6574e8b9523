"""The first request after a server said that it is ready: what is compiled or captured only then."""

from __future__ import annotations

from typing import Any

from pytest_vllm import (
    MUST,
    PERFORMANCE,
    Profile,
    Recording,
    Recordings,
    Server,
    check,
    need,
    observe,
    only_if,
)

#: Seconds that the first chat may take more than later ones, where the profile does not say: what is silent
#: for a minute is cut by proxies.
WARMING = 60.0
#: Seconds by our clock that any busy host may hold up an answer.
NOISE = 0.5
FIRST = "throughput.first-request"


def taken(recording: Recording) -> float:
    """Seconds of the server's clock until a chat was answered. Raises Undecided where it was not."""
    need(recording.status == 200, f"{recording.key} was answered with {recording.status or recording.error}")
    return recording.seconds * speed(recording)


def speed(recording: Recording) -> float:
    """How fast the server's clock runs: 1 but for a simulator that says otherwise."""
    return float(recording.header("x-sim-speed") or 1.0)


@check(
    "throughput.first-request.warm",
    MUST,
    spec="fault:vllm-project/vllm/issues/43009",
    family=PERFORMANCE,
    needs=("chat",),
    tier="gate",
    exchanges=(FIRST, "throughput.later-request"),
)
def test_first(vllm_profile: Profile, vllm_server: Server, vllm_recordings: Recordings) -> None:
    """The first chat after the server is ready takes a minute more, at most."""
    only_if(
        vllm_server.launcher != "attach", "which request is its first is not known: it was not started here"
    )
    first = vllm_recordings.get(FIRST)
    seconds, then = taken(first), min(map(taken, vllm_recordings.of("throughput.later-request")))
    bound: Any = vllm_profile.limits.get("first-request")
    limit = bound.max if bound and isinstance(bound.max, int | float) else then + WARMING
    observe("a short chat", f"the first {seconds:.3g} s, later {then:.3g} s")

    assert seconds <= limit + NOISE * (speed(first) - 1), (
        f"{seconds:.3g} s, later {then:.3g} s: something is compiled or captured once the server says it is "
        "ready; send a warm-up request before clients do, or set [limits] first-request"
    )
