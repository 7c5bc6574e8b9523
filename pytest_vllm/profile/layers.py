"""Which kinds of cache a config.json describes.

Read by the keys that carry the meaning, not by the model's name, so that a checkpoint that nobody listed is
read as well. Where keys point at a cache that is not understood, the kind is `unknown`, never a guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_vllm.profile.caches import CacheLayers

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Architectures that read a whole input at once and keep nothing.
ENCODERS = ("bert", "roberta", "modernbert", "nomic", "gte")
#: Keys of caches that no kind here describes: compressed tokens, indexed blocks, layers of other widths.
NOT_UNDERSTOOD = ("compress_ratios", "sparse_attention_config", "hybrid_layer_pattern", "block_configs")
#: Llama 4 attends over everything in every fourth layer.
LLAMA4 = 4
#: Bytes of the index that sparse attention keeps per token: FP8 codes and one scale of 4 bytes per 128.
_SCALED = 128
_FLOAT32 = 4


def caches_of(config: dict[str, Any]) -> list[CacheLayers]:
    """The layers of a text config by kind of cache; empty for encoders. Raises KeyError."""
    kind = str(config.get("model_type", ""))
    if any(kind.startswith(one) or f"{one}_" in kind for one in ENCODERS) or kind == "xlm-roberta":
        return []
    if any(one in config for one in NOT_UNDERSTOOD):
        return [CacheLayers(kind="unknown", layers=config["num_hidden_layers"])]
    if kind == "whisper":
        return _whisper(config)
    names = layer_names(config)
    grouped = {name: names.count(name) for name in dict.fromkeys(names)}
    found = [made for name, count in grouped.items() for made in _of_name(name, count, config)]
    return [one for one in found if one.layers]


def layer_names(config: dict[str, Any]) -> list[str]:
    """One name for each layer: full, window, chunk, linear, mamba, none, or the config's own word."""
    count = config["num_hidden_layers"]
    if isinstance(config.get("hybrid_override_pattern"), str):
        return [{"*": "full", "M": "mamba"}.get(one, "none") for one in config["hybrid_override_pattern"]]
    if linear := config.get("linear_attn_config"):
        return ["linear"] * len(linear["kda_layers"]) + ["full"] * len(linear["full_attn_layers"])
    given = config.get("layer_types") or config.get("layers_block_type")
    if isinstance(given, list):
        return [_NAMED.get(str(one), str(one)) for one in given]
    return _repeated(config, count)


def _repeated(config: dict[str, Any], count: int) -> list[str]:
    """Layers of a config that gives a rule for them instead of a list."""
    if interval := config.get("full_attention_interval"):
        return ["full" if (one + 1) % interval == 0 else "linear" for one in range(count)]
    if windowed := _windowed(config, count):
        return windowed
    if config.get("model_type") == "llama4_text" and config.get("attention_chunk_size"):
        rope = config.get("no_rope_layers") or [(one + 1) % LLAMA4 for one in range(count)]
        return ["chunk" if one else "full" for one in rope]
    if config.get("sliding_window") and config.get("use_sliding_window", True) and _mistral(config):
        return ["window"] * count
    return ["full"] * count


def _windowed(config: dict[str, Any], count: int) -> list[str]:
    """Layers of a config in which some have a window, by a rule; empty for one without such a rule."""
    pattern = config.get("sliding_window_pattern")
    if not pattern and config.get("model_type") == "gemma2" and config.get("sliding_window"):
        pattern = "LG"  # its config class alternates them, and its file does not say so
    if isinstance(pattern, str) and pattern:  # EXAONE's: LLLG
        return ["window" if pattern[one % len(pattern)] == "L" else "full" for one in range(count)]
    if not pattern:
        return []
    every = pattern if isinstance(pattern, int) else 0
    return ["full" if every and (one + 1) % every == 0 else "window" for one in range(count)]


_NAMED = {
    "full_attention": "full",
    "deepseek_sparse_attention": "full",
    "attention": "full",
    "sliding_attention": "window",
    "chunked_attention": "chunk",
    "linear_attention": "linear",
    "mamba": "mamba",
    "moe": "none",
    "mlp": "none",
}


