"""What is told of several requests at once."""

from __future__ import annotations

from pytest_vllm import MUST, Recording, Recordings, Server, check, need, observe, only_if

from .exchanges import SEVERAL
from .scrapes import parsed

RUNNING, WAITING = "vllm:num_requests_running", "vllm:num_requests_waiting"


@check(
    "metrics.gauges.several",
    MUST,
    spec="vllm:usage/metrics/",
    needs=("metrics", "completions", "stream"),
    exchanges=["metrics.several", "metrics.several-scrape["],
)
def test_several(vllm_server: Server, metrics_several: Recording, vllm_recordings: Recordings) -> None:
    """While several prompts are answered at once more than one request runs."""
    only_if(vllm_server.max_num_seqs != 1, "the server takes one request at a time")
    told = [(gauge(one, RUNNING), gauge(one, WAITING)) for one in during(metrics_several, vllm_recordings)]
    running, waiting = (max(column) for column in zip(*told, strict=True))
    observe("running and waiting, at most", f"{running:.0f}, {waiting:.0f} of {SEVERAL}")
    only_if(running, "no scrape tells of a running request, which another check judges")
    only_if(running > 1 or not waiting, "one runs and others wait: that is this server's measure")

    assert running > 1, f"{running:.0f} runs and none waits, while {SEVERAL} are answered"


def gauge(scraped: Recording, name: str) -> float:
    """The value of a gauge over all engines."""
    return sum(sample.value for sample in parsed(scraped.text).named(name))


def during(streamed: Recording, recordings: Recordings) -> list[Recording]:
    """The scrapes that were answered while each of the streams went on."""
    need(streamed.status == 200, f"no stream: {streamed.status or streamed.error}")
    begun = {
        choice["index"]: event.at
        for event in reversed(streamed.events)
        if not event.is_done
        for choice in event.json.get("choices") or ()
    }
    only_if(len(begun) == SEVERAL, f"{len(begun)} of {SEVERAL} streams began")
    last = streamed.chunks[-1][0]
    found = [
        one
        for one in recordings.of("metrics.several-scrape[")
        if one.status == 200 and streamed.sent + max(begun.values()) <= one.sent
        if one.sent + one.seconds <= streamed.sent + last
    ]
    only_if(found, "no scrape was answered while the streams went on")
    return found
