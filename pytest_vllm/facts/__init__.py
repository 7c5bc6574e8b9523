"""What vLLM's versions have and lack: flags, parsers, routes, fields, metrics, log lines.

Read from the releases' own sources (0.6.4.post1 … 0.33.0); data/README.md says how, and how to add the next
version. Every function takes any version string: unsampled and vendor versions
(`0.10.1.1+381074ae.nv25.09`) get the facts of the nearest sampled one, an empty one those of the newest.
Standard library only.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from pytest_vllm.facts.flags import Flag, FlagStatus, canonical, flag_status, flags
from pytest_vllm.facts.surface import (
    Field,
    LogLine,
    Metric,
    Route,
    cache_config_labels,
    fields,
    guarded_prefixes,
    log_lines,
    metrics,
    routes,
)
from pytest_vllm.facts.timeline import entries, nearest, read, versions
from pytest_vllm.facts.version import Version, span, version_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Field",
    "Flag",
    "FlagStatus",
    "LogLine",
    "Metric",
    "Route",
    "Version",
    "batch_defaults",
    "cache_config_labels",
    "canonical",
    "fields",
    "flag_status",
    "flags",
    "guarded_prefixes",
    "log_lines",
    "metrics",
    "nearest",
    "notes",
    "parser_models",
    "parsers",
    "released",
    "routes",
    "span",
    "startup_errors",
    "version_of",
    "versions",
]


def released(version: str) -> str:
    """The date of the nearest sampled release, `YYYY-MM-DD`."""
    date: str = read("versions")["entries"][nearest(version)]["date"]
    return date


@cache
def parsers(kind: Literal["tool", "reasoning"], version: str = "") -> tuple[str, ...]:
    """Names that `--tool-call-parser` or `--reasoning-parser` takes in a version, sorted."""
    return tuple(
        sorted(key.partition("/")[2] for key in entries("parsers", version) if key.startswith(f"{kind}/"))
    )


def parser_models(kind: Literal["tool", "reasoning"], name: str) -> tuple[str, ...]:
    """Model ids (with `*`) that vLLM's documents and recipes name for a parser; empty for unknown names."""
    entry = read("parsers")["entries"].get(f"{kind}/{name}", {})
    return tuple(entry.get("models", ()))


def startup_errors(version: str = "") -> Mapping[str, dict[str, Any]]:
    """Start-up failures of a version: id -> condition, flags, match (parts of the message), exception."""
    return MappingProxyType(entries("startup-errors", version))


def batch_defaults(version: str = "", *, memory_gib: float = 80.0, name: str = "") -> tuple[int, int]:
    """(`max-num-batched-tokens`, `max-num-seqs`) that `vllm serve` takes when they are unset.

    Args:
        version: vLLM's version.
        memory_gib: the GPU's memory.
        name: the hardware family for those that vLLM singles out: a100, h100, h200, gb10, cpu.
    """
    here = versions().index(nearest(version))
    found = (2048, 256)
    for rule in read("batch-defaults")["rules"]:
        names = rule.get("names")
        fits = (
            name in names
            if names
            else memory_gib >= rule.get("min_gib", 0) and name not in rule.get("not", ())
        )
        if fits and versions().index(rule["since"]) <= here:
            found = (rule["tokens"], rule["seqs"])
    return found


def notes(topic: str) -> Mapping[str, str]:
    """What is worth knowing about a topic beyond its entries: `fields`, `metrics`."""
    return MappingProxyType(read(topic).get("notes", {}))
