"""Reading Prometheus text by families must not differ from reading it whole."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pytest_vllm import Metrics

TWO = """\
# HELP vllm:num_requests_running Requests in the engine.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0"} 2.0
# HELP vllm:generation_tokens_total Tokens.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0"} 7.0
vllm:generation_tokens_total{engine="1"} 5.0
"""
BARE = "plain 1.0\nplain_total 2.0\n"
TYPED_FIRST = "# TYPE a counter\na_total 1.0\n# HELP b What b is.\n# TYPE b gauge\nb 3.0\n"


@pytest.mark.parametrize("text", ["", TWO, BARE, TYPED_FIRST, BARE + TWO])
def test_reads_what_the_reference_parser_reads(text: str) -> None:
    """Samples and types, in order."""
    whole = list(text_string_to_metric_families(text))
    metrics = Metrics(text)

    assert [(s.name, dict(s.labels), s.value) for s in metrics.samples] == [
        (sample.name, sample.labels, sample.value) for family in whole for sample in family.samples
    ]
    assert metrics.types == {family.name: family.type for family in whole}


def test_sums_and_deltas_over_engines() -> None:
    """A name that the earlier scrape lacks counts as zero there."""
    now, before = Metrics(TWO), Metrics(TWO.replace("7.0", "3.0"))

    assert now.value("vllm:generation_tokens_total") == 12.0
    assert now.delta(before, "vllm:generation_tokens_total") == 4.0
    assert now.delta(Metrics(""), "vllm:num_requests_running") == 2.0
    assert now.delta(before, "vllm:unknown") is None


def test_says_what_is_no_prometheus_text() -> None:
    """A fault in any family is a fault of the whole."""
    assert Metrics(TWO).fault == ""
    assert Metrics(TWO + "# HELP c What c is.\n# TYPE c gauge\nc{ 1.0 x\n").fault
