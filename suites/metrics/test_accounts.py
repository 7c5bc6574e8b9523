"""Whatever was served, with one prompt or many, one choice or several: the counters grow by what it cost."""

from __future__ import annotations

from pytest_vllm import MUST, Recording, Recordings, Server, check, listed, need, only_if

from .scrapes import Traffic, others_in, usage_of

CONTRACT = "vllm:usage/metrics/"
BATCH = "fault:vllm-project/vllm/pull/2869"
FIRST = "fault:vllm-project/vllm/issues/8115"
NEEDS = ("metrics", "completions")
#: Exchanges between two scrapes.
SCRAPED = ("metrics.", "memory.finished", "memory.many", "cache.cold", "cache.warm", "cache.longer")
FINISHED = "vllm:request_success_total"
#: Engines among which eight prompts are surely shared out.
SHARED = 4
#: Histograms that hold each finished request once.
ONCE = (
    "request_prompt_tokens",
    "request_generation_tokens",
    "time_to_first_token_seconds",
    "e2e_request_latency_seconds",
    "request_queue_time_seconds",
    "request_prefill_time_seconds",
    "request_decode_time_seconds",
    "request_inference_time_seconds",
)


def served(recordings: Recordings) -> list[tuple[Recording, Traffic]]:
    """The exchanges that generated something, each with what it did to the metrics.

    Where another request was counted meanwhile, nothing can be told; a busy server counts one so late that
    had ended before. Raises Undecided when that is so of half of them.
    """
    kept = [
        one
        for prefix in SCRAPED
        for one in recordings.of(prefix)
        if one.status == 200
        and not one.error
        and not one.aborted
        and one.metrics_before
        and one.metrics_after
    ]
    need(kept, "nothing was served between two scrapes")
    why = {one.key: others_in(one) for one in kept}
    alone = [one for one in kept if not why[one.key]]
    need(len(alone) * 2 > len(kept), next(filter(None, why.values()), ""))
    return [(one, Traffic(one)) for one in alone]


def choices(recording: Recording) -> int:
    """How many answers each of them gets."""
    return int(recording.request.json.get("n") or 1)


def once(recording: Recording) -> tuple[int, int]:
    """How often something of its prompts may be counted: once for each, or once for each choice."""
    return recording.request.prompts, recording.request.prompts * choices(recording)


@check("metrics.accounts.prompts", MUST, spec=BATCH, needs=NEEDS, exchanges=SCRAPED)
def test_prompts(vllm_recordings: Recordings) -> None:
    """Prompt tokens are counted for every prompt, once or once for each choice."""
    wrong = [
        f"{one.key}: counted {grown:.0f}, usage {used}, {choices(one)} choices"
        for one, traffic in served(vllm_recordings)
        for grown, used in [(traffic.grown("vllm:prompt_tokens_total"), usage_of(one)["prompt_tokens"])]
        if grown not in (used, used * choices(one))
    ]

    assert not wrong, listed(wrong)


@check("metrics.accounts.answers", MUST, spec=CONTRACT, needs=NEEDS, exchanges=SCRAPED)
def test_answers(vllm_recordings: Recordings) -> None:
    """Generated tokens are counted for every prompt and choice."""
    wrong = [
        f"{one.key}: counted {grown:.0f}, usage {used}"
        for one, traffic in served(vllm_recordings)
        for grown, used in [
            (traffic.grown("vllm:generation_tokens_total"), usage_of(one)["completion_tokens"])
        ]
        if grown != used
    ]

    assert not wrong, listed(wrong)


@check("metrics.accounts.requests", MUST, spec=CONTRACT, needs=NEEDS, exchanges=SCRAPED)
def test_requests(vllm_recordings: Recordings) -> None:
    """Every prompt is counted as finished, once or once for each choice."""
    wrong = [
        f"{one.key}: counted {grown:.0f}, {one.request.prompts} prompts, {choices(one)} choices"
        for one, traffic in served(vllm_recordings)
        if (grown := traffic.grown(FINISHED)) not in once(one)
    ]

    assert not wrong, listed(wrong)


@check("metrics.accounts.histograms", MUST, spec=FIRST, needs=NEEDS, exchanges=SCRAPED)
def test_histograms(vllm_recordings: Recordings) -> None:
    """Each histogram holds every finished prompt once, or once for each choice."""
    wrong = [
        f"{one.key}: {name} counts {grown:.0f}, {one.request.prompts} prompts, {choices(one)} choices"
        for one, traffic in served(vllm_recordings)
        for name in ONCE
        if traffic.has(f"vllm:{name}_count")
        and (grown := traffic.grown(f"vllm:{name}_count")) not in once(one)
    ]

    assert not wrong, listed(wrong)


@check(
    "metrics.engines.shared",
    MUST,
    spec="fault:vllm-project/vllm/issues/48808",
    needs=NEEDS,
    exchanges=["memory.many"],
)
def test_engines(vllm_recordings: Recordings, vllm_server: Server) -> None:
    """Of eight prompts that come at once each engine computes some."""
    traffic = Traffic(vllm_recordings.get("memory.many"))
    names = {one.labels.get("engine", "") for one in traffic.after.named("vllm:num_requests_running")}
    only_if(len(names) > 1, "there is one engine")
    only_if(len(names) <= SHARED, f"{len(names)} engines are more than prompts can be spread over")
    only_if(vllm_server.at_least("0.11.0"), "before 0.11 an engine's load was told too late for that")
    counts = {name: traffic.grown(FINISHED, engine=name) for name in sorted(names)}
    need(sum(counts.values()) > SHARED, f"finished were {counts}")

    assert all(counts.values()), f"requests finished by engine: {counts}"
