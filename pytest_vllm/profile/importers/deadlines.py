"""Who kills the server, or gives its start up, where it does not answer in time: probes, checks, units."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.profile.importers.askers import listens

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_vllm.profile.importers.draft import Draft
    from pytest_vllm.profile.importers.podspecs import Place
    from pytest_vllm.profile.importers.systemd import Entry
    from pytest_vllm.profile.importers.yamlnodes import Node

_PART = re.compile(
    r"(\d+(?:\.\d+)?)\s*(us|µs|ms|msec|s|sec|seconds?|m|min|minutes?|h|hr|hours?|d|days?)?(?=\s|\d|$)"
)
_UNIT = {"u": 1e-6, "µ": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
#: What asks the server itself, so that it fails until the model is loaded.
_ASKS = re.compile(r"https?://|/health\b|/v1/|/dev/tcp/|\bnc\s")
_ON = {"true", "1", "yes", "on", "y"}
#: What systemd allows a start that its unit says nothing of.
_UNIT_DEFAULT = 90.0


def seconds(text: str) -> float | None:
    """`1m30s`, `5min`, `90`, as engines and systemd write them; None for what never ends, or is none."""
    found = list(_PART.finditer(text.strip()))
    if not found or "".join(one[0] for one in found).replace(" ", "") != text.replace(" ", ""):
        return None
    return sum(float(one[1]) * _scale(one[2] or "s") for one in found)


def _scale(unit: str) -> float:
    return _UNIT["ms" if unit.startswith("ms") else unit[0]]


def _keep(draft: Draft, within: float, by: str) -> None:
    """The one that gives up first counts."""
    known = draft.deployment.get("ready-within")
    if within > 0 and (known is None or within < known):
        draft.deployment |= {"ready-within": within, "ready-by": by}


def of_probes(draft: Draft, place: Place) -> None:
    """The kubelet kills a container whose startup probe, or liveness probe without one, fails too often."""
    ports = place.node.get("ports").items
    named = {one.get("name").text: one.get("containerPort").text for one in ports if one.get("name").text}
    for name in ("startupProbe", "livenessProbe"):
        probe = place.node.get(name)
        if not probe:
            continue
        asked = probe.get("httpGet", "port").text or probe.get("tcpSocket", "port").text
        command = " ".join(one.text for one in probe.get("exec", "command").items)
        here = named.get(asked, asked) == str(listens(draft)) if asked else bool(_ASKS.search(command))
        numbers = [
            float(one.text) if one.text.isdigit() else default
            for one, default in (
                (probe.get("initialDelaySeconds"), 0.0),
                (probe.get("periodSeconds"), 10.0),
                (probe.get("failureThreshold"), 3.0),
            )
        ]
        if here:
            _keep(draft, numbers[0] + numbers[1] * numbers[2], f"the {name}")
        return  # the liveness probe waits for the startup probe


def of_healthcheck(draft: Draft, name: str, services: Mapping[str, Node]) -> None:
    """A health check kills nothing by itself: autoheal does, and neighbours that wait for health give up.

    Args:
        draft: the server, its variables filled in.
        name: the service that it is.
        services: all of the file.
    """
    check = services[name].get("healthcheck")
    written = check.get("test")
    test = written.text or " ".join(one.text for one in written.items)
    if not _ASKS.search(test) or check.get("disable").text in _ON:
        return
    start, interval, retries = (check.get(one).text for one in ("start_period", "interval", "retries"))
    gap = seconds(interval) if interval else 30.0
    period = seconds(start) if start else 0.0
    if gap is None or period is None or (retries and not retries.isdigit()):
        return
    within = period + gap * int(retries or 3)
    if _healed(name, services):
        _keep(draft, within, "autoheal, by the healthcheck")
    for other, node in services.items():
        if node.get("depends_on", name, "condition").text == "service_healthy":
            required = node.get("depends_on", name, "required").text
            if required not in ("false", "no"):
                _keep(draft, within, f"docker compose up, since {other} waits for its health,")
                return


def _healed(name: str, services: Mapping[str, Node]) -> bool:
    """Whether a neighbour restarts the service where it is unhealthy: docker-autoheal and its forks."""
    for node in services.values():
        if "autoheal" not in node.get("image").text:
            continue
        label = _table(node.get("environment")).get("AUTOHEAL_CONTAINER_LABEL", "autoheal")
        if label == "all" or _table(services[name].get("labels")).get(label, "").lower() in _ON:
            return True
    return False


def _table(node: Node) -> dict[str, str]:
    found = {key: one.text for key, one in node.pairs}
    return found | {key: value for key, _, value in (one.text.partition("=") for one in node.items)}


def of_unit(draft: Draft, entries: Sequence[Entry]) -> None:
    """A unit whose start is over only when something has asked the server."""
    given = {entry.key: entry.value for entry in entries if entry.section == "Service"}
    after = [entry.value for entry in entries if entry.key == "ExecStartPost"]
    if any(_ASKS.search(one) and re.search(r"\b(until|while|retry)", one) for one in after):
        _limit(draft, given, "which ExecStartPost waits in")


def of_quadlet(draft: Draft, entries: Sequence[Entry]) -> None:
    """Podman kills by its health check where it is told to; systemd where the unit waits for health."""
    own = {entry.key: entry.value for entry in entries if entry.section == "Container"}
    given = {entry.key: entry.value for entry in entries if entry.section == "Service"}
    if not _ASKS.search(own.get("HealthCmd", "")):
        return
    gap = seconds(own.get("HealthInterval", "30s"))
    period = seconds(own.get("HealthStartPeriod", "0s"))
    retries = own.get("HealthRetries", "3")
    kills = own.get("HealthOnFailure", "none").lower() in ("kill", "restart", "stop")
    if kills and gap is not None and period is not None and retries.isdigit():
        _keep(draft, period + gap * int(retries), f"HealthOnFailure={own['HealthOnFailure']}")
    if own.get("Notify", "").lower() == "healthy":
        _limit(draft, given, "since Notify=healthy")


def _limit(draft: Draft, given: Mapping[str, str], why: str) -> None:
    written = given.get("TimeoutStartSec") or given.get("TimeoutSec")
    if written is None:
        _keep(draft, _UNIT_DEFAULT, f"systemd's own TimeoutStartSec, {why},")
    elif found := seconds(written):
        _keep(draft, found, f"TimeoutStartSec, {why},")
