"""What the server says it has against what it was given: capacity, the cap on memory, preemptions."""

import re

from pytest_vllm import (
    ENVIRONMENT,
    MUST,
    SHOULD,
    Figures,
    Metrics,
    Reading,
    Recording,
    Server,
    check,
    need,
    observe,
    only_if,
)

from .test_capacity import NEEDS, tokens

Log = tuple[tuple[float, str], ...]
FORMULA = "profile:hardware"
UTILISATION = "vllm:configuration/engine_args/"
SIZE = re.compile(r"KV cache size: ([\d,]+) tokens")
PREEMPTED = "vllm:num_preemptions_total"
#: How far below the estimate the cache may be: what else lies in memory is guessed.
BELOW = 0.75
#: What a GPU holds beyond the share that vLLM keeps to: contexts, graphs, other libraries.
BEYOND = 0.03


@check("memory.capacity.told-alike", MUST, spec=UTILISATION, needs=NEEDS)
def test_told_alike(vllm_figures: Figures | None, vllm_log: Log, memory_finished: Recording) -> None:
    """Log and metrics report the same size of the KV cache."""
    only_if(vllm_log, "there is no log: the server was not started here")
    only_if(not (vllm_figures and vllm_figures.model.hybrid), "on hybrid models the log counts another way")
    found = [int(hit[1].replace(",", "")) for _, line in vllm_log if (hit := SIZE.search(line))]
    only_if(found, "this version's log does not report the size in tokens")
    told = tokens(memory_finished)

    assert told in found, f"the metrics report {told} tokens, the log {', '.join(map(str, found))}"


def computed(figures: Figures | None) -> tuple[int, int]:
    """Tokens that fit by the estimate, and with nothing but weights beside them."""
    only_if(figures, "the profile names no hardware and model")
    if figures is None:
        return 0, 0
    only_if(figures.hardware.vendor != "none", "the hardware does not exist")
    only_if(
        bool(figures.cache_layers) and all(one.grows for one in figures.cache_layers),
        "windows and recurrent states share the cache in ways that differ between versions",
    )
    only_if(not figures.args.get("num-gpu-blocks-override"), "num-gpu-blocks-override sets the size")
    expected = figures.kv_cache_tokens
    if figures.hardware.vendor == "cpu" or figures.args.get("kv-cache-memory-bytes"):
        return expected, expected
    most = (figures.utilization * figures.hardware.memory_bytes - figures.weight_bytes) * figures.devices
    return expected, round(most / figures.kv_bytes_per_token)


@check("memory.capacity.as-computed", SHOULD, spec=FORMULA, family=ENVIRONMENT, needs=NEEDS)
def test_as_computed(vllm_server: Server, vllm_figures: Figures | None, memory_finished: Recording) -> None:
    """The cache is as large as memory, weights and the model's shape allow."""
    only_if(vllm_server.launcher != "attach", "the memory of a server that was not started here is not known")
    expected, most = computed(vllm_figures)
    told = tokens(memory_finished)
    need(expected, "nothing is left for a cache by the figures of the hardware file")
    observe("tokens in the cache", f"{told}, {told / expected:.1%} of {expected} as computed")

    assert expected * BELOW <= told <= most, (
        f"it holds {told} tokens, {expected} follow from hardware and model, {most} at most"
    )


@check("memory.cap.respected", MUST, spec=UTILISATION, family=ENVIRONMENT, needs=("metrics",))
def test_cap(vllm_server: Server, vllm_figures: Figures | None, vllm_timeline: tuple[Reading, ...]) -> None:
    """The server takes no more of the GPU than `gpu-memory-utilization` allows."""
    only_if(vllm_figures and vllm_figures.hardware.vendor != "cpu", "the profile names no GPU")
    only_if(not (vllm_figures and vllm_figures.hardware.unified), "CPU and GPU share their memory")
    known = [one for one in vllm_timeline if one.free is not None and one.total]
    only_if(known, "nothing here reports the memory of the GPU")
    share = vllm_figures.utilization if vllm_figures else 1.0
    total = known[0].total or 0
    # a simulated GPU is there once its server is, and nobody else uses it
    before = total if vllm_server.simulated else known[0].free or 0
    taken = before - min(one.free or 0 for one in known)
    need(taken > 0, "the GPU's memory did not change while the server started")
    told = f"{taken / 2**30:.1f} of {total / 2**30:.1f} GiB, {taken / total:.1%}"
    observe("taken of the GPU", told)

    assert taken <= (share + BEYOND) * total, f"it takes {told}; {share:.0%} are allowed"


def preempted(scrape: str | None) -> float | None:
    """How many requests were put back so far, by the metrics; None when they do not say."""
    metrics = Metrics(scrape or "")
    return None if metrics.fault else metrics.value(PREEMPTED)


@check("memory.preempted.none", SHOULD, spec="vllm:configuration/optimization/", needs=NEEDS)
def test_preempted(memory_refused: Recording) -> None:
    """No request of this run was put back because the cache was full."""
    need(memory_refused.metrics_after, "the metrics were not scraped")
    count = preempted(memory_refused.metrics_after)
    need(count is not None, f"{PREEMPTED} is not there")

    assert not count, f"{count:.0f} requests"


@check("memory.preempted.alone", MUST, spec="vllm:configuration/optimization/", needs=NEEDS)
def test_preempted_alone(
    memory_finished: Recording, memory_longest_scored: Recording, memory_refused: Recording
) -> None:
    """A request that is alone on the server is never put back."""
    alone = (memory_finished, memory_longest_scored, memory_refused)
    counts = [(r.key, preempted(r.metrics_before), preempted(r.metrics_after)) for r in alone]
    told = [
        (key, after - before) for key, before, after in counts if before is not None and after is not None
    ]
    need(told, f"{PREEMPTED} is not there")
    wrong = [f"{key}: {times:.0f} times" for key, times in told if times]

    assert not wrong, "; ".join(wrong)
