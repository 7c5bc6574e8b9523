"""Quantisation against checkpoint, GPU and version."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_vllm.facts import flags
from pytest_vllm.preflight.rule import ERROR, NOTE, WARNING, Finding, drop, put, rule
from pytest_vllm.profile.flags import not_known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_vllm.preflight.deployment import Deployment

_FLAG = "quantization"
#: What `--quantization` may say about a checkpoint of each kind.
_FITS = {
    "fp8": {"fp8", "compressed-tensors", "modelopt", "fbgemm_fp8", "quark", "ptpc_fp8", "humming"},
    "awq": {
        "awq",
        "awq_marlin",
        "auto_awq",
        "cpu_awq",
        "ipex",
        "inc",
        "moe_wna16",
        "compressed-tensors",
        "auto-round",
    },
    "gptq": {
        "gptq",
        "gptq_marlin",
        "auto_gptq",
        "gptq_bitblas",
        "gptq_marlin_24",
        "cpu_gptq",
        "moe_wna16",
        "inc",
        "auto-round",
    },
    "nvfp4": {"modelopt_fp4", "modelopt", "nvfp4", "compressed-tensors", "petit_nvfp4", "modelopt_mixed"},
    "mxfp4": {"mxfp4", "gpt_oss_mxfp4", "quark", "compressed-tensors"},
    "gguf-q5_k_m": {"gguf"},
}
#: Methods that need a quantised checkpoint.
_OFFLINE = {
    *("awq", "awq_marlin", "auto_awq", "gptq", "gptq_marlin", "auto_gptq", "gptq_marlin_24", "marlin"),
    *("compressed-tensors", "modelopt", "modelopt_fp4", "gguf", "aqlm", "quark", "fbgemm_fp8"),
}
_GB10 = (12, 1)


def _title(of: Deployment) -> str:
    return of.model.title if of.model else "the checkpoint"


def _device(of: Deployment) -> str:
    return of.hardware.title if of.hardware else "the GPU"


def _of_modelopt(of: Deployment) -> bool:
    """Whether the checkpoint may be Model Optimizer's, which is loaded as such whatever is written.

    `ModelOpt…Config.override_quantization_method` does not look at what was asked for; NVIDIA's guides write
    `--quantization fp4`. Of a folder nobody knows who made it.
    """
    model = of.profile.server.model
    return of.quantization in ("nvfp4", "fp8") and (model.startswith("nvidia/") or model[:1] in "/~.")


@rule("quantisation.on-the-fly-gb10", ERROR, source="guide for DGX Spark: cutlass_scaled_mm failed")
def on_the_fly_gb10(of: Deployment) -> Iterator[Finding]:
    """Weights are turned into FP8 while loading, which fails on GB10."""
    if of.given(_FLAG) == "fp8" and of.quantization == "none" and of.capability == _GB10:
        recent = of.at_least("0.20.0")
        yield Finding(
            of.key(_FLAG),
            f'quantization = "fp8" on {_title(of)}, whose weights have 16 bits, on GB10',
            "quantising while loading ends in 'cutlass_scaled_mm failed'"
            + (" in versions before 0.20; try it before you rely on it" if recent else ""),
            advice="serve a checkpoint that is FP8 already, such as Qwen/Qwen3-32B-FP8",
            severity=WARNING if recent else ERROR,
        )


@rule("quantisation.mismatch", ERROR, source="ModelConfig._verify_quantization")
def mismatch(of: Deployment) -> Iterator[Finding]:
    """A method that is not the checkpoint's."""
    given, fits = of.given(_FLAG), _FITS.get(of.quantization)
    if isinstance(given, str) and fits and given not in fits and not _of_modelopt(of):
        yield Finding(
            of.key(_FLAG),
            f"quantization is {given!r}, {_title(of)} is stored as {of.quantization}",
            "vLLM refuses: it does not match the checkpoint's own method",
            drop(of.key(_FLAG)),
        )


@rule("quantisation.not-quantised", ERROR, source="get_quant_config")
def not_quantised(of: Deployment) -> Iterator[Finding]:
    """A method that needs a quantised checkpoint, on one that is not."""
    given = of.given(_FLAG)
    if isinstance(given, str) and of.quantization == "none" and given in _OFFLINE and not of.simulated:
        yield Finding(
            of.key(_FLAG),
            f"quantization is {given!r}, {_title(of)} has 16-bit weights",
            "the checkpoint has no quantisation settings to read",
            drop(of.key(_FLAG)),
        )


