"""Who ends the server where it does not answer in time, as each kind of file says it."""

from __future__ import annotations

import pytest

from pytest_vllm.profile.importers import imported
from pytest_vllm.profile.importers.deadlines import seconds

POD = """apiVersion: v1
kind: Pod
metadata: {{name: llm}}
spec:
  containers:
    - image: vllm/vllm-openai:v0.32.0
      args: [--model=org/a]
      ports: [{{name: http, containerPort: 8000}}]
{probes}"""
LIVENESS = (
    "      livenessProbe: {httpGet: {path: /health, port: PORT}, initialDelaySeconds: 60, periodSeconds: 5}\n"
)
STARTUP = "      startupProbe: {tcpSocket: {port: http}, failureThreshold: 60}\n"
COMPOSE = """services:
  llm:
    image: vllm/vllm-openai:v0.32.0
    command: --model org/a
    labels: [autoheal=true]
    healthcheck: {{test: "{test}", start_period: 1m30s, interval: 10s}}
  other:
    image: {image}
    {more}
"""
QUADLET = """[Container]
Image=docker.io/vllm/vllm-openai:v0.32.0
Exec=--model org/a
HealthCmd=curl -f http://localhost:8000/health
HealthInterval=20s
HealthRetries=4
{container}
[Service]
{service}
"""
UNIT = """[Service]
ExecStart=/opt/vllm/bin/vllm serve org/a
ExecStartPost=/bin/sh -c 'until curl -sf localhost:8000/health; do sleep 1; done'
TimeoutStartSec={limit}
"""


def _given(text: str) -> tuple[float | None, str]:
    part = imported(text).profile.deployment
    return part.ready_within, part.ready_by


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1m30s", 90),
        ("5min", 300),
        ("90", 90),
        ("2min 30s", 150),
        ("infinity", None),
        ("500ms", 0.5),
        ("", None),
    ],
)
def test_durations(text: str, wanted: float | None) -> None:
    """As docker and systemd write them."""
    assert seconds(text) == wanted


def test_probes() -> None:
    """The liveness probe counts where no startup probe holds it back, and where it asks the server."""
    assert _given(POD.format(probes=LIVENESS.replace("PORT", "http"))) == (75.0, "the livenessProbe")
    both = POD.format(probes=STARTUP + LIVENESS.replace("PORT", "8000"))
    assert _given(both) == (600.0, "the startupProbe")
    assert _given(POD.format(probes=LIVENESS.replace("PORT", "9000"))) == (None, "")


def test_health_checks() -> None:
    """A check alone kills nothing: autoheal does, and what waits for health gives up."""
    test = "curl -f http://localhost:8000/health"
    assert _given(COMPOSE.format(test=test, image="app", more="")) == (None, "")
    healed = COMPOSE.format(test=test, image="willfarrell/autoheal", more="")
    assert _given(healed) == (120.0, "autoheal, by the healthcheck")
    waits = COMPOSE.format(test=test, image="app", more="depends_on: {llm: {condition: service_healthy}}")
    assert _given(waits) == (120.0, "docker compose up, since other waits for its health,")
    assert _given(waits.replace(test, "nvidia-smi")) == (None, "")


def test_quadlets() -> None:
    """Podman kills where it is told to; systemd's own limit holds where the unit waits for health."""
    assert _given(QUADLET.format(container="", service="Restart=always")) == (None, "")
    killed = QUADLET.format(container="HealthOnFailure=kill", service="Restart=always")
    assert _given(killed) == (80.0, "HealthOnFailure=kill")
    healthy = QUADLET.format(container="Notify=healthy", service="TimeoutStartSec=15min")
    assert _given(healthy)[0] == 900.0
    assert _given(healthy.replace("TimeoutStartSec=15min", "Restart=no"))[0] == 90.0
    assert _given(healthy.replace("15min", "infinity")) == (None, "")


def test_units() -> None:
    """A unit that waits for the server in ExecStartPost."""
    assert _given(UNIT.format(limit="10min"))[0] == 600.0
    assert _given(UNIT.format(limit="10min").replace("until", "if")) == (None, "")


def test_a_shared_network() -> None:
    """A neighbour in the server's network may be whom a published port leads to."""
    test = "curl -f http://localhost:8000/health"
    shared = COMPOSE.format(test=test, image="caddy", more='network_mode: "service:llm"')
    assert imported(shared).profile.deployment.network_shared
    assert not imported(COMPOSE.format(test=test, image="caddy", more="")).profile.deployment.network_shared
