"""Who ends the server while it still loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.preflight.rule import ERROR, NOTE, WARNING, Finding, drop, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.preflight.deployment import Deployment

#: Seconds before and behind the weights: Python, workers, profiling, the cache; then compiling and graphs.
_AROUND, _COMPILES = 30.0, 20.0
#: Bytes per second of a good disk in the machine, and of one over the network.
_DISK, _NETWORK = 1.5e9, 0.3e9


@rule(
    "container.start-killed", WARNING, source="H100: 31.9 GiB in 21.6 s, engine 8 to 124 s; kubelet's probes"
)
def start_killed(of: Deployment) -> Iterator[Finding]:
    """A probe, a health check or a unit ends the server before its weights can be read."""
    part = of.profile.deployment
    if part.ready_within is None or of.simulated or of.model is None:
        return
    dummy = of.given("load-format") == "dummy"
    weights = 0.0 if dummy else float(of.model.weights)
    compiled = of.off("enforce-eager") or not of.has("enforce-eager")
    around = _AROUND + (_COMPILES if compiled else 0.0)
    soon, late = around + weights / _DISK, 2 * around + weights / _NETWORK
    if part.ready_within >= late:
        return
    size = f"{weights / 1e9:,.0f} GB of weights"
    takes = (
        f"{size} take {weights / _DISK:,.0f} s from a good disk, {weights / _NETWORK:,.0f} s over a network"
    )
    early = part.ready_within < soon
    yield Finding(
        "deployment.ready-within",
        f"{part.ready_by or 'production'} gives the server {part.ready_within:,.0f} s to answer",
        f"{takes}, and all around them {around:.0f} s or more: "
        + ("it is ended while it loads, and again" if early else "a slow disk or a first download ends it"),
        advice=_advice(part.ready_by, late),
        severity=WARNING if early else NOTE,
    )


def _advice(by: str, late: float) -> str:
    rounded = f"{max(2, round(late / 60 + 0.5))} min"
    if "Probe" in by:
        return f"a startupProbe whose periodSeconds times failureThreshold is {rounded} or more"
    if "TimeoutStartSec" in by:
        return f"TimeoutStartSec={rounded.replace(' ', '')} or more"
    return f"a start period of {rounded} or more"


@rule("container.unit-notify", ERROR, source="systemd.service: Type=notify, WatchdogSec=")
def unit_notify(of: Deployment) -> Iterator[Finding]:
    """A unit waits for a message that vLLM never sends, and ends the server for the want of it."""
    unit, server = of.profile.deployment.service, of.profile.server
    if of.in_container or of.profile.deployment.kind not in ("systemd", "systemd-user"):
        return
    severity = WARNING if unit.get("NotifyAccess") else ERROR  # a script around it may say so
    written = {key: _last(unit.get(key, "")) for key in ("Type", "WatchdogSec", "TimeoutStartSec")}
    if written["Type"] in ("notify", "notify-reload"):
        limit = written["TimeoutStartSec"] or "90 s, its default"
        waits = (
            f"it is ended after TimeoutStartSec, {limit}" if limit != "infinity" else "it never counts as up"
        )
        yield Finding(
            "deployment.service.Type",
            f"Type={written['Type']}, and {server.model} is served by vLLM",
            f"vLLM never says READY=1 to systemd: {waits}",
            drop("deployment.service.Type"),
            "Type=exec",
            severity=severity,
        )
    if written["WatchdogSec"].strip() not in ("", "0", "0s", "infinity"):
        yield Finding(
            "deployment.service.WatchdogSec",
            f"WatchdogSec={written['WatchdogSec']}",
            "vLLM never says WATCHDOG=1 to systemd: it is ended each time that is over",
            drop("deployment.service.WatchdogSec"),
            severity=severity,
        )


def _last(value: str | list[str]) -> str:
    return value[-1] if isinstance(value, list) else value
