"""What an importer left out of a deployment is not held against the deployment."""

from __future__ import annotations

from pathlib import Path

from pytest_vllm.preflight import check
from pytest_vllm.profile.importers import imported

POD = """apiVersion: x/v1
kind: {kind}
metadata: {{name: it}}
spec:
  {frame}
      spec:
        containers:
        - name: v
          image: {image}
          command: [vllm, serve]
          args: [{args}]
          env: [{{name: VLLM_OF_A_FORK, value: "1"}}]
          resources: {{limits: {{nvidia.com/gpu: 8}}}}
          volumeMounts: [{{name: m, mountPath: /models}}]
        volumes: [{{name: m, emptyDir: {{}}}}]
"""
LWS = "leaderWorkerTemplate:\n    size: 2\n    workerTemplate: {spec: {containers: []}}\n    leaderTemplate:"


def found(args: str, *, kind: str = "Deployment", frame: str = "", image: str = "") -> dict[str, str]:
    """What preflight finds in a manifest: rule -> its text."""
    image = image or "vllm/vllm-openai:v0.32.0"
    text = POD.format(kind=kind, frame=frame or "x:\n    template:", image=image, args=args)
    return {one.rule: one.text for one in check(imported(text, environ={}).profile, Path.cwd())}


def test_a_model_in_a_folder_that_the_cluster_fills() -> None:
    """The profile lacks the volume, production has it: the finding says which of the two it is."""
    text = found("/models/a")["cache.path-unmounted"]

    assert "which production mounts and this profile does not" in text
    assert "/models:/models" in text.replace("/where/it/is", "/models")
    assert "cache.download-dir" not in found("org/a, --download-dir=/models")


def test_a_server_over_two_pods() -> None:
    """One pod's GPUs are not held against the whole server's."""
    text = found("org/a, -tp=8, -pp=2", kind="LeaderWorkerSet", frame=LWS)["parallel.gpus"]

    assert "over 2 machines" in text
    assert "vLLM refuses" not in text


def test_a_variable_of_a_fork() -> None:
    """A fork reads variables that no release of vLLM had."""
    assert "ignores it" in found("org/a")["environment.unknown"]
    assert "not judged" in found("org/a", image="mine/vllm-openai:v0.6.1-1a2b")["environment.unknown"]


def test_a_method_that_the_checkpoint_overrides() -> None:
    """AutoRound checkpoints load whatever is written; another unknown method does not."""
    assert "quantisation.unknown" not in found("org/a, --quantization=auto_round")
    assert "quantisation.unknown" in found("org/a, --quantization=deepspeedfp")


def test_a_checkpoint_of_model_optimizer() -> None:
    """NVIDIA's guides write `--quantization fp4`, which its own configuration overrides; others' do not."""
    rules = {"quantisation.unknown", "quantisation.mismatch"}
    assert not rules & set(found("nvidia/Llama-3.3-70B-Instruct-NVFP4, --quantization=fp4"))
    assert rules <= set(found("RedHatAI/Llama-3.3-70B-Instruct-NVFP4, --quantization=fp4"))
