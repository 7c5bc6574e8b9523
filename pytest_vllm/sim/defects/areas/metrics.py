"""Defects of `/metrics`: families, values, the text itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.make import answers, metric
from pytest_vllm.sim.defects.registry import add

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.reply import Exchange, Reply

HERE = ("/metrics",)


def _text(name: str, summary: str, spoiled: Callable[[str], str], **facts: Any) -> None:
    """A defect of the whole text of a scrape."""

    def rewritten(text: str, engine: Any) -> str:
        del engine
        return spoiled(text)

    add(name, summary, {"metrics": rewritten}, **facts)


def _each(pattern: str, repl: str | Callable[[re.Match[str]], str]) -> Callable[[str], str]:
    found = re.compile(pattern, re.MULTILINE)
    return lambda text: found.sub(repl, text)


answers("metrics.gone", "The metrics route ends in an error.", HERE, 503, b"{}", catches=["metrics.answered"])
_text(
    "metrics.unreadable",
    "A label's value is not quoted, so that nothing of the scrape can be read.",
    _each(r'finished_reason="(\w+)"', r"finished_reason=\1"),
    catches=["metrics.text.readable"],
)


def _page(text: str, engine: Any) -> str:
    del engine
    return f"<html><body><pre>{len(text)} metrics</pre></body></html>\n"


def _labelled(reply: Reply, exchange: Exchange) -> Reply:
    if exchange.path.startswith(HERE):
        reply.headers = [("content-type", "text/html")]
    return reply


add(
    "metrics.page-for-people",
    "The metrics are a page of HTML.",
    {"metrics": _page, "reply": _labelled},
    catches=["metrics.text.readable", "metrics.text.content-type"],
)
metric(
    "metrics.nan",
    "The usage of the cache is NaN while nothing runs.",
    "vllm:kv_cache_usage_perc",
    lambda value: value or float("nan"),
    catches=["metrics.text.finite"],
)
metric(
    "metrics.below-zero",
    "The gauge of waiting requests is decremented once too often.",
    "vllm:num_requests_waiting",
    lambda value: value - 1,
    faults=["METRIC-005"],
    catches=["metrics.text.not-negative"],
)
_text(
    "metrics.sample-twice",
    "Two processes export the same values under the same labels.",
    _each(r"^(vllm:num_requests_running\{.*\n)", r"\1\1"),
    faults=["METRIC-007"],
    catches=["metrics.text.unique"],
)
_text(
    "metrics.buckets-not-cumulative",
    "The buckets of a histogram count each value once instead of up to their bounds.",
    _each(r'^(vllm:time_to_first_token_seconds_bucket\{.*le="\+Inf".*\}) \S+$', r"\1 0.0"),
    catches=["metrics.text.buckets-grow", "metrics.text.buckets-complete"],
)
metric(
    "metrics.count-apart",
    "The count of a histogram is one more than its buckets hold.",
    "vllm:e2e_request_latency_seconds_count",
    lambda value: value + 1,
    catches=["metrics.text.buckets-complete"],
)
metric(
    "metrics.running-missing",
    "The gauge of running requests is missing.",
    "vllm:num_requests_running",
    None,
    faults=["METRIC-012"],
    catches=["metrics.families.present"],
)
_text(
    "metrics.old-names",
    "The cache's metrics have the names that they had before 0.11.",
    _each(r"vllm:(kv_cache_usage_perc|prefix_cache_)", r"vllm:gpu_\1"),
    faults=["METRIC-001", "METRIC-003", "METRIC-004"],
    catches=["metrics.families.present"],
)
_text(
    "metrics.token-time-renamed",
    "The time between tokens has another name than in any version.",
    _each(r"vllm:(?:inter_token_latency|time_per_output_token)_seconds", "vllm:token_seconds"),
    faults=["METRIC-010"],
    catches=["metrics.families.present"],
)
_text(
    "metrics.family-empty",
    "The counter of preemptions is declared and has no value.",
    _each(r"^vllm:num_preemptions_total\{.*\n", ""),
    catches=["metrics.families.filled"],
)
_text(
    "metrics.untyped",
    "Gauges are declared without a type.",
    _each(r"^(# TYPE vllm:num_requests_\w+) gauge$", r"\1 untyped"),
    catches=["metrics.families.types"],
)
_text(
    "metrics.no-engine-label",
    "Values of several engines cannot be told apart: the label is missing.",
    _each(r'engine="0",', ""),
    catches=["metrics.families.labels"],
)
_text(
    "metrics.model-by-path",
    "The label `model_name` is the folder of the weights instead of the served name.",
    _each(r'model_name="[^"]*"', 'model_name="/models/snapshot"'),
    catches=["metrics.families.model"],
)
_text(
    "metrics.cache-size-untold",
    "`cache_config_info` is exported before the number of blocks is known.",
    _each(r'num_gpu_blocks="\d+"', 'num_gpu_blocks="None"'),
    catches=["metrics.cache.size-told"],
)
_text(
    "metrics.cache-size-wrong",
    "`cache_config_info` tells a size in tokens that its blocks do not hold, and a usage in percent.",
    lambda text: _each(r'kv_cache_size_tokens="(\d+)"', r'kv_cache_size_tokens="1\1"')(
        _each(r"^(vllm:kv_cache_usage_perc\{.*\}) \S+$", r"\1 40.0")(text)
    ),
    catches=["metrics.cache.fraction", "metrics.cache.size-adds-up"],
)