def _mistral(config: dict[str, Any]) -> bool:
    """Whether a window without layer names means every layer: so in Mistral's and Phi-3's configs."""
    return str(config.get("model_type")) in ("mistral", "mixtral", "phi3", "starcoder2")


def _of_name(name: str, count: int, config: dict[str, Any]) -> Iterable[CacheLayers]:
    if name == "none":
        return
    if name == "linear":
        yield CacheLayers(kind="state", layers=count, state_bytes=_linear_state(config))
    elif name == "mamba":
        yield CacheLayers(kind="state", layers=count, state_bytes=_mamba_state(config))
    elif name == "full" and config.get("kv_lora_rank"):
        yield from _latent(count, config)
    elif name in ("full", "window", "chunk"):
        yield _attention(name, count, config)
    else:
        yield CacheLayers(kind="unknown", layers=count)


def _attention(name: str, count: int, config: dict[str, Any]) -> CacheLayers:
    heads = config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads") or heads
    width = config.get("head_dim") or config["hidden_size"] // heads
    if name == "full" and config.get("global_head_dim"):
        width = config["global_head_dim"]
        kv_heads = config.get("num_global_key_value_heads") or kv_heads
    value = config.get("v_head_dim") or width
    window = {"window": config.get("sliding_window"), "chunk": config.get("attention_chunk_size")}.get(name)
    kind: Any = name if window or name == "full" else "full"
    return CacheLayers(kind=kind, layers=count, kv_heads=kv_heads, width=width + value, window=window or 0)


def _latent(count: int, config: dict[str, Any]) -> Iterable[CacheLayers]:
    width = config["kv_lora_rank"] + config.get("qk_rope_head_dim", 0)
    sparse = config.get("index_head_dim")
    yield CacheLayers(kind="sparse-mla" if sparse else "mla", layers=count, width=width)
    if sparse:
        scales = -(-sparse // _SCALED) * _FLOAT32
        yield CacheLayers(kind="index", layers=_indexed(count, config), width=sparse + scales)


def _indexed(count: int, config: dict[str, Any]) -> int:
    """How many layers keep an index of their own; others take that of the layer before (GLM-5.2)."""
    own = config.get("indexer_types") or config.get("index_topk_pattern") or ()
    return sum(one in ("full", "F") for one in own[:count]) or count


def _linear_state(config: dict[str, Any]) -> int:
    """Convolution and recurrence of one layer: gated delta networks, or Kimi's delta attention."""
    if linear := config.get("linear_attn_config"):
        heads, width = linear["num_heads"], linear["head_dim"]
        conv = 3 * heads * width * (linear["short_conv_kernel_size"] - 1) * 2
        return int(conv + heads * width * width * _FLOAT32)
    keys = config["linear_num_key_heads"] * config["linear_key_head_dim"]
    values = config["linear_num_value_heads"] * config["linear_value_head_dim"]
    conv = (2 * keys + values) * (config["linear_conv_kernel_dim"] - 1) * 2
    return int(conv + values * config["linear_key_head_dim"] * _state_width(config))


def _mamba_state(config: dict[str, Any]) -> int:
    heads, width = config["mamba_num_heads"], config["mamba_head_dim"]
    state, groups = config["ssm_state_size"], config.get("n_groups", 1)
    conv = (heads * width + 2 * groups * state) * (config.get("conv_kernel", 4) - 1) * 2
    return int(conv + heads * width * state * _state_width(config))


def _state_width(config: dict[str, Any]) -> int:
    named = config.get("mamba_ssm_dtype") or config.get("mamba_ssm_cache_dtype")
    return _FLOAT32 if named == "float32" else 2


def _whisper(config: dict[str, Any]) -> list[CacheLayers]:
    layers, heads, hidden = config["decoder_layers"], config["decoder_attention_heads"], config["d_model"]
    own = CacheLayers(kind="full", layers=layers, kv_heads=heads, width=2 * (hidden // heads))
    heard = config.get("max_source_positions", 1500)
    return [own, own.model_copy(update={"kind": "cross", "window": heard})]
