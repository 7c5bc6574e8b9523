"""What a server of a version shows: metrics, paths, fields of its messages, log lines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_vllm.facts.timeline import at, entries, nearest, read, versions

if TYPE_CHECKING:
    from collections.abc import Mapping


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
