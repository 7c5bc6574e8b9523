"""Findings that were wrong to the owner of a deployment that works, each in a small input of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from pytest_vllm.preflight import check
from pytest_vllm.preflight.deployment import deployment_of
from pytest_vllm.preflight.host import Host
from pytest_vllm.preflight.image import image_of
from pytest_vllm.preflight.judged import START, verdicts
from pytest_vllm.preflight.rule import ERROR, NOTE, WARNING
from pytest_vllm.profile.catalogue import alike, model_of
from pytest_vllm.profile.importers import imported

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.preflight.rule import Finding
    from pytest_vllm.profile.model import Profile

STOCK = "vllm/vllm-openai:v0.32.0"


def profile(text: str) -> Profile:
    """The profile of a text."""
    return imported(text, environ={"HOME": "/home/me"}).profile


def found(text: str, folder: Path, rule: str, host: Host | None = None) -> list[Finding]:
    """What a rule finds in a text."""
    return [one for one in check(profile(text), folder, host) if one.rule == rule]


def pod(kind: str = "Pod", api: str = "v1", **spec: object) -> str:
    """A manifest of one container."""
    model = "/mnt/models" if "kserve" in api else "org/a"
    main = {"name": "main", "image": STOCK, "args": [f"--model={model}"], "ports": [{"containerPort": 8000}]}
    whole = {"containers": [main], **spec}
    return yaml.safe_dump({"apiVersion": api, "kind": kind, "metadata": {"name": "it"}, "spec": whole})


def test_a_dockerfile_lacks_nothing_that_is_said_where_it_is_started(tmp_path: Path) -> None:
    """Volumes, a restart policy, a cache: not judged, and why."""
    text = f'FROM {STOCK}\nENV HF_HUB_OFFLINE=1\nCMD ["--model", "org/a", "--tensor-parallel-size", "2"]\n'
    said = verdicts(deployment_of(profile(text), tmp_path))
    keys = {one.key for verdict in said for one in verdict.findings}
    assert not [one for one in keys if one.startswith(("server.volumes", "deployment.", "server.ipc"))]
    assert {"cache.offline-empty"} <= {one.rule for one in said if one.missing == (START,)}
    line = f"docker run -e HF_HUB_OFFLINE=1 {STOCK} --model org/a\n"
    assert [one.severity for one in found(line, tmp_path, "cache.offline-empty")] == [ERROR]


def test_the_model_of_kserve_is_mounted_there(tmp_path: Path) -> None:
    """By its storage initializer; a plain pod's model path is in no volume of it."""
    (there,) = found(pod("ServingRuntime", "serving.kserve.io/v1alpha1"), tmp_path, "cache.path-unmounted")
    assert there.severity is WARNING
    assert "production mounts" in there.observed
    plain = pod().replace("org/a", "/mnt/models")
    (missing,) = found(plain, tmp_path, "cache.path-unmounted")
    assert missing.severity is ERROR


@pytest.mark.parametrize(
    ("model", "options", "severity"),
    [
        ("google/gemma-3-12b-it", "", WARNING),
        ("google/gemma-2-9b", "", WARNING),
        ("google/gemma-7b-it", "", WARNING),
        ("meta-llama/Llama-3.1-8B-Instruct", "", WARNING),
        ("meta-llama/Llama-3.1-8B-Instruct", "-v /hf:/root/.cache/huggingface", NOTE),
        ("google/gemma-4-12B-it", "", None),
        ("mistralai/Mistral-Large-3-675B-Instruct-2512", "", None),
        ("meta-llama/Llama-3.1-8B-Instruct", "-e HF_TOKEN", None),
    ],
)
def test_a_gated_model_needs_a_login(model: str, options: str, severity: object, tmp_path: Path) -> None:
    """A token, or a login in the cache that is mounted; newer families are open."""
    text = f"docker run {options} {STOCK} --model {model}\n"
    assert [one.severity for one in found(text, tmp_path, "cache.gated")] == ([severity] if severity else [])


def test_a_login_that_is_there_is_seen(tmp_path: Path) -> None:
    """Where the machine is asked."""
    text = f"docker run -v {tmp_path}:/root/.cache/huggingface {STOCK} --model meta-llama/Llama-3.1-8B\n"
    assert found(text, tmp_path, "cache.gated", Host())
    (tmp_path / "token").write_text("x")
    assert not found(text, tmp_path, "cache.gated", Host())


def test_ports_and_memory_of_a_pod_on_its_node(tmp_path: Path) -> None:
    """A pod names its port on the node's network too, and its memory folder lies over the node's."""
    volumes = [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}]
    text = pod(hostNetwork=True, hostIPC=True, volumes=volumes)
    mounted = text.replace("ports:", "volumeMounts: [{name: shm, mountPath: /dev/shm}]\n    ports:")
    for rule in ("container.ports-idle", "container.shm-idle"):
        assert not found(mounted, tmp_path, rule)
    line = f"docker run --network host --ipc host --shm-size 8g -p 80:8000 {STOCK} --model org/a\n"
    for rule in ("container.ports-idle", "container.shm-idle"):
        assert found(line, tmp_path, rule)


@pytest.mark.parametrize(
    ("tag", "pinned"),
    [
        ("nightly_main_20260211", True),
        ("dev-2026-02-11", True),
        ("nightly", False),
        ("main", False),
        ("nightly-99999999", False),
        ("v0.32.0", True),
    ],
)
def test_a_day_in_a_tag_does_not_move(tag: str, pinned: bool) -> None:
    """The build of a day stays that build."""
    image = image_of(f"rocm/vllm-dev:{tag}")
    assert image is not None
    assert image.pinned is pinned


def test_a_family_is_stored_as_its_relatives_are() -> None:
    """Of Kimi K2.6 a quantised copy is known; K2.5, of the same shape, is published in four bits."""
    taken, relative = alike("moonshotai/Kimi-K2.6"), model_of("moonshotai/Kimi-K2.5")
    assert taken is not None
    assert relative is not None
    assert taken.quantization == relative.quantization == "int4"
    assert taken.weights == pytest.approx(relative.weights, rel=0.02)


def test_a_folder_of_a_model_is_not_made_empty(tmp_path: Path) -> None:
    """An empty folder would help nobody; a cache may be empty."""
    line = "docker run -v /no/such:{} " + f"{STOCK} --model /models/a\n"
    model, cache = (
        found(line.format(place), tmp_path, "cache.host-path-missing", Host())[0].advice
        for place in ("/models", "/root/.cache/huggingface")
    )
    assert model.startswith("put the model there")
    assert cache == "mkdir -p /no/such"
