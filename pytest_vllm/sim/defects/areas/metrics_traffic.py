"""Defects of what is counted: requests, tokens, times."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.make import metric
from pytest_vllm.sim.defects.registry import add

if TYPE_CHECKING:
    from collections.abc import Callable

_SAMPLE = re.compile(r"^([\w:]+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)


def _sum(text: str, name: str, label: str = "") -> float:
    """All values of a name whose labels hold a text."""
    return sum(float(v) for n, labels, v in _SAMPLE.findall(text) if n == name and label in labels)


def _set(text: str, name: str, label: str, value: Callable[[float], float]) -> str:
    line = re.compile(rf"^({re.escape(name)}\{{[^}}]*{re.escape(label)}[^}}]*\}}) (\S+)$", re.MULTILINE)
    return line.sub(lambda found: f"{found[1]} {value(float(found[2]))}", text)


def _text(name: str, summary: str, spoiled: Callable[[str], str], **facts: Any) -> None:
    def rewritten(text: str, engine: Any) -> str:
        del engine
        return spoiled(text)

    add(name, summary, {"metrics": rewritten}, **facts)


def _lag(name: str) -> float:
    return 0.19 if "first_token" in name else 0.15 if "queue" in name else 0.12


SUCCESS = "vllm:request_success_total"
E2E = "vllm:e2e_request_latency_seconds"
FIRST = "vllm:time_to_first_token_seconds"

metric(
    "metrics.generation-flat",
    "The counter of generated tokens stays 0.",
    "vllm:generation_tokens_total",
    lambda value: value * 0,
    catches=["metrics.tokens.generation"],
)
metric(
    "metrics.prompt-counted-twice",
    "Prompt tokens are counted when they are queued and when they are computed.",
    "vllm:prompt_tokens_total",
    lambda value: value * 2,
    catches=["metrics.tokens.prompt"],
)
metric(
    "metrics.sizes-of-finished-only",
    "The histogram of generated tokens leaves the last token of each request out.",
    "vllm:request_generation_tokens_sum",
    lambda value: value * 7 / 8,
    faults=["METRIC-008"],
    catches=["metrics.tokens.per-request"],
)
_text(
    "metrics.length-counted-as-stop",
    "Requests that end at their token limit are counted as `stop`.",
    lambda text: _set(
        _set(text, SUCCESS, '"stop"', lambda value: value + _sum(text, SUCCESS, '"length"')),
        SUCCESS,
        '"length"',
        lambda value: value * 0,
    ),
    catches=["metrics.requests.length"],
)
_text(
    "metrics.stop-not-counted",
    "Requests that meet a stop token are not counted as finished.",
    lambda text: _set(text, SUCCESS, '"stop"', lambda value: value * 0),
    catches=["metrics.requests.stop"],
)
_text(
    "metrics.refusals-counted-as-served",
    "Refused requests are counted as finished ones, and as HTTP answers with 200.",
    lambda text: re.sub(
        r'^http_requests_total\{.*status="4xx".*\n',
        "",
        _set(
            text, SUCCESS, '"stop"', lambda value: value + _sum(text, "http_requests_total", 'status="4xx"')
        ),
        flags=re.MULTILINE,
    ),
    catches=["metrics.requests.refused", "metrics.requests.http-status"],
)
_text(
    "metrics.counters-of-another-process",
    "Each scrape meets another API server, which knows its own requests only.",
    lambda text: (
        _set(text, "vllm:generation_tokens_total", "model_name", lambda value: value * 0)
        if _sum(text, SUCCESS) % 2
        else text
    ),
    faults=["METRIC-007"],
    catches=["metrics.tokens.generation"],
)
_text(
    "metrics.counter-falls",
    "The counter of preemptions is lowered with every request.",
    lambda text: _set(
        text,
        "vllm:num_preemptions_total",
        "model_name",
        lambda value: value + 1e6 - _sum(text, "http_requests_total"),
    ),
    catches=["metrics.counters.never-fall"],
)
_text(
    "metrics.first-tokens-not-counted",
    "The time to the first token is observed for streams only.",
    lambda text: re.sub(rf"^({FIRST}_(?:count|bucket)\S*) \S+$", r"\1 0.0", text, flags=re.MULTILINE),
    catches=["metrics.latency.counted"],
)
metric(
    "metrics.gaps-for-every-token",
    "Times between tokens are counted twice for each token.",
    "vllm:inter_token_latency_seconds_(?:count|bucket|sum)",
    lambda value: value * 2,
    catches=["metrics.latency.between-tokens"],
)
metric(
    "metrics.first-token-after-last",
    "The time to the first token is told in milliseconds.",
    f"{FIRST}_sum",
    lambda value: value * 1000,
    faults=["PERF-008"],
    catches=["metrics.latency.order"],
)
_text(
    "metrics.latency-since-epoch",
    "Requests are timed from before they were sent, refused ones as well.",
    lambda text: re.sub(
        r"^(vllm:(?:request_queue_time|e2e_request_latency|time_to_first_token)_seconds_sum\S*) (\S+)$",
        lambda found: (
            f"{found[1]} {float(found[2]) + _lag(found[1]) * _sum(text, 'http_requests_total'):.3f}"
        ),
        text,
        flags=re.MULTILINE,
    ),
    catches=["metrics.latency.order", "metrics.latency.failed-request", "metrics.latency.like-client"],
)
metric(
    "metrics.cache-lookups-in-blocks",
    "Lookups in the prefix cache are counted in blocks instead of tokens.",
    "vllm:prefix_cache_queries_total",
    lambda value: value // 16,
    catches=["metrics.prefix-cache.queries"],
)
_text(
    "metrics.hits-for-every-request",
    "Every request counts a thousand tokens as found in the prefix cache.",
    lambda text: _set(
        text, "vllm:prefix_cache_hits_total", "model_name", lambda value: value + 1000 * _sum(text, SUCCESS)
    ),
    area="cache",
    catches=["cache.cold.no-hits", "metrics.prefix-cache.hits"],
)
_text(
    "metrics.running-never-falls",
    "The gauge of running requests keeps the last batch once nothing runs.",
    lambda text: _set(text, "vllm:num_requests_running", "model_name", lambda value: max(value, 1.0)),
    catches=["metrics.idle.requests"],
)
metric(
    "metrics.cache-usage-never-falls",
    "The usage of the cache counts what is findable as used.",
    "vllm:kv_cache_usage_perc",
    lambda value: max(value, 0.4),
    catches=["metrics.idle.cache"],
)
