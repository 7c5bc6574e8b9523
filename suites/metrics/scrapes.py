"""How this suite reads a scrape, and what traffic did to it."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_vllm import Metrics, Server, case_file, need

if TYPE_CHECKING:
    from pytest_vllm import Recording

#: Metric families that dashboards, alerts and routers read, with the versions that have them.
FAMILIES: list[dict[str, Any]] = json.loads(case_file("metric-families").read_text("utf-8"))
BASE = ["model_name", "engine"]


def families(server: Server) -> list[dict[str, Any]]:
    """The families of the server's version."""
    known = [row for row in FAMILIES if server.at_least(row.get("since", "0"))]
    if server.nameless:
        return [row for row in known if "until" not in row]
    return [row for row in known if "until" not in row or not server.at_least(row["until"])]


@cache
def parsed(text: str | None) -> Metrics:
    """A scrape. Raises Undecided when it cannot be read."""
    metrics = Metrics(text or "")
    need(text, "the metrics were not scraped")
    need(not metrics.fault, f"the metrics cannot be read: {metrics.fault}")
    return metrics


class Traffic:
    """What one exchange did to the metrics. Raises Undecided when others used the server meanwhile."""

    def __init__(self, recording: Recording) -> None:
        """Read both scrapes."""
        self.key = recording.key
        self.before, self.after = parsed(recording.metrics_before), parsed(recording.metrics_after)
        others = others_in(recording)
        need(not others, others)

    def grown(self, name: str, **labels: str) -> float:
        """How much a value grew; a name that is not there did not."""
        return self.after.delta(self.before, name, **labels) or 0.0

    def has(self, name: str) -> bool:
        """Whether there is such a sample."""
        return self.after.value(name) is not None


def others_in(recording: Recording) -> str:
    """That others used the server while this exchange did, in words; empty when nobody did."""
    before, after = parsed(recording.metrics_before), parsed(recording.metrics_after)
    routes = {sample.labels.get("handler", "") for sample in after.named("http_requests_total")}
    asked = [route for route in routes if route.startswith("/v1/") and route != "/v1/models"]
    served = sum(after.delta(before, "http_requests_total", handler=route) or 0.0 for route in asked)
    if served <= 1:
        return ""
    return f"{recording.key}: {served:.0f} requests came in meanwhile, so nothing can be told apart"


def usage_of(recording: Recording) -> dict[str, int]:
    """The usage of an answer, streamed or whole. Raises Undecided when there is none."""
    found: list[dict[str, int]] = [body["usage"] for body in recording.bodies if body.get("usage")]
    need(found, f"{recording.key} gives no usage")
    return found[-1]
