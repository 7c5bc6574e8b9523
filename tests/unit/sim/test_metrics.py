"""`/metrics`: the families, types, labels and buckets of a real server."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_vllm.sim.meters.text import number

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.sim.client import Client

#: Every family of a real 0.32.0 with a tool parser, after one chat: name, type, label names.
SEEN = {
    name: (kind, set() if labels == "-" else set(labels.split(",")))
    for name, kind, labels in map(
        str.split, Path(__file__).with_name("families-0.32.0.txt").read_text("utf-8").splitlines()
    )
}


def exported(sim: Client) -> dict[str, tuple[str, set[str]]]:
    """Family: type and the label names of its first sample."""
    text = sim.get("/metrics").body.decode()
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    found = {}
    for name, kind in kinds.items():
        suffix = {"histogram": "_bucket", "summary": "_count"}.get(kind, "")
        sample = re.search(rf"^{name}{suffix}(?:\{{(.*)\}})? \S+$", text, re.MULTILINE)
        labels = re.findall(r'(\w+)="', sample[1] or "") if sample else []
        found[name] = (kind, set(labels))
    return found


def test_families_types_and_labels_are_those_of_a_real_server(tools: Client) -> None:
    """None is missing, none is invented; counters, histograms and summaries also say when they began."""
    tools.chat("Hi", max_tokens=1)
    found = exported(tools)
    created = {name for name in found if name.endswith("_created")}

    assert {name: found[name] for name in found if name not in created} == SEEN
    assert {name.removesuffix("_created") for name in created} == {
        name.removesuffix("_total") if kind == "counter" else name
        for name, (kind, _) in SEEN.items()
        if kind != "gauge" and not name.startswith(("python_", "process_"))
    }


@pytest.mark.parametrize(
    ("version", "present", "absent"),
    [
        ("0.10.0", "vllm:gpu_cache_usage_perc", "vllm:inter_token_latency_seconds"),
        ("0.12.0", "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        ("0.15.0", "vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
        ("0.19.1", "vllm:prompt_tokens_recomputed_total", "vllm:num_requests_waiting_by_reason"),
        ("0.31.0", "vllm:request_num_preemptions", "vllm:admission_rejections_total"),
    ],
)
def test_families_come_and_go_with_versions(
    simulated: Callable[..., Client], version: str, present: str, absent: str
) -> None:
    """Dashboards break on these."""
    found = exported(simulated("m", "--sim-version", version))

    assert present in found
    assert absent not in found


def test_histograms_are_cumulative_and_end_in_infinity(sim: Client) -> None:
    """The last bucket is the count."""
    sim.chat("Hi", max_tokens=3)
    text = sim.get("/metrics").body.decode()
    rows = re.findall(
        r'^vllm:e2e_request_latency_seconds_bucket\{.*le="([^"]+)".*\} (\S+)$', text, re.MULTILINE
    )
    counts = [float(count) for _, count in rows]

    assert counts == sorted(counts)
    assert rows[-1][0] == "+Inf"
    assert counts[-1] == sim.counter("vllm:e2e_request_latency_seconds_count")


def test_token_buckets_end_at_the_context(sim: Client) -> None:
    """1, 2, 5, 10, … 2000 for 4096 tokens."""
    text = sim.get("/metrics").body.decode()
    ends = re.findall(r'^vllm:request_prompt_tokens_bucket\{.*le="([^"]+)"', text, re.MULTILINE)

    assert ends[:3] == ["1.0", "2.0", "5.0"]
    assert ends[-2:] == ["2000.0", "+Inf"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0.0"), (705.0, "705.0"), (1.7958120505e9, "1.7958120505e+09"), (float("inf"), "+Inf")],
)
def test_numbers_look_as_the_client_library_writes_them(value: float, text: str) -> None:
    """Integers with a fraction, large ones with an exponent."""
    assert number(value) == text


def test_no_families_without_statistics(simulated: Callable[..., Client]) -> None:
    """--disable-log-stats takes vLLM's own families away."""
    found = exported(simulated("m", "--disable-log-stats"))

    assert not [name for name in found if name.startswith("vllm:")]
