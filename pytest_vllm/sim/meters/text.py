"""`/metrics`: every family of the version, in Prometheus text."""

from __future__ import annotations

import gc
import os
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_vllm.sim.meters.families import Family, families

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_vllm.sim.api.server import Server
    from pytest_vllm.sim.engine.stats import Histogram

Sample = tuple[dict[str, str], float]


def exposition(server: Server) -> str:
    """The whole text."""
    lines: list[str] = []
    _process(lines)
    for family in families(server):
        _family(lines, family, server.started)
    _http(lines, server)
    for family in families(server, late=True):
        _family(lines, family, server.started)
    return "\n".join(lines) + "\n"


def _family(lines: list[str], family: Family, created: float) -> None:
    _head(lines, family.name, family.help, family.kind)
    for labels, value in family.samples:
        if family.kind == "histogram":
            _histogram(lines, family.name, labels, value)
        else:
            lines.append(f"{family.name}{_labels(labels)} {number(value)}")
    if family.kind in ("counter", "histogram"):
        name = family.name.removesuffix("_total") if family.kind == "counter" else family.name
        _head(lines, f"{name}_created", family.help, "gauge")
        lines += [f"{name}_created{_labels(labels)} {number(created)}" for labels, _ in family.samples]


def _histogram(lines: list[str], name: str, labels: dict[str, str], histogram: Histogram) -> None:
    total = 0
    for end, count in zip([*histogram.ends, float("inf")], histogram.counts, strict=True):
        total += count
        lines.append(f"{name}_bucket{_labels({**labels, 'le': number(end)})} {number(total)}")
    lines.append(f"{name}_count{_labels(labels)} {number(total)}")
    lines.append(f"{name}_sum{_labels(labels)} {number(histogram.sum)}")


def _head(lines: list[str], name: str, text: str, kind: str) -> None:
    lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    inner = ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(labels.items()))
    return "{" + inner + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def number(value: float) -> str:
    """A number as the Prometheus client prints it."""
    if value == float("inf"):
        return "+Inf"
    return repr(float(value)) if abs(value) < 1e7 else _scientific(float(value))


def _scientific(value: float) -> str:
    text = repr(value)
    if "e" in text:
        return text
    whole, _, fraction = text.partition(".")
    digits = whole + fraction
    return f"{digits[0]}.{digits[1:].rstrip('0') or '0'}e+{len(whole.lstrip('-')) - 1:02d}"


def _simple(lines: list[str], name: str, text: str, kind: str, samples: Iterable[Sample]) -> None:
    _head(lines, name, text, kind)
    lines += [f"{name}{_labels(labels)} {number(value)}" for labels, value in samples]


def _process(lines: list[str]) -> None:
    stats = gc.get_stats()
    for name, text, key in (
        ("python_gc_objects_collected_total", "Objects collected during gc", "collected"),
        ("python_gc_objects_uncollectable_total", "Uncollectable objects found during GC", "uncollectable"),
        ("python_gc_collections_total", "Number of times this generation was collected", "collections"),
    ):
        _simple(
            lines,
            name,
            text,
            "counter",
            [({"generation": str(i)}, stat[key]) for i, stat in enumerate(stats)],
        )
    major, minor, patch = sys.version_info[:3]
    info = {"implementation": "CPython", "major": str(major), "minor": str(minor), "patchlevel": str(patch)}
    _simple(
        lines,
        "python_info",
        "Python platform information",
        "gauge",
        [({**info, "version": f"{major}.{minor}.{patch}"}, 1)],
    )
    usage = resource.getrusage(resource.RUSAGE_SELF)
    for name, text, kind, value in (
        ("process_virtual_memory_bytes", "Virtual memory size in bytes.", "gauge", _memory(0)),
        ("process_resident_memory_bytes", "Resident memory size in bytes.", "gauge", _memory(1)),
        (
            "process_start_time_seconds",
            "Start time of the process since unix epoch in seconds.",
            "gauge",
            _STARTED,
        ),
        (
            "process_cpu_seconds_total",
            "Total user and system CPU time spent in seconds.",
            "counter",
            usage.ru_utime + usage.ru_stime,
        ),
        ("process_open_fds", "Number of open file descriptors.", "gauge", _open_files()),
        (
            "process_max_fds",
            "Maximum number of open file descriptors.",
            "gauge",
            resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        ),
    ):
        _simple(lines, name, text, kind, [({}, round(value, 2))])


_STARTED = time.time()


def _memory(column: int) -> int:
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[column]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _open_files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only the number counts
    except OSError:
        return 0


def _http(lines: list[str], server: Server) -> None:
    meters = server.meters
    created = meters.started

    def created_lines(name: str, text: str, labels: Iterable[dict[str, str]]) -> None:
        _simple(lines, f"{name}_created", text, "gauge", [(label, created) for label in labels])

    text = "Total number of requests by method, status and handler."
    keys = [
        {"handler": handler, "method": method, "status": status}
        for handler, method, status in meters.requests
    ]
    _simple(
        lines, "http_requests_total", text, "counter", list(zip(keys, meters.requests.values(), strict=True))
    )
    created_lines("http_requests", text, keys)
    for name, sizes, which in (
        ("request", meters.received, "incoming requests"),
        ("response", meters.sent, "outgoing responses"),
    ):
        text = (
            f"Content length of {which} by handler. Only value of header is respected. Otherwise ignored. "
            "No percentile calculated. "
        )
        full = f"http_{name}_size_bytes"
        _head(lines, full, text, "summary")
        for handler, (count, total) in sizes.items():
            lines.append(f'{full}_count{{handler="{handler}"}} {number(count)}')
            lines.append(f'{full}_sum{{handler="{handler}"}} {number(total)}')
        created_lines(full, text, [{"handler": handler} for handler in sizes])
    fine = (
        "Latency with many buckets but no API specific labels. Made for more accurate percentile "
        "calculations. "
    )
    _head(lines, "http_request_duration_highr_seconds", fine, "histogram")
    _histogram(lines, "http_request_duration_highr_seconds", {}, meters.fine)
    created_lines("http_request_duration_highr_seconds", fine, [{}])
    coarse = (
        "Latency with only few buckets by handler. Made to be only used if aggregation by handler is "
        "important. "
    )
    _head(lines, "http_request_duration_seconds", coarse, "histogram")
    labels = [{"handler": handler, "method": method} for handler, method in meters.coarse]
    for label, histogram in zip(labels, meters.coarse.values(), strict=True):
        _histogram(lines, "http_request_duration_seconds", label, histogram)
    created_lines("http_request_duration_seconds", coarse, labels)


def sample(labels: dict[str, str], value: Any) -> tuple[dict[str, str], Any]:
    """A sample: labels and value."""
    return labels, value
