"""The `vllm:` families of a version, filled from the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.api.admission import REASONS as ADMISSION
from pytest_vllm.sim.versions import Version, facts

if TYPE_CHECKING:
    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.engine.core import Engine

LATE = ("vllm:tool_call_parser_invocations_total",)
REASONS = ("stop", "length", "abort")
#: From here on V1 is the engine that runs unless told otherwise.
V1_SINCE = "0.8.0"
OLD_NAMES = {
    "gpu_cache_usage_perc": "kv_cache_usage_perc",
    "gpu_prefix_cache_queries_total": "prefix_cache_queries_total",
    "gpu_prefix_cache_hits_total": "prefix_cache_hits_total",
}


@dataclass
class Family:
    """One metric family: samples are (labels, number) or, for histograms, (labels, Histogram)."""

    name: str
    kind: str
    help: str
    samples: list[tuple[dict[str, str], Any]]


def families(server: Server, *, late: bool = False) -> list[Family]:
    """The families that this server exports, in vLLM's order; `late` gives those after the web layer's."""
    if server.settings.args.get("disable_log_stats"):
        return []
    table = facts("metrics")
    found = {
        name: entry
        for name, entry in table["families"].items()
        if exported(name, entry, server) and (name in LATE) == late
    }
    order = {name: number for number, name in enumerate(table["order"])}
    made = []
    for name in sorted(found, key=lambda name: order.get(name, len(order))):
        entry = found[name]
        samples = _of_all(name.removeprefix("vllm:"), entry, server)
        if samples is not None:
            made.append(
                Family(
                    name,
                    entry["type"],
                    entry["help"] or name.removeprefix("vllm:").replace("_", " "),
                    samples,
                )
            )
    return made


def exported(name: str, entry: dict[str, Any], server: Server) -> bool:
    """Whether the version exports a family under these settings."""
    version, settings = server.settings.version, server.settings
    engine = "V1" if version >= V1_SINCE else "V0"
    if not version.within(entry["span"]) or engine not in version.pick(entry["engines"]):
        return False
    when = [one for one in version.pick(entry["when"]) or [] if one != "type"]
    if when and "show_hidden_metrics" in when:
        return False
    if name.startswith("vllm:lora"):
        return settings.lora
    if name.startswith("vllm:spec_decode"):
        return bool(settings.args.get("speculative_config"))
    if name in LATE:
        return bool(settings.tool_parser)  # made where the parsers are
    return not when and not name.startswith("vllm:diffusion")


def _of_all(name: str, entry: dict[str, Any], server: Server) -> list[tuple[dict[str, str], Any]] | None:
    """The samples of every engine in turn; of what is not counted by engine those of the first."""
    labelled = "engine" in str(server.settings.version.pick(entry["labels"])) or "@base" in str(
        entry["labels"]
    )
    if name == "tool_call_parser_invocations_total":
        return _parser_calls(server)
    found: list[tuple[dict[str, str], Any]] = []
    ranked = labelled or (name == "cache_config_info" and server.settings.version >= V1_SINCE)
    for number, engine in enumerate(server.engines if ranked else server.engines[:1]):
        samples = _samples(name, entry, server, engine, {"engine": str(number)} if ranked else {})
        if samples is None:
            return None
        found += samples
    return found


def _samples(  # noqa: PLR0911 - one return per kind
    name: str, entry: dict[str, Any], server: Server, engine: Engine, rank: dict[str, str]
) -> list[tuple[dict[str, str], Any]] | None:
    settings = server.settings
    base = {"model_name": settings.name, **rank}
    stats = engine.stats
    if name in stats.histograms:
        return [(base, stats.histograms[name])]
    name = OLD_NAMES.get(name, name)
    labelled = _labelled(name, engine, settings.version)
    if labelled is not None:
        key, values = labelled
        return [({**base, key: label}, value) for label, value in values.items()]
    gauges = {
        "num_requests_running": len(engine.running),
        "num_requests_waiting": len(engine.waiting),
        "kv_cache_usage_perc": engine.pool.usage,
        "gpu_prefix_cache_hit_rate": _hit_rate(engine),
        "cpu_prefix_cache_hit_rate": -1,  # V0 says so where there is no such cache
    }
    if name in gauges:
        return [(base, gauges[name])]
    if name.startswith("spec_decode_num"):
        return _drafts(name, base, engine)
    if name == "cache_config_info":
        return [({**cache_config(server), **rank}, 1)]
    if entry["type"] == "histogram":
        return None
    return [(base, stats.counters[name.removesuffix("_total")])]


def _hit_rate(engine: Engine) -> float:
    counters = engine.stats.counters
    asked = counters["prefix_cache_queries"]
    return counters["prefix_cache_hits"] / asked if asked else -1


def _drafts(name: str, base: dict[str, str], engine: Engine) -> list[tuple[dict[str, str], Any]]:
    drafts = engine.drafts
    if "per_pos" in name:
        return [({**base, "position": str(at)}, count) for at, count in enumerate(drafts.accepted)]
    if "draft_tokens" in name:
        return [(base, drafts.tokens)]
    return [(base, sum(drafts.accepted) if "accepted" in name else drafts.made)]


def _labelled(  # noqa: PLR0911 - one return per family
    name: str, engine: Engine, version: Version
) -> tuple[str, dict[str, Any]] | None:
    stats = engine.stats
    fetched = stats.counters["external_prefix_cache_hits"]
    prompt, cached = stats.counters["prompt_tokens"], stats.counters["prompt_tokens_cached"]
    if name == "request_success_total":
        reasons = list(REASONS)
        reasons += ["error"] if version >= "0.12.0" else []
        reasons += ["repetition"] if version >= "0.17.0" else []
        return "finished_reason", {reason: stats.finished[reason] for reason in reasons}
    if name == "num_requests_waiting_by_reason":
        return "reason", {"capacity": len(engine.waiting), "deferred": 0}
    if name == "engine_sleep_state":
        asleep = int(engine.asleep)
        states = {"awake": 1 - asleep, "weights_offloaded": asleep, "discard_all": 0}
        return "sleep_state", states | (
            {"weights_offloaded": 0, "discard_all": asleep} if engine.bare else {}
        )
    if name == "prompt_tokens_by_source_total":
        return "source", {
            "local_compute": prompt - cached,
            "local_cache_hit": cached - fetched,
            "external_kv_transfer": fetched,
        }
    if name == "prompt_tokens_cached_by_source_total":
        return "source", {
            "device": cached - fetched,
            "host": fetched,
            "p2p": 0,
            "disk": 0,
            "external_unspecified": 0,
        }
    if name == "admission_rejections_total":
        return "reason", {reason: stats.rejected[reason] for reason in ADMISSION}
    return None


def _parser_calls(server: Server) -> list[tuple[dict[str, str], Any]]:
    return [
        (
            {"model_name": server.settings.name, "mode": mode, "outcome": outcome, "request_type": kind},
            server.parser_calls[(mode, outcome, kind)],
        )
        for mode in ("streaming", "non_streaming")
        for outcome in ("tool_call", "no_tool_call")
        for kind in ("chat_completions", "responses", "other")
    ]


def cache_config(server: Server) -> dict[str, str]:
    """The labels of cache_config_info."""
    settings, capacity = server.settings, server.settings.capacity
    version = settings.version
    # earlier ones export the whole configuration too, which their source does not spell out
    known = max(version, Version("0.8.5.post1"))
    labels = {
        name: field["value"]
        for name, field in facts("metrics")["cache_config"].items()
        if known.within(field["span"]) and known.text not in field["absent"]
    }
    values = {
        "block_size": capacity.block_size,
        "effective_attention_block_size": capacity.block_size,
        "num_gpu_blocks": capacity.num_blocks,
        "kv_cache_size_tokens": capacity.kv_tokens,
        "kv_cache_max_concurrency": f"{capacity.concurrency:.2f}",
        "enable_prefix_caching": capacity.prefix_caching,
        "cache_dtype": settings.args.get("kv_cache_dtype", "auto"),
        "gpu_memory_utilization": settings.args.get("gpu_memory_utilization", 0.92),
        "kv_cache_memory_bytes": settings.args.get("kv_cache_memory_bytes"),
        "user_specified_block_size": "block_size" in settings.args.given,
        "num_gpu_blocks_override": settings.args.get("num_gpu_blocks_override"),
    }
    labels |= {name: str(value) for name, value in values.items() if name in labels}
    return {**labels, "engine": "0"} if Version("0.8.0") <= version else labels
