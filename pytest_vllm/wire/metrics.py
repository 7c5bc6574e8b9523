"""Reads Prometheus text, as far as a verifier needs it: families, samples, sums and deltas; writes gauges.

Parsing and writing are prometheus_client's. Nothing of ours is imported here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prometheus_client import Metric


@dataclass(frozen=True)
class Sample:
    """One line of `/metrics`."""

    name: str
    labels: Mapping[str, str]
    value: float


@lru_cache(maxsize=128)
def _families(text: str) -> tuple[Metric, ...]:
    """The families of a scrape. Many checks read the same one, and parsing it takes 10 ms and more."""
    return tuple(family for part in _FAMILY.split(text) for family in _parsed(part))


#: Where a family begins. Of two scrapes most families are the same: those are parsed once.
_FAMILY = re.compile(r"^(?=# HELP )", re.MULTILINE)


@lru_cache(maxsize=4096)
def _parsed(part: str) -> tuple[Metric, ...]:
    return tuple(text_string_to_metric_families(part))


@lru_cache(maxsize=128)
def _by_name(text: str) -> dict[str, list[Sample]]:
    named: dict[str, list[Sample]] = {}
    for family in _families(text):
        for sample in family.samples:
            named.setdefault(sample.name, []).append(Sample(sample.name, sample.labels, sample.value))
    return named


@dataclass(frozen=True)
class Metrics:
    """A scrape of `/metrics`. Raises ValueError on first use when the text is not Prometheus text."""

    text: str

    @cached_property
    def types(self) -> dict[str, str]:
        """Family name (counters without `_total`) -> counter, gauge or histogram."""
        return {family.name: family.type for family in _families(self.text)}

    @cached_property
    def samples(self) -> list[Sample]:
        """Every sample, in order."""
        return [Sample(s.name, s.labels, s.value) for one in _families(self.text) for s in one.samples]

    @cached_property
    def fault(self) -> str:
        """Why the text is not Prometheus text, in the parser's words; empty when it is."""
        try:
            _families(self.text)
        except ValueError as error:
            return str(error) or type(error).__name__
        return ""

    def named(self, name: str, **labels: str) -> list[Sample]:
        """Samples of that exact name whose labels include these."""
        found = _by_name(self.text).get(name, [])
        return [sample for sample in found if labels.items() <= sample.labels.items()]

    def labels(self, name: str) -> Mapping[str, str]:
        """Labels of the first sample of that name, as an info metric tells them; empty when there is none."""
        found = [] if self.fault else self.named(name)
        return found[0].labels if found else {}

    def value(self, name: str, **labels: str) -> float | None:
        """The sum over all engines and label sets; None when there is no such sample."""
        found = self.named(name, **labels)
        return sum(s.value for s in found) if found else None

    def delta(self, before: Metrics, name: str, **labels: str) -> float | None:
        """How much the sum grew since `before`; a name that `before` lacks counts as zero there."""
        now = self.value(name, **labels)
        return None if now is None else now - (before.value(name, **labels) or 0.0)


@dataclass(frozen=True)
class Gauge:
    """A family to be written.

    Args:
        name: with the unit at its end, such as `_seconds`.
        words: what it is.
        samples: labels and value of each.
    """

    name: str
    words: str
    samples: Sequence[tuple[Mapping[str, str], float]]


class _Gauges(Collector):
    def __init__(self, gauges: Sequence[Gauge]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterator[Metric]:
        for one in self._gauges:
            family = GaugeMetricFamily(one.name, one.words)
            for labels, value in one.samples:
                family.add_sample(one.name, dict(labels), value)
            yield family


def openmetrics(gauges: Sequence[Gauge]) -> str:
    """Gauges as OpenMetrics text."""
    registry = CollectorRegistry()
    registry.register(_Gauges(gauges))
    text: str = generate_latest(registry).decode()  # type: ignore[no-untyped-call]
    return text
