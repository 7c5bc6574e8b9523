"""Wrong metrics, and requests that are not given up."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tests.unit.suites_b.breaks import Break, answered, changed, having, headed, one, raw, streamed

if TYPE_CHECKING:
    from pytest_vllm.wire.recording import Recording
    from tests.unit.suites_b.breaks import Change

SCRAPE, DONE = "metrics.scrape", "metrics.completion"
LABELS = '{engine="0",model_name="smollm2-135m"}'


def _set(key: str, name: str, value: float, *, labels: str = LABELS) -> Change:
    """A value of the scrape after an exchange, or of the scrape itself."""
    pattern = re.compile(rf"^({re.escape(name + labels)}) .*$", re.MULTILINE)

    def change(recording: Recording) -> Recording:
        if key == SCRAPE:
            text, count = pattern.subn(rf"\1 {value}", recording.text)
            assert count, f"{name}{labels} is not in the scrape"
            return recording.with_response(chunks=((0.1, text.encode()),))
        text, count = pattern.subn(rf"\1 {value}", recording.metrics_after or "")
        assert count, f"{name}{labels} is not in the scrape"
        return recording.with_response(metrics_after=text)

    return changed(one(key), change)


def _grown(key: str, name: str, by: float, *, labels: str = LABELS) -> Change:
    """A value that grew by so much over an exchange."""

    def change(recording: Recording) -> Recording:
        found = re.search(
            rf"^{re.escape(name + labels)} (\S+)$", recording.metrics_before or "", re.MULTILINE
        )
        assert found, f"{name}{labels} is not in the scrape"
        return _set(key, name, float(found[1]) + by, labels=labels)({key: recording})[key]

    return changed(one(key), change)


def _reason(name: str) -> str:
    return f'{{engine="0",finished_reason="{name}",model_name="smollm2-135m"}}'


def _no_buckets_grow(recording: Recording) -> Recording:
    lines = recording.text.splitlines()
    buckets = [
        place
        for place, line in enumerate(lines)
        if line.startswith("vllm:time_to_first_token_seconds_bucket")
    ]
    name, _, _ = lines[buckets[-2]].rpartition(" ")
    lines[buckets[-2]] = f"{name} 0.0"
    return recording.with_response(chunks=((0.1, "\n".join([*lines, ""]).encode()),))


METRICS = [
    Break("metrics fail", answered(SCRAPE, 500), ("metrics.answered",)),
    Break("no Prometheus text", answered(SCRAPE, 200, "vllm:x{ 1\n"), ("metrics.text.readable",)),
    Break(
        "marked as JSON", headed(one(SCRAPE), content_type="application/json"), ("metrics.text.content-type",)
    ),
    Break(
        "NaN",
        _set(SCRAPE, "vllm:kv_cache_usage_perc", float("nan")),
        ("metrics.text.finite", "metrics.cache.fraction"),
    ),
    Break("less than nothing", _set(SCRAPE, "vllm:num_requests_running", -1), ("metrics.text.not-negative",)),
    Break(
        "given twice",
        raw(
            SCRAPE, f"vllm:num_requests_waiting{LABELS} 0.0\n", f"vllm:num_requests_waiting{LABELS} 0.0\n" * 2
        ),
        ("metrics.text.unique", "metrics.gauges.one-source"),
    ),
    Break("a bucket shrinks", changed(one(SCRAPE), _no_buckets_grow), ("metrics.text.buckets-grow",)),
    Break(
        "a count of its own",
        _set(SCRAPE, "vllm:time_to_first_token_seconds_count", 1),
        ("metrics.text.buckets-complete",),
    ),
    Break(
        "a family gone",
        raw(SCRAPE, "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        ("metrics.families.present",),
    ),
    Break(
        "a family empty",
        raw(SCRAPE, f"vllm:num_preemptions_total{LABELS} 0.0\n", ""),
        ("metrics.families.filled",),
    ),
    Break(
        "another type",
        raw(SCRAPE, "# TYPE vllm:num_requests_running gauge", "# TYPE vllm:num_requests_running untyped"),
        ("metrics.families.types",),
    ),
    Break(
        "no engine",
        raw(
            SCRAPE,
            f"vllm:num_requests_running{LABELS}",
            'vllm:num_requests_running{model_name="smollm2-135m"}',
        ),
        ("metrics.families.labels",),
    ),
    Break("another model", raw(SCRAPE, "smollm2-135m", "gpt-4"), ("metrics.families.model",)),
    Break(
        "counted as stop",
        changed(
            one(DONE),
            lambda r: _grown(DONE, "vllm:request_success_total", 0, labels=_reason("length"))(
                {DONE: _grown(DONE, "vllm:request_success_total", 1, labels=_reason("stop"))({DONE: r})[DONE]}
            )[DONE],
        ),
        ("metrics.requests.length",),
    ),
    Break(
        "not counted",
        _grown(DONE, "vllm:request_success_total", 0, labels=_reason("length")),
        ("metrics.requests.length",),
    ),
    Break(
        "a stop not counted",
        _grown("metrics.stopped", "vllm:request_success_total", 0, labels=_reason("stop")),
        ("metrics.requests.stop",),
    ),
    Break(
        "a refusal counted",
        _grown("metrics.refused", "vllm:request_success_total", 1, labels=_reason("stop")),
        ("metrics.requests.refused",),
    ),
    Break(
        "a refusal counted as a success",
        changed(one("metrics.refused"), lambda r: r.with_response(metrics_after=r.metrics_before)),
        ("metrics.requests.http-status",),
    ),
    Break(
        "prompt tokens not counted", _grown(DONE, "vllm:prompt_tokens_total", 1), ("metrics.tokens.prompt",)
    ),
    Break(
        "generated tokens counted twice",
        _grown(DONE, "vllm:generation_tokens_total", 16),
        ("metrics.tokens.generation",),
    ),
    Break(
        "sizes of another request",
        _grown(DONE, "vllm:request_prompt_tokens_sum", 1),
        ("metrics.tokens.per-request",),
    ),
    Break(
        "no first token counted",
        _grown(DONE, "vllm:time_to_first_token_seconds_count", 0),
        ("metrics.latency.counted",),
    ),
    Break(
        "a gap for every token",
        _grown(DONE, "vllm:inter_token_latency_seconds_count", 8),
        ("metrics.latency.between-tokens",),
    ),
    Break(
        "the first token after the last",
        _grown(DONE, "vllm:time_to_first_token_seconds_sum", 60),
        ("metrics.latency.order",),
    ),
    Break(
        "more time than the client saw",
        _grown(DONE, "vllm:e2e_request_latency_seconds_sum", 60),
        ("metrics.latency.like-client",),
    ),
    Break(
        "a counter falls", _grown(DONE, "vllm:num_preemptions_total", -1), ("metrics.counters.never-fall",)
    ),
    Break(
        "lookups of blocks",
        _grown(DONE, "vllm:prefix_cache_queries_total", 4),
        ("metrics.prefix-cache.queries",),
    ),
    Break(
        "more hits than lookups",
        _grown(DONE, "vllm:prefix_cache_hits_total", 9999),
        ("metrics.prefix-cache.hits",),
    ),
    Break("one still runs", _set(DONE, "vllm:num_requests_running", 1), ("metrics.idle.requests",)),
    Break("the cache is held", _set(DONE, "vllm:kv_cache_usage_perc", 0.4), ("metrics.idle.cache",)),
    Break("a percentage", _set(SCRAPE, "vllm:kv_cache_usage_perc", 40.0), ("metrics.cache.fraction",)),
    Break("no size", raw(SCRAPE, 'num_gpu_blocks="', 'num_gpu_blocks="None'), ("metrics.cache.size-told",)),
    Break(
        "another size",
        raw(SCRAPE, 'kv_cache_size_tokens="', 'kv_cache_size_tokens="1'),
        ("metrics.cache.size-adds-up",),
    ),
]

LEFT, WHOLE, FOUR, STAYS = (
    "cancellation.stream",
    "cancellation.whole",
    "cancellation.choices",
    "cancellation.neighbour",
)
GENERATED = "vllm:generation_tokens_total"

CANCELLATION = [
    Break("the stream runs on", _set(LEFT, "vllm:num_requests_running", 1), ("cancellation.stream.freed",)),
    Break("the stream is finished", _grown(LEFT, GENERATED, 2048), ("cancellation.stream.stopped",)),
    Break("the answer waits on", _set(WHOLE, "vllm:num_requests_waiting", 1), ("cancellation.whole.freed",)),
    Break("the answer is finished", _grown(WHOLE, GENERATED, 2048), ("cancellation.whole.stopped",)),
    Break("a choice runs on", _set(FOUR, "vllm:num_requests_running", 3), ("cancellation.choices.freed",)),
    Break("a choice is finished", _grown(FOUR, GENERATED, 2100), ("cancellation.choices.stopped",)),
    Break("the cache is held", _set(LEFT, "vllm:kv_cache_usage_perc", 0.4), ("cancellation.cache-freed",)),
    Break(
        "counted twice",
        _grown(LEFT, "vllm:request_success_total", 2, labels=_reason("abort")),
        ("cancellation.counted",),
    ),
    Break("refused", answered("cancellation.round[first]", 429), ("cancellation.answered",)),
    Break(
        "dead afterwards",
        having("cancellation.after-round[third]", status=None, error="ConnectError: refused"),
        ("cancellation.alive", "cancellation.answered"),
    ),
    Break(
        "the neighbour is aborted",
        streamed(STAYS, lambda e: [(at, data.replace('"length"', '"abort"')) for at, data in e]),
        ("cancellation.neighbour.finishes",),
    ),
    Break(
        "the neighbour loses tokens",
        streamed(STAYS, lambda e: [(at, _fewer(data)) for at, data in e]),
        ("cancellation.neighbour.whole",),
    ),
    Break("the neighbour breaks off", streamed(STAYS, lambda e: e[:-1]), ("cancellation.neighbour.beside",)),
]


def _fewer(data: str) -> str:
    if '"usage"' not in data:
        return data
    chunk = json.loads(data)
    chunk["usage"]["completion_tokens"] = 7
    return json.dumps(chunk)
