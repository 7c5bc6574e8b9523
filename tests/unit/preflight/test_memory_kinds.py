"""What the rules of memory say of models with other caches than full attention, on GPUs that do or not."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_vllm.preflight import check
from pytest_vllm.preflight.rule import ERROR, WARNING, Finding
from pytest_vllm.profile.model import Profile, ServerPart
from tests.unit.preflight.building import ROOT

#: The model drafts for itself, and is named as its own draft.
MTP = {"method": "mtp", "model": "Qwen/Qwen3.5-27B", "num_speculative_tokens": 2}


def found(model: str, hardware: str, **args: Any) -> dict[str, Finding]:
    """Findings about memory and context, by rule."""
    server = ServerPart(
        launcher="docker",
        image="vllm/vllm-openai:v0.32.0",
        model=model,
        args={name.replace("_", "-"): value for name, value in args.items()},
    )
    findings = check(Profile(name="x", hardware=hardware, server=server), ROOT)
    return {one.rule: one for one in findings if one.rule.startswith(("memory.w", "memory.c", "context.b"))}


def test_deepseek_on_one_gpu() -> None:
    """It does not fit, with figures, and how many GPUs it takes at least."""
    weights = found("deepseek-ai/DeepSeek-V3", "h100", max_model_len=32768)["memory.weights"]

    assert weights.severity is ERROR
    assert "DeepSeek-V3 needs 626.8 GiB of weights per GPU, vLLM may take 73.2 GiB" in weights.observed
    assert "at least 9 such GPUs" in weights.advice


@pytest.mark.parametrize(
    ("model", "hardware", "args"),
    [
        ("deepseek-ai/DeepSeek-V3", "h200", {"tensor_parallel_size": 8, "max_model_len": 163_840}),
        ("deepseek-ai/DeepSeek-R1-0528", "h200", {"data_parallel_size": 8, "enable_expert_parallel": True}),
        ("deepseek-ai/DeepSeek-V3", "h100", {"tensor_parallel_size": 8, "pipeline_parallel_size": 2}),
        ("zai-org/GLM-5-FP8", "h200", {"tensor_parallel_size": 8, "max_model_len": 131_072}),
        ("openai/gpt-oss-120b", "h100", {"max_model_len": 131_072}),
        ("google/gemma-3-27b-it", "h100", {"max_model_len": 131_072}),
        ("Qwen/Qwen3.5-35B-A3B", "h100", {"max_model_len": 262_144}),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", "h100", {"tensor_parallel_size": 4, "max_model_len": 262_144}),
        ("meta-llama/Llama-3.1-8B-Instruct", "l4", {"max_model_len": "8k"}),
        ("BAAI/bge-m3", "l4", {}),
        ("openai/whisper-large-v3", "l4", {}),
        (
            "Qwen/Qwen3.5-27B",
            "h100",
            {
                "max_model_len": 65_536,
                "speculative_config": {
                    "method": "mtp",
                    "model": "Qwen/Qwen3.5-27B",
                    "num_speculative_tokens": 2,
                },
            },
        ),
    ],
)
def test_what_fits_is_not_accused(model: str, hardware: str, args: dict[str, Any]) -> None:
    """Deployments that are served: latents, windows, states, encoders, experts that replicas share."""
    assert found(model, hardware, **args) == {}


def test_a_latent_that_tensor_parallelism_does_not_split() -> None:
    """The same context that would fit if eight GPUs shared it does not, for each holds it whole."""
    said = found("deepseek-ai/DeepSeek-V3", "h200", tensor_parallel_size=8, max_model_len=1_000_000)

    assert "needs 65.4 GiB of KV cache per GPU" in said["memory.cache-for-context"].observed


def test_a_context_that_gpus_share_out() -> None:
    """Context parallelism shares a latent out, and the context fits."""
    shared = {"tensor_parallel_size": 8, "decode_context_parallel_size": 8}

    said = found("deepseek-ai/DeepSeek-V3", "h200", max_model_len=1_000_000, **shared)

    assert "memory.cache-for-context" not in said


def test_a_likeness_is_no_error() -> None:
    """Weights that are taken for others by their name may be fewer bits: a warning, and it says if what."""
    weights = found("/models/Llama-3.3-70B-Instruct", "l40s", max_model_len=8192)["memory.weights"]

    assert weights.severity is WARNING
    assert "taken for it by its name" in weights.observed
    assert "if the model is what its name says" in weights.means


def test_a_cache_that_is_not_understood() -> None:
    """DeepSeek V4's compressed cache is not computed, so nothing is said of its context."""
    assert (
        found("deepseek-ai/DeepSeek-V4-Flash", "h200", tensor_parallel_size=2, max_model_len=1_000_000) == {}
    )
