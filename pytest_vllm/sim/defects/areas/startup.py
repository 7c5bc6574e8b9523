"""Starts that succeed and say what is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_vllm.sim.defects.registry import defect

if TYPE_CHECKING:
    from pytest_vllm.sim.boot.deployment import Deployment

#: As vLLM 0.32.0 and older ones log them.
WARNINGS = (
    (
        "Your GPU does not have native support for FP4 computation but FP4 quantization is being "
        "used. Weight-only FP4 compression will be used leveraging the Marlin kernel."
    ),
    "Using 'MARLIN' NvFp4 MoE backend out of potential backends: ['FLASHINFER_CUTLASS', 'MARLIN'].",
    (
        "NVFP4 linear falling back to the slow and unoptimized emulation backend as no optimized "
        "backend is available"
    ),
    "Enforce eager set, disabling torch.compile, CUDAGraphs, and JIT kernel warmup.",
    (
        "Using default MoE config. Performance might be sub-optimal! Config file not found at "
        "/vllm/fused_moe/configs/E=128,N=768,device_name=NVIDIA_GB10.json"
    ),
    "Auto-fit max_model_len: reduced from 262144 to 98304 to fit in available GPU memory",
    "Maximum concurrency for 32,768 tokens per request: 1.21x",
    "Overriding num_gpu_blocks=27894 with num_gpu_blocks_override=512",
    ("Capping cudagraph capture sizes from max 512 to 352 to fit Mamba cache blocks (361 blocks available)."),
    "Async scheduling not supported with ngram-based speculative decoding and will be disabled.",
    "Unknown vLLM environment variable detected: VLLM_ATTENTION_BACKEND",
    "argument 'task' is deprecated",
    "SECURITY WARNING: Development endpoints are enabled! This should NOT be used in production!",
    (
        "Default vLLM sampling parameters have been overridden by the model's "
        "`generation_config.json`: `{'temperature': 0.6}`."
    ),
)


@defect("startup.warns", on="log", catches=["startup.quiet", "performance.log.native-fp4"])
def warns(lines: list[str], deployment: Deployment) -> list[str]:
    """The start falls back to slow kernels, cuts the context and the cache, and logs each."""
    del deployment
    first = any("non-default args" in text or "vLLM API server version" in text for text in lines)
    return (
        [*lines, *(f"(EngineCore pid=7) WARNING 11-28 20:50:01 [x.py:1] {one}" for one in WARNINGS)]
        if first
        else lines
    )
