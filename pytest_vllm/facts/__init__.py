"""What vLLM's versions have and lack: flags, parsers, routes, fields, metrics, log lines.

Read from the releases' own sources (0.6.4.post1 … 0.33.0); data/README.md says how, and how to add the next
version. Every function takes any version string: unsampled and vendor versions
(`0.10.1.1+381074ae.nv25.09`) get the facts of the nearest sampled one, an empty one those of the newest.
Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from pytest_vllm.facts.flags import Flag, FlagStatus, canonical, flag_status, flags
from pytest_vllm.facts.timeline import at, entries, nearest, read, release_key, versions

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Field",
    "Flag",
    "FlagStatus",
    "LogLine",
    "Metric",
    "Route",
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
    "release_key",
    "released",
    "routes",
    "startup_errors",
    "versions",
]


@dataclass(frozen=True)
class Metric:
    """A metric as `/metrics` exposes it (counters end in `_total`).

    Args:
        name: the exposed family name.
        type: counter, gauge, histogram or unknown.
        labels: label names; `@…` stands for a set that the notes explain.
        engines: V0, V1.
        hidden: exported only with `--show-hidden-metrics-for-version`.
        renamed_to: the name that later versions use.
        when: what else must hold for it to be exported.
        note: what else is worth knowing.
    """

    name: str
    type: str
    labels: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    hidden: bool = False
    renamed_to: str = ""
    when: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Route:
    """A path of the server: its methods, what must be switched on for it, whether the API key guards it."""

    path: str
    methods: tuple[str, ...]
    needs: tuple[str, ...] = ()
    task: str = ""
    guarded: bool = False
    note: str = ""


@dataclass(frozen=True)
class Field:
    """A field of a request or response class; `required` fields have no default."""

    name: str
    type: str
    default: Any = None
    required: bool = False


@dataclass(frozen=True)
class LogLine:
    """A start-up log line: the regex finds it, its groups name the values, `fact` says what it tells."""

    name: str
    regex: str
    fact: str
    level: str = ""
    samples: tuple[str, ...] = ()


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


@cache
def metrics(version: str = "") -> Mapping[str, Metric]:
    """Every metric of a version by its exposed name."""
    base = (
        ("model_name",)
        if nearest(version) in versions()[: versions().index("0.8.0")]
        else ("model_name", "engine")
    )
    found = {}
    for name, entry in entries("metrics", version).items():
        labels = [
            part for label in entry.get("labels") or () for part in (base if label == "@base" else (label,))
        ]
        when = tuple(entry.get("when") or ())
        found[name] = Metric(
            name,
            entry["type"],
            tuple(labels),
            tuple(entry.get("engines") or ()),
            "show_hidden_metrics" in when,
            entry.get("renamed", ""),
            tuple(condition for condition in when if condition != "show_hidden_metrics"),
            entry.get("note", ""),
        )
    return MappingProxyType(found)


@cache
def cache_config_labels(version: str = "") -> frozenset[str]:
    """Labels that `vllm:cache_config_info` carries in a version."""
    return frozenset(entries("cache-config", version))


@cache
def routes(version: str = "") -> Mapping[str, Route]:
    """Every path of a version."""
    found = {
        path: Route(
            path,
            tuple(entry["methods"]),
            tuple(entry.get("needs") or ()),
            entry.get("task", ""),
            bool(entry["guarded"]),
            entry.get("note", ""),
        )
        for path, entry in entries("routes", version).items()
    }
    return MappingProxyType(found)


def guarded_prefixes(version: str = "") -> tuple[str, ...]:
    """Path prefixes behind `--api-key` in a version."""
    return tuple(at(read("routes")["guarded_prefixes"], nearest(version)))


@cache
def fields(model_class: str, version: str = "") -> Mapping[str, Field]:
    """Fields of a class such as `ChatCompletionRequest`; none when the version lacks it."""
    found = {}
    for key, entry in entries("fields", version).items():
        owner, _, name = key.partition(".")
        if owner == model_class:
            default = entry.get("default")
            required = default == "@required"
            found[name] = Field(name, entry["type"], None if required else default, required)
    return MappingProxyType(found)


@cache
def log_lines(version: str = "") -> Mapping[str, LogLine]:
    """Start-up log lines of a version by name."""
    found = {
        name: LogLine(
            name, entry["regex"], entry["fact"], entry.get("level", ""), tuple(entry.get("samples", ()))
        )
        for name, entry in entries("logs", version).items()
    }
    return MappingProxyType(found)


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
