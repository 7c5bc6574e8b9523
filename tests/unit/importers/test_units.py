"""systemd units, Kubernetes manifests, vLLM's own configuration, and containers that run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.launch.running import draft_of
from pytest_vllm.profile.importers import imported
from pytest_vllm.profile.model import Secret

if TYPE_CHECKING:
    from pathlib import Path

ENVIRON = {"HOME": "/home/me"}


def test_a_unit_with_everything(tmp_path: Path) -> None:
    """Specifiers, quotes, an environment file, comments within a continued line, a start taken back."""
    (tmp_path / "vllm.env").write_text("HF_HOME=/hf\nHF_TOKEN=abc\nLEN=4096\n")
    unit = tmp_path / "my-vllm@.service"
    unit.write_text(
        f"""[Unit]
Description=mine
[Service]
User=vllm
Environment="A=x y" 'B=2' C=%h
EnvironmentFile={tmp_path}/vllm.env
EnvironmentFile=-/none
PassEnvironment=WANDB_API_KEY
ExecStart=/bin/false
ExecStart=
ExecStart=-/opt/bin/vllm serve %h/m \\
  --max-model-len ${{LEN}} \\
# why
  --chat-template 'a $$b 100%%'
ExecStartPre=/bin/a
ExecStartPre=/bin/b
[Install]
WantedBy=multi-user.target
"""
    )
    found = imported(unit, environ=ENVIRON)
    server, deployment = found.profile.server, found.profile.deployment

    assert (server.launcher, server.command, server.model) == (
        "process",
        ["/opt/bin/vllm", "serve"],
        "/home/me/m",
    )
    assert server.args == {"max-model-len": 4096, "chat-template": "a $b 100%"}
    assert server.env == {
        "A": "x y",
        "B": "2",
        "C": "/home/me",
        "HF_HOME": "/hf",
        "HF_TOKEN": Secret(from_env="HF_TOKEN"),
        "LEN": "4096",
        "WANDB_API_KEY": Secret(from_env="WANDB_API_KEY"),
    }
    assert (deployment.kind, deployment.name) == ("systemd", "my-vllm")
    assert deployment.service == {
        "Description": "mine",
        "User": "vllm",
        "ExecStartPre": ["/bin/a", "/bin/b"],
        "WantedBy": "multi-user.target",
    }
    assert [note.removeprefix(f"{unit}:") for note in found.notes] == [
        (
            f"6: HF_TOKEN is written down in {tmp_path}/vllm.env:2; its value is not copied: "
            "set HF_TOKEN where pytest runs"
        ),
        "7: the environment file /none is not there; it is optional",
    ]


MANIFEST = """
apiVersion: v1
kind: Service
metadata: {name: vllm}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: qwen
spec:
  replicas: 2
  template:
    spec:
      nodeSelector: {gpu: h100}
      hostIPC: true
      containers:
        - name: proxy
          image: envoyproxy/envoy
        - name: server
          image: vllm/vllm-openai:v0.32.0
          command: ["python3", "-m", "vllm.entrypoints.openai.api_server"]
          args: ["--model", "$(MODEL)", "--max-num-seqs", "8", "--chat-template", "$$(X)"]
          env:
            - {name: MODEL, value: a/b}
            - name: HF_TOKEN
              valueFrom: {secretKeyRef: {name: hf, key: token}}
            - name: HUGGING_FACE_HUB_TOKEN
              valueFrom: {secretKeyRef: {name: hf, key: HF_TOKEN}}
            - name: POD
              valueFrom: {fieldRef: {fieldPath: metadata.name}}
          ports: [{containerPort: 8000}]
          resources:
            limits: {nvidia.com/gpu: "2", memory: 64Gi}
          readinessProbe: {httpGet: {path: /health, port: 8000}}
          volumeMounts:
            - {name: shm, mountPath: /dev/shm}
            - {name: cache, mountPath: /hf, readOnly: true}
            - {name: models, mountPath: /models}
            - {name: config, mountPath: /config}
      volumes:
        - {name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}
        - {name: cache, hostPath: {path: /opt/hf}}
        - {name: models, persistentVolumeClaim: {claimName: weights}}
        - {name: config, configMap: {name: c}}
"""


def test_a_memory_folder_without_a_limit() -> None:
    """It is no engine's 64 MiB: a size is written, and a note says whose."""
    found = imported(MANIFEST.replace(", sizeLimit: 16Gi", ""), environ=ENVIRON)

    assert found.profile.server.shm == "16g"
    assert "has no sizeLimit there, the pod's memory bounds it: shm = '16g' here" in "\n".join(found.notes)


def test_a_manifest() -> None:
    """Several documents and containers, secrets by reference, volumes of every kind."""
    found = imported(MANIFEST, environ=ENVIRON)
    server, deployment = found.profile.server, found.profile.deployment

    assert server.command == ["python3", "-m", "vllm.entrypoints.openai.api_server"]
    assert server.args == {"max-num-seqs": 8, "chat-template": "$(X)"}
    assert (server.model, server.gpus, server.ipc, server.shm) == ("a/b", 2, "host", "16g")
    assert server.volumes == ["/opt/hf:/hf:ro", "weights:/models"]
    assert server.env == {
        "MODEL": "a/b",
        "HF_TOKEN": Secret(from_env="HF_TOKEN"),
        "HUGGING_FACE_HUB_TOKEN": Secret(from_env="HF_TOKEN"),
    }
    assert (deployment.name, deployment.kind, deployment.replicas) == ("qwen", "kubernetes", 2)
    assert deployment.memory == 64 * 1024**3
    said = "\n".join(found.notes)
    for text in (
        "2: Service vllm is not carried over",
        "14: the container proxy is not carried over",
        "14: nodeSelector is not carried over",
        "29: POD, whose value the cluster fills in, is not carried over",
        "34: the readinessProbe (/health is asked anyway) is not carried over",
        "38: the claim weights became a volume of that name",
        "39: the volume at /config is not carried over",
    ):
        assert f"the text:{text}" in said


