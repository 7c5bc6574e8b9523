"""What the guides warn of is found in the wrong variants of their profiles; as they stand, no error is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_vllm.preflight import check
from pytest_vllm.preflight.host import Gpu, Host, Tenant
from pytest_vllm.preflight.rule import Finding, Severity
from pytest_vllm.profile.load import load, names
from pytest_vllm.profile.model import Profile
from tests.unit.preflight.building import ROOT, merged

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1024**3
ERROR, WARNING = Severity.ERROR, Severity.WARNING


def variant(name: str, over: dict[str, Any], host: Host | None = None) -> dict[str, Finding]:
    """What is found in a built-in profile with something changed, by rule."""
    raw = load(name, ROOT, environ={}).model_dump(mode="json", by_alias=True, exclude_none=True)
    raw.pop("source", None)
    profile = Profile.model_validate(merged(raw, over))
    return {one.rule: one for one in reversed(check(profile, ROOT, host))}


@pytest.mark.parametrize("known", [one.name for one in names(ROOT)])
def test_no_built_in_profile_has_an_error(known: str, tmp_path: Path) -> None:
    """They are the guides' working set-ups; warnings in them are true."""
    found = check(load(known, tmp_path, environ={}), tmp_path)

    assert [one.text for one in found if one.severity is ERROR] == []


@pytest.mark.parametrize("tag", ["v0.11.0", "v0.10.1"])
def test_the_stable_image_on_gb10(tag: str) -> None:
    """The guide: CUTLASS FP8 kernels fail, memory is read wrongly, Triton lacks sm_121a."""
    server = {"image": f"vllm/vllm-openai:{tag}", "version": tag[1:]}
    spoken = variant("spark-fp8", {"server": server})["image.stable-on-gb10"]

    assert (spoken.severity, spoken.key) == (ERROR, "server.image")
    assert "sm_121a" in spoken.text


def test_latest_on_gb10_with_the_guides_version() -> None:
    """`latest`, which the guide names, at the version that it says it was."""
    server = {"image": "vllm/vllm-openai:latest", "version": "0.10.1"}

    assert variant("spark-fp8", {"server": server})["image.stable-on-gb10"].severity is ERROR


def test_latest_on_gb10_without_a_version() -> None:
    """Newer ones work, so it is a warning."""
    raw = {"image": "vllm/vllm-openai:latest", "version": ""}

    assert variant("spark-fp8", {"server": raw})["image.stable-on-gb10"].severity is WARNING


def test_the_new_stable_image_on_gb10_is_fine() -> None:
    """From 0.20 on, official images are built with CUDA 13."""
    server = {"image": "vllm/vllm-openai:v0.32.0", "version": "0.32.0"}
    found = variant("spark-qwen35", {"server": server})

    assert not {"image.stable-on-gb10", "image.cuda-too-old"} & found.keys()


def test_chunked_prefill_on_qwen35() -> None:
    """The guide: 50 tok/s became 5.7."""
    spoken = variant("spark-qwen35", {"server": {"args": {"enable-chunked-prefill": True}}})

    assert "5.7" in spoken["batching.chunked-hybrid"].text
    assert spoken["batching.chunked-hybrid"].fix is not None


def test_2048_batched_tokens_at_131k() -> None:
    """The guide: max_num_batched_tokens (2048) must be >= block_size (2096)."""
    spoken = variant("spark-qwen35", {"server": {"args": {"max-num-batched-tokens": 2048}}})[
        "batching.block-hybrid"
    ]

    assert spoken.severity is ERROR
    assert "2,048" in spoken.text
    assert "2,096" in spoken.text
    assert spoken.fix is not None
    assert spoken.fix.value == 4096


def test_fp8_on_the_fly_on_gb10() -> None:
    """The guide: cutlass_scaled_mm failed."""
    over = {"model": "qwen3-32b", "server": {"model": "Qwen/Qwen3-32B", "args": {"quantization": "fp8"}}}
    spoken = variant("spark-fp8", over)["quantisation.on-the-fly-gb10"]

    assert spoken.severity is ERROR
    assert "cutlass_scaled_mm" in spoken.text


def test_95_percent_beside_llama_cpp() -> None:
    """The guide: half of the memory, never above what llama.cpp leaves."""
    llama = Tenant("llama.cpp", "http://127.0.0.1:11436", None, ("qwen3-32b-q5_k_m.gguf",))
    total = round(95.6 * GIB)
    busy = Host(gpus=(Gpu("RTX PRO 6000", total, total - 40 * GIB, (12, 0)),), tenants=(llama,))
    over = {"server": {"args": {"gpu-memory-utilization": 0.95}}}
    spoken = variant("rtxpro6000-shared", over, busy)["tenants.free-memory"]

    assert spoken.severity is ERROR
    assert "90.8 GiB" in spoken.text
    assert "55.6 GiB are free" in spoken.text
    assert "llama.cpp at http://127.0.0.1:11436" in spoken.text
    assert spoken.fix is not None
    assert spoken.fix.value == 0.56
    assert "tenants.free-memory" not in variant("rtxpro6000-shared", {}, busy)


def test_95_percent_beside_llama_cpp_where_free_memory_is_unknown() -> None:
    """It answers, so it holds something: a warning."""
    host = Host(tenants=(Tenant("llama.cpp", "http://127.0.0.1:11436"),))
    over = {"server": {"args": {"gpu-memory-utilization": 0.95}}}

    assert variant("rtxpro6000-shared", over, host)["tenants.beside"].severity is WARNING
    assert "tenants.beside" not in variant("rtxpro6000-shared", {}, host)


def test_ollama_holds_unified_memory() -> None:
    """The guide: they compete for one pool, and nvidia-smi says N/A; what the system has left counts."""
    ollama = Tenant("ollama", "http://127.0.0.1:11434", 20 * GIB, ("qwen3:32b",), "curl …")
    gpu = Gpu("NVIDIA GB10", 0, 0, (12, 1))
    host = Host((gpu,), available=90 * GIB, memory=119 * GIB, tenants=(ollama,))
    spoken = variant("spark-qwen35", {}, host)["tenants.free-memory"]

    assert "101.1 GiB (0.85 of 119.0 GiB), 90.0 GiB are free" in spoken.text
    assert "MemAvailable" in spoken.text


def test_enable_reasoning_on_a_new_version() -> None:
    """The guide's own flag, which 0.10 removed."""
    server = {"image": "vllm/vllm-openai:v0.32.0", "version": "0.32.0"}
    spoken = variant("rtx5090-qwq-awq", {"server": server})
    removed = spoken["flags.removed"]

    assert removed.key == "server.args.enable-reasoning"
    assert removed.severity is ERROR
    assert "removed in vLLM 0.10.0" in removed.text
    assert str(removed.fix) == "remove enable-reasoning"
    assert "flags.removed" not in variant("rtx5090-qwq-awq", {})
    assert "environment.removed" in spoken


def test_the_default_share_on_gb10() -> None:
    """0.92 of unified memory from 0.20 on: seldom free."""
    raw = load("spark-qwen35", ROOT, environ={}).model_dump(mode="json", by_alias=True, exclude_none=True)
    del raw["server"]["args"]["gpu-memory-utilization"]
    raw["server"]["version"] = "0.20.0"
    raw.pop("source")
    spoken = {one.rule: one for one in check(Profile.model_validate(raw), ROOT)}["memory.unified-default"]

    assert "0.92 of 119.2 GiB is 109.7 GiB" in spoken.text