#: An AutoRound checkpoint is loaded as `inc` whatever is written (INCConfig.override_quantization_method).
_OVERRIDDEN = "autoround"


@rule("quantisation.unknown", ERROR, versions=">=0.13", source="QUANTIZATION_METHODS of each release")
def unknown(of: Deployment) -> Iterator[Finding]:
    """A method that this version does not have."""
    given, known = of.given(_FLAG), flags(of.version)[_FLAG].suggested
    if not isinstance(given, str) or re.sub(r"[-_]", "", given.lower()) == _OVERRIDDEN:
        return
    if known and given.lower() not in known and given != "gguf" and not _of_modelopt(of):
        yield Finding(
            of.key(_FLAG),
            f"quantization is {given!r}",
            f"{of.shown_version} has {', '.join(known)}",
            advice="leave it out: the checkpoint names its method",
            severity=ERROR if of.exact else WARNING,
        )


@rule("quantisation.gguf-gone", ERROR, versions=">=0.24", source="QUANTIZATION_METHODS of each release")
def gguf_gone(of: Deployment) -> Iterator[Finding]:
    """A GGUF file in a version that no longer reads it."""
    model = of.profile.server.model
    if of.given(_FLAG) == "gguf" or model.endswith(".gguf") or of.quantization.startswith("gguf"):
        yield Finding(
            "server.model",
            f"{model} is GGUF",
            f"it is gone from vLLM 0.24 on, this is {of.shown_version}",
            advice="an AWQ, GPTQ or FP8 checkpoint, a GGUF plugin, or vLLM 0.23",
        )


@rule("quantisation.gguf-tokenizer", WARNING, versions="<0.24", source="vLLM's GGUF page")
def gguf_tokenizer(of: Deployment) -> Iterator[Finding]:
    """A GGUF file without the base model's tokenizer: converting it is slow and can go wrong."""
    if of.profile.server.model.endswith(".gguf") and not of.has("tokenizer"):
        yield Finding(
            "server.args.tokenizer",
            f"{of.profile.server.model} without tokenizer",
            "the tokenizer is converted from the file: slow, and wrong for large vocabularies",
            advice='tokenizer = "…", the base model\'s repository',
        )


@rule("quantisation.slow-awq", NOTE, source="AWQMarlinConfig.override_quantization_method")
def slow_awq(of: Deployment) -> Iterator[Finding]:
    """The plain AWQ kernel is forced where the Marlin kernel would be chosen."""
    given, capability = of.given(_FLAG), of.capability
    if given in ("awq", "gptq") and given == of.quantization and capability and capability >= (8, 0):
        yield Finding(
            of.key(_FLAG),
            f'quantization = "{given}" forces the plain kernel',
            f"left out, vLLM takes {given}_marlin on this GPU, which is faster",
            drop(of.key(_FLAG)),
        )


@rule("quantisation.awq-bfloat16", WARNING, versions="<0.20", source="AWQConfig.get_supported_act_dtypes")
def awq_bfloat16(of: Deployment) -> Iterator[Finding]:
    """The plain AWQ kernel takes float16 only."""
    if of.given(_FLAG) == "awq" and of.given("dtype") == "bfloat16":
        yield Finding(
            of.key("dtype"),
            'dtype = "bfloat16" with quantization = "awq"',
            "that kernel takes float16 only and vLLM refuses; awq_marlin takes both",
            drop(of.key(_FLAG)),
        )


@rule("quantisation.no-fp8-units", WARNING, source="compute capabilities; vLLM's FP8 page")
def no_fp8_units(of: Deployment) -> Iterator[Finding]:
    """FP8 weights on a GPU without FP8 units: they save memory and no time."""
    capability = of.capability
    if capability and capability < (8, 9) and "fp8" in (of.quantization, of.given(_FLAG)):
        yield Finding(
            of.key(_FLAG) if of.has(_FLAG) else "server.model",
            f"FP8 on {_device(of)} (compute capability {capability[0]}.{capability[1]})",
            "weights are unpacked to 16 bits by Marlin kernels (W8A16): memory is saved, compute is not",
        )