def test_vllm_configuration() -> None:
    """The keys are flags; nested tables are JSON."""
    text = """
model: a/b
served-model-name: [one]
tensor_parallel_size: 2
enable-prefix-caching: true
no-enable-chunked-prefill: true
gpu-memory-utilization: 0.85
speculative-config: {method: ngram, num_speculative_tokens: 5}
lora-modules: [x=/y]
api-key: abc
"""
    server = imported(text, environ=ENVIRON).profile.server

    assert (server.model, server.served_model_name) == ("a/b", "one")
    assert server.api_key == Secret(from_env="VLLM_API_KEY")
    assert server.args == {
        "tensor-parallel-size": 2,
        "enable-prefix-caching": True,
        "enable-chunked-prefill": False,
        "gpu-memory-utilization": 0.85,
        "speculative-config": {"method": "ngram", "num_speculative_tokens": 5},
        "lora-modules": ["x=/y"],
    }


IMAGE: dict[str, Any] = {
    "Entrypoint": ["vllm", "serve"],
    "Cmd": None,
    "Env": ["PATH=/bin", "VLLM_USAGE_SOURCE=production"],
}


def inspection(**config: Any) -> dict[str, Any]:
    """What an engine says about a container, as Docker 28 words it."""
    return {
        "Name": "/qwen",
        "Config": {
            "Image": "vllm/vllm-openai:v0.32.0",
            "Entrypoint": ["vllm", "serve"],
            "Cmd": ["a/b", "--max-num-seqs", "8"],
            "Env": ["HF_TOKEN=abc", "HF_HOME=/hf", *IMAGE["Env"]],
            **config,
        },
        "Mounts": [
            {"Type": "bind", "Source": "/opt/hf", "Destination": "/hf", "RW": False},
            {
                "Type": "volume",
                "Name": "weights",
                "Source": "/var/lib/x",
                "Destination": "/models",
                "RW": True,
            },
        ],
        "HostConfig": {
            "IpcMode": "private",
            "ShmSize": 16 * 1024**3,
            "DeviceRequests": [{"Driver": "nvidia", "Count": -1, "DeviceIDs": None}],
            "PortBindings": {"8000/tcp": [{"HostIp": "::", "HostPort": "8001"}]},
            "RestartPolicy": {"Name": "unless-stopped"},
            "NetworkMode": "bridge",
            "SecurityOpt": None,
            "AutoRemove": False,
        },
    }


def test_a_container_that_runs() -> None:
    """What its image brings is left out; the rest is as a run line would say it."""
    draft = draft_of("qwen", inspection(), IMAGE, "docker", ENVIRON)
    profile = draft.profile("qwen")
    server, deployment = profile.server, profile.deployment

    assert (server.image, server.model, server.args) == (
        "vllm/vllm-openai:v0.32.0",
        "a/b",
        {"max-num-seqs": 8},
    )
    assert (server.command, server.entrypoint) == (None, None)
    assert server.env == {"HF_TOKEN": Secret(from_env="HF_TOKEN"), "HF_HOME": "/hf"}
    assert server.volumes == ["/opt/hf:/hf:ro", "weights:/models"]
    assert (server.gpus, server.shm, server.ipc) == ("all", "16g", None)
    assert (deployment.name, deployment.ports, deployment.restart) == (
        "qwen",
        ["8001:8000"],
        "unless-stopped",
    )
    assert draft.notes == (
        (
            "container:qwen: HF_TOKEN is written down there; its value is not copied: "
            "set HF_TOKEN where pytest runs"
        ),
    )


@pytest.mark.parametrize("entrypoint", [["python3"], ["/wrap.sh"]])
def test_a_container_with_a_program_of_its_own(entrypoint: list[str]) -> None:
    """Its own entry point is part of the profile, the image's is not."""
    module = ["-m", "vllm.entrypoints.openai.api_server", "--model", "a/b"]
    found = inspection(Entrypoint=entrypoint, Cmd=module)
    server = draft_of("qwen", found, IMAGE, "docker", ENVIRON).profile("qwen").server

    assert server.command == [*entrypoint, *module[:2]]
    assert server.model == "a/b"


def test_a_script_beside_the_unit(tmp_path: Path) -> None:
    """It is read with the unit's variables; what it exports of them counts."""
    (tmp_path / "start.sh").write_text("#!/bin/bash\nexport A=$A:b\nexec vllm serve $1 --seed ${SEED:-1}\n")
    unit = tmp_path / "llm.service"
    unit.write_text(
        "[Service]\nEnvironment=A=a SEED=3\nExecStart=/opt/not/here/start.sh org/a\nRestart=always\n"
    )
    found = imported(unit, environ={})
    server = found.profile.server
    assert (server.model, server.args["seed"], server.env["A"]) == ("org/a", 3, "a:b")
    assert any("/opt/not/here/start.sh is read, from start.sh beside it" in note for note in found.notes)
