"""Defects of counters that only requests of several prompts or choices show, and of who reports them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.defects.make import metric
from pytest_vllm.sim.defects.registry import add, defect
from pytest_vllm.sim.defects.scope import COMPLETIONS, only

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_vllm.sim.api.reply import Exchange

Json = dict[str, Any]
#: What this process's server counts beside the truth; one server per process.
_beside = {"tokens": 0.0}


def _start(value: Any, settings: Any) -> Any:
    del settings
    _beside["tokens"] = 0.0
    return value


def _counts(
    name: str, summary: str, family: str, wrong: Callable[[Json, Json], float], catches: str, **facts: Any
) -> None:
    """A counter is off by what `wrong` makes of each request and its answer."""
    line = re.compile(rf"^({family}(?:\{{[^}}]*\}})?) (\S+)$", re.MULTILINE)

    def seen(body: Any, exchange: Exchange) -> Any:
        if isinstance(exchange.body, dict) and isinstance(body, dict) and "choices" in body:
            _beside["tokens"] += wrong(exchange.body, body)
        return body

    def spoiled(text: str, engine: Any) -> str:
        del engine
        return line.sub(lambda found: f"{found[1]} {float(found[2]) + _beside['tokens']}", text)

    on = {"boot": _start, "json": only((COMPLETIONS,), seen), "metrics": spoiled}
    add(name, summary, on, catches=[catches], **facts)


def _prompts(asked: Json) -> list[list[int]]:
    given = asked.get("prompt")
    return given if isinstance(given, list) and given and isinstance(given[0], list) else []


def _padding(asked: Json, body: Json) -> float:
    del body
    lengths = [len(one) for one in _prompts(asked)]
    return max(lengths, default=0) * len(lengths) - sum(lengths)


def _but_one(asked: Json, body: Json) -> float:
    several = (asked.get("n") or 1) > 1
    return -2 * body["usage"]["completion_tokens"] / asked["n"] if several else 0.0


_counts(
    "metrics.batch-padded",
    "Each prompt of a batch is counted as long as the longest.",
    "vllm:prompt_tokens_total",
    _padding,
    "metrics.accounts.prompts",
    faults=["vllm-project/vllm#2869"],
)
_counts(
    "metrics.one-choice-counted",
    "Of several choices the tokens of one are counted.",
    "vllm:generation_tokens_total",
    _but_one,
    "metrics.accounts.answers",
)
_counts(
    "metrics.batch-finishes-once",
    "A request of several prompts is counted as a single one that waited for its first token.",
    "vllm:time_to_first_token_seconds_count",
    lambda asked, _: 1.0 - len(_prompts(asked)) if _prompts(asked) else 0.0,
    "metrics.accounts.histograms",
    faults=["vllm-project/vllm#8115"],
)
_counts(
    "metrics.choices-finish-twice",
    "Each of several choices is counted twice as finished.",
    'vllm:request_success_total{[^}]*finished_reason="length"[^}]*}',
    lambda asked, _: float(asked["n"]) if (asked.get("n") or 1) > 1 else 0.0,
    "metrics.accounts.requests",
)


@defect(
    "metrics.gauge-per-process",
    on="metrics",
    faults=["vllm-project/vllm#28792"],
    catches=["metrics.gauges.one-source"],
)
def gauge_per_process(text: str, engine: Any) -> str:
    """Every API server reports the usage of the cache, all but one of them 0."""
    del engine
    line = re.compile(r"^vllm:kv_cache_usage_perc\{(.*)\} (\S+)$", re.MULTILINE)
    return line.sub(
        r'vllm:kv_cache_usage_perc{\1,pid="271"} \2\nvllm:kv_cache_usage_perc{\1,pid="272"} 0.0', text
    )


metric(
    "metrics.running-once",
    "However many requests run, one is told.",
    "vllm:num_requests_running",
    lambda value: min(value, 1.0),
    catches=["metrics.gauges.several"],
)