@rule("quantisation.no-fp4-units", WARNING, source="compute capabilities; vLLM's NVFP4 kernels")
def no_fp4_units(of: Deployment) -> Iterator[Finding]:
    """NVFP4 weights on a GPU without FP4 units."""
    capability = of.capability
    if capability and capability < (10, 0) and of.quantization == "nvfp4":
        yield Finding(
            "server.model",
            f"{_title(of)} on {_device(of)} (compute capability {capability[0]}.{capability[1]})",
            "FP4 units come with Blackwell (10.0); weights are unpacked by Marlin kernels, or refused",
        )


@rule("quantisation.nvfp4-marlin", NOTE, source="vllm#31085; guide for RTX PRO 6000")
def nvfp4_marlin(of: Deployment) -> Iterator[Finding]:
    """NVFP4 on sm_120 and sm_121 may run on Marlin kernels, 40 to 50 % slower."""
    if of.quantization == "nvfp4" and of.capability in ((12, 0), (12, 1)):
        yield Finding(
            "server.model",
            f"NVFP4 on {_device(of)}",
            "some versions fall back to Marlin kernels there, 40 to 50 % slower; the log names the kernel",
        )


@rule("quantisation.fp8-cache", WARNING, source="vLLM's FP8 KV cache page; compute capabilities")
def fp8_cache(of: Deployment) -> Iterator[Finding]:
    """An FP8 cache on a GPU without FP8 units."""
    capability, dtype = of.capability, of.given("kv-cache-dtype")
    if capability and capability < (8, 9) and str(dtype).startswith("fp8"):
        yield Finding(
            of.key("kv-cache-dtype"),
            f'kv-cache-dtype = "{dtype}" on {_device(of)} '
            f"(compute capability {capability[0]}.{capability[1]})",
            "most attention kernels have no FP8 below 8.9: slower, or refused",
            drop(of.key("kv-cache-dtype")),
        )


@rule("quantisation.cache-dtype", ERROR, versions=">=0.33", source="CacheConfig.cache_dtype")
def cache_dtype(of: Deployment) -> Iterator[Finding]:
    """A cache type that this version does not have."""
    given, known = of.given("kv-cache-dtype"), flags(of.version)["kv-cache-dtype"].suggested
    if isinstance(given, str) and known and given not in known and not of.profile.server.facts_hold:
        what = not_known(f"the cache type {given!r}")
        yield Finding(of.key("kv-cache-dtype"), what, severity=WARNING)
    elif isinstance(given, str) and known and given not in known:
        yield Finding(of.key("kv-cache-dtype"), f"kv-cache-dtype is {given!r}", f"known: {', '.join(known)}")


@rule("quantisation.bf16-turing", ERROR, source="vllm/platforms/cuda.py check_if_supports_dtype")
def bf16_turing(of: Deployment) -> Iterator[Finding]:
    """bfloat16 on a GPU below compute capability 8.0."""
    capability = of.capability
    if capability and capability < (8, 0) and of.given("dtype") == "bfloat16":
        yield Finding(
            of.key("dtype"),
            f'dtype = "bfloat16" on {_device(of)} (compute capability {capability[0]}.{capability[1]})',
            "bfloat16 needs 8.0",
            put(of.key("dtype"), "float16"),
        )


#: Checkpoints whose config.json has weight_block_size [128, 128]; others in FP8 (GLM, Llama, RedHatAI dynamic
#: ones) have a scale per tensor or per channel and can be cut anywhere.
_BLOCKS = re.compile(
    r"(^|/)(qwen3[^/]*-fp8|deepseek-(v3|r1)(?![^/]*distill)[^/]*|kimi-k2-(instruct|base)[^/]*|minimax-m2[^/]*"
    r"|[^/]*-fp8-block)$",
    re.IGNORECASE,
)


@rule("quantisation.block-split", WARNING, source="fp8.py: weight_block_size after the split")
def block_split(of: Deployment) -> Iterator[Finding]:
    """A tensor-parallel size that cuts FP8 blocks of 128 in two."""
    parts = of.split
    whole = of.on("enable-expert-parallel") and of.model is not None and bool(of.model.experts)
    blocks = _BLOCKS.search(of.profile.server.model.rstrip("/")) is not None
    if of.model and of.quantization == "fp8" and parts > 1 and not whole and blocks:
        width = of.model.intermediate
        if width % parts or (width // parts) % 128:
            yield Finding(
                of.key("tensor-parallel-size"),
                f"feed-forward width {width:,} over {parts} GPUs is {width / parts:g}",
                "with weights in blocks of 128 vLLM refuses a split inside a block",
                advice="a smaller tensor-parallel-size, or enable-expert-parallel for experts",
            )
