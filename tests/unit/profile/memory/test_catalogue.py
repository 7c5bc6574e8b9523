"""Models that are known without a file of the project: exactly, by their name, or not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_vllm.locate import data_dir
from pytest_vllm.profile.catalogue import alike, bare, known_repos, model_of, stored_as
from pytest_vllm.profile.checkpoint import described

ROWS: dict[str, dict[str, Any]] = json.loads(
    (data_dir("fixtures") / "models" / "catalogue.json").read_text("utf-8")
)
#: Its blocks differ from each other, which is not understood.
UNKNOWN = {"nvidia/Llama-3_3-Nemotron-Super-49B-v1"}


@pytest.mark.parametrize("repo", [repo for repo in ROWS if "billions" in ROWS[repo]])
def test_counted_as_known(repo: str) -> None:
    """Parameters counted from the shape agree with the number that the model is known for, to 1.2 %."""
    model = described(repo, ROWS[repo]["config"])

    assert model.params / 1e9 == pytest.approx(ROWS[repo]["billions"], rel=0.012)


def test_all_are_described_and_sourced() -> None:
    """Sixty models at least; every one has a source and a size, but for those that say they have none."""
    models = {repo: model_of(repo) for repo in known_repos()}

    assert len(models) >= 160
    assert {repo for repo, model in models.items() if model is None} == UNKNOWN
    assert all(model.source and model.certain for model in models.values() if model is not None)


@pytest.mark.parametrize(
    ("name", "base", "stored"),
    [
        ("RedHatAI/Qwen3-32B-FP8-dynamic", "Qwen3-32B-FP8", "fp8"),
        ("unsloth/Qwen3-32B-GGUF:Q4_K_M", "Qwen3-32B", "gguf-q4_k_m"),
        ("/models/Qwen3-8B-Q5_K_M.gguf", "Qwen3-8B", "gguf-q5_k_m"),
        ("neuralmagic/Meta-Llama-3.1-70B-Instruct-quantized.w8a8", "Llama-3.1-70B-Instruct", "int8"),
        ("cyankiwi/Qwen3-Coder-30B-A3B-Instruct-AWQ-4bit", "Qwen3-Coder-30B-A3B-Instruct", "awq"),
        ("deepseek-ai/DeepSeek-R1-0528", "DeepSeek-R1", "fp8"),
        ("nvidia/DeepSeek-R1-0528-NVFP4", "DeepSeek-R1", "nvfp4"),
        ("hugging-quants/Meta-Llama-3.1-8B-Instruct-GPTQ-INT4", "Llama-3.1-8B-Instruct", "gptq"),
        ("unsloth/Llama-3.2-3B-Instruct-bnb-4bit", "Llama-3.2-3B-Instruct", "int4"),
        ("/root/hub/models--Qwen--Qwen3-14B-AWQ/snapshots/0123", "Qwen3-14B", "awq"),
        ("qwen3.5-35b", "Qwen3.5-35B-A3B", "none"),
        ("Qwen/Qwen3.6-27B", "Qwen3.6-27B-NVFP4", "none"),
        ("RedHatAI/Mistral-Small-3.2-24B-Instruct-2506-FP8", "Mistral-Small-3.2-24B-Instruct-2506", "fp8"),
    ],
)
def test_taken_by_its_name(name: str, base: str, stored: str) -> None:
    """Owner, quantisation and date make no other model; that it is a likeness is said."""
    model = alike(name)

    assert model is not None
    assert (model.title, model.quantization) == (f"{base} (taken for it by its name)", stored)
    assert not model.certain


@pytest.mark.parametrize(
    "name",
    [
        "me/my-finetune-qwen3-32b",
        "Qwen3-32B-pruned",
        "unsloth/Qwen3-32B-GGUF",
        "/models/qwen35",
        "/models/main",
        "model",
        "",
        "Qwen/Qwen3-33B",
        "meta-llama/Llama-3.2-11B-Vision-Instruct",
    ],
)
def test_not_taken(name: str) -> None:
    """A relative, a folder without a name, and a GGUF that does not tell its bits are no likeness."""
    assert alike(name) is None


def test_bf16_of_a_quantised_model() -> None:
    """A copy in 16 bits weighs as 16 bits do."""
    exact, copy = model_of("openai/gpt-oss-20b"), alike("unsloth/gpt-oss-20b-BF16")

    assert exact is not None
    assert copy is not None
    assert copy.weights > 2.5 * exact.weights


def test_names_without_their_quantisation() -> None:
    """What is left to compare, and what a name tells of the weights."""
    assert bare("casperhansen/llama-3.3-70b-instruct-awq") == "llama-3.3-70b-instruct"
    assert stored_as("Qwen3-32B") is None
    assert stored_as("x/Qwen3-4B-W4A16-G128") == "int4"


def test_caches_of_checkpoints_with_scales() -> None:
    """`auto` is FP8 where the checkpoint brings scales for it."""
    with_scales, without = model_of("nvidia/Qwen3-235B-A22B-NVFP4"), model_of("Qwen/Qwen3-235B-A22B-FP8")

    assert with_scales is not None
    assert without is not None
    assert (with_scales.cache_dtype, without.cache_dtype) == ("fp8", "auto")
