"""How a checkpoint stores its weights, as its quantisation config says: format, and what is left out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_vllm.profile.census import Census
    from pytest_vllm.profile.modelfile import CacheType, Quantization

_LISTED = ("ignore", "modules_to_not_convert", "exclude_modules", "ignored_layers")
#: Words by which such lists name attention, recurrent layers and shared experts.
PARTS = ("self_attn", ".attn.", "linear_attn", "mixer", "shared_expert")


@dataclass(frozen=True)
class Stored:
    """What a quantisation config says.

    Args:
        quantization: of the linear layers.
        experts: of routed experts, where it is another.
        width: bytes per weight, where they are not the usual ones.
        plain: parameters beside the embeddings that stay in 16 bits.
        cache: type of the KV cache that `auto` stands for with this checkpoint.
    """

    quantization: Quantization = "none"
    experts: Quantization | None = None
    width: float = 0
    plain: int = 0
    cache: CacheType = "auto"


def stored(whole: dict[str, Any], config: dict[str, Any], counted: Census) -> Stored:
    """The quantisation of a checkpoint; 16 bits where no config of it is there."""
    given = whole.get("quantization_config") or config.get("quantization_config") or {}
    if not given:
        return Stored(experts="mxfp4" if config.get("expert_dtype") == "fp4" else None)
    kind = _kind(given)
    experts: Quantization | None = "mxfp4" if config.get("expert_dtype") == "fp4" else None
    if given.get("moe_quant_algo") == "NVFP4":
        experts = "nvfp4"
    plain = _plain(given, counted, config["num_hidden_layers"])
    return Stored(kind, experts, _width(given, kind), plain, _cache(given))


def _cache(given: dict[str, Any]) -> CacheType:
    """FP8 where the checkpoint brings scales for its cache: vLLM's `auto` takes them."""
    told = given.get("kv_cache_quant_algo") or given.get("kv_cache_scheme")
    eight = isinstance(told, dict) and told.get("num_bits") == 8 and told.get("type") == "float"
    return "fp8" if eight or str(told).upper() == "FP8" else "auto"


def _kind(given: dict[str, Any]) -> Quantization:
    method = str(given.get("quant_method", "")).lower()
    algorithm = str(given.get("quant_algo", "")).lower()
    text = json.dumps(given).lower()
    if method in ("awq", "gptq"):
        return "awq" if method == "awq" else "int8" if given.get("bits") == 8 else "gptq"
    if "mxfp4" in text:
        return "mxfp4"
    if "nvfp4" in text or ((group := _group(given)).get("type") == "float" and group.get("num_bits") == 4):
        return "nvfp4"
    if method in ("fp8", "fbgemm_fp8") or "fp8" in algorithm or group.get("type") == "float":
        return "fp8"
    bits = group.get("num_bits") or given.get("bits") or given.get("w_bit")
    if bits == 8:
        return "int8"
    return "int4" if bits == 4 else "none"


def _group(given: dict[str, Any]) -> dict[str, Any]:
    """The weights of compressed-tensors' first group."""
    groups = given.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, dict) else None
    weights = first.get("weights") if isinstance(first, dict) else None
    return weights if isinstance(weights, dict) else {}


def _width(given: dict[str, Any], kind: Quantization) -> float:
    """Bytes per weight of integers in groups: the code, and a scale of 16 bits for each group."""
    size = _group(given).get("group_size") or given.get("group_size")
    if kind == "int4" and isinstance(size, int) and size > 0:
        return 0.5 + 2 / size
    return 0


def _plain(given: dict[str, Any], counted: Census, layers: int) -> int:
    """Parameters that are named as left out; towers always are."""
    found = left_out(given, layers)
    left = counted.vision
    parts = {
        ("self_attn", ".attn."): counted.attention,
        ("linear_attn", "mixer"): counted.recurrent,
        ("shared_expert",): counted.shared,
    }
    for words, params in parts.items():
        if found.intersection(words):
            left += params
    return left


def left_out(given: dict[str, Any], layers: int) -> set[str]:
    """Parts that stay in 16 bits in at least half of the layers: named for each, or by a pattern for all."""
    names = [str(one) for key in _LISTED for one in given.get(key) or ()]
    found = set()
    for word in PARTS:
        named = [name for name in names if _names_part(name, word)]
        everywhere = any(not any(one.isdigit() for one in name.partition(word)[0]) for name in named)
        if everywhere or 2 * len({name.partition(word)[0] for name in named}) >= layers:
            found.add(word)
    return found


def _names_part(name: str, word: str) -> bool:
    """Whether a pattern names a part as a whole: `…self_attn*`, not `…self_attn.indexer.k_norm`."""
    _, found, rest = name.partition(word)
    return bool(found) and not any(one.isalpha() for one in rest.replace("proj", "").replace("re:", ""))
