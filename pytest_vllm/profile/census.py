"""How many parameters a config.json describes, counted from its shapes and by what they do.

Norms, biases and convolutions are left out: under one part in a hundred. A test holds the sums against the
published totals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pytest_vllm.profile.layers import layer_names

#: Matrices of a feed-forward layer: gate, up and down, or up and down alone.
_GATED, _PLAIN = 3, 2


@dataclass(frozen=True)
class Census:
    """Parameters of a checkpoint.

    Args:
        embedding: one of the two embeddings.
        per_layer: embeddings that each layer looks up for itself.
        attention: attention, latent or windowed.
        recurrent: layers with a recurrent state.
        feed: dense feed-forward layers, routers among them.
        shared: experts that every token uses.
        experts: experts that tokens are routed to.
        vision: towers that see or hear.
    """

    embedding: int
    per_layer: int
    attention: int
    recurrent: int
    feed: int
    shared: int
    experts: int
    vision: int

    def total(self, *, tied: bool) -> int:
        """All of them."""
        twice = self.embedding * (1 if tied else 2) + self.per_layer
        return twice + self.attention + self.recurrent + self.feed + self.shared + self.experts + self.vision


def census(whole: dict[str, Any], config: dict[str, Any]) -> Census:
    """Counts the text part by its config and the towers by theirs. Raises KeyError."""
    names = layer_names(config)
    hidden = config["hidden_size"]
    pattern = config.get("hybrid_override_pattern") or ""
    blocks = [str(one) for one in config.get("layers_block_type") or ()]
    attending = sum(_attention(one, config) for one in names if one in ("full", "window", "chunk"))
    recurrent = sum(_recurrent(one, config) for one in names if one in ("linear", "mamba"))
    mixed = bool(pattern or blocks)
    routed = _moe_layers(config, len(names), pattern, blocks)
    dense = pattern.count("-") + blocks.count("mlp") if mixed else len(names) - routed
    experts = count_experts(config)
    extra = dense if not config.get("enable_moe_block") else len(names)
    return Census(
        embedding=config["vocab_size"] * hidden,
        per_layer=config.get("vocab_size_per_layer_input", 0)
        * (config.get("hidden_size_per_layer_input") or 0)
        * len(names),
        attention=attending,
        recurrent=recurrent,
        feed=_positions(config) + extra * _dense(config) + routed * hidden * experts,
        shared=routed * _shared(config),
        experts=routed * experts * expert_size(config),
        vision=sum(_tower(whole[one]) for one in ("vision_config", "audio_config") if whole.get(one)),
    )


def _positions(config: dict[str, Any]) -> int:
    """Learnt positions of encoders."""
    learnt = config.get("model_type") in ("bert", "roberta", "xlm-roberta")
    return int(config["max_position_embeddings"] * config["hidden_size"]) if learnt else 0


def count_experts(config: dict[str, Any]) -> int:
    """Routed experts per layer; 0 for dense models."""
    for key in ("n_routed_experts", "num_experts", "num_local_experts"):
        if config.get(key):
            return int(config[key])
    return 0


def per_token(config: dict[str, Any]) -> int:
    """Routed experts that a token uses."""
    for key in ("num_experts_per_tok", "num_experts_per_token", "top_k_experts", "experts_per_token"):
        if config.get(key):
            return int(config[key])
    return 0


def expert_width(config: dict[str, Any]) -> int:
    """Width of one routed expert."""
    return int(config.get("moe_intermediate_size") or config["intermediate_size"])


def expert_size(config: dict[str, Any]) -> int:
    """Parameters of one routed expert."""
    if not count_experts(config):
        return 0
    inner = config.get("routed_expert_hidden_size") or config.get("moe_latent_size") or config["hidden_size"]
    return int(_matrices(config) * inner * expert_width(config))


def _matrices(config: dict[str, Any]) -> int:
    plain = config.get("mlp_hidden_act") == "relu2" or config.get("model_type") in _TWO
    return _PLAIN if plain else _GATED


_TWO = ("bert", "roberta", "xlm-roberta", "whisper", "starcoder2")


def _dense(config: dict[str, Any]) -> int:
    wide = config.get("dense_intermediate_size") or config.get("intermediate_size_mlp")
    return int(_matrices(config) * config["hidden_size"] * (wide or config.get("intermediate_size", 0)))


def _shared(config: dict[str, Any]) -> int:
    hidden = config["hidden_size"]
    width = config.get("shared_expert_intermediate_size") or config.get("moe_shared_expert_intermediate_size")
    width = width or config.get("shared_intermediate_size") or config.get("share_expert_dim")
    count = config.get("n_shared_experts") or config.get("num_shared_experts") or (1 if width else 0)
    latent = config.get("moe_latent_size") or config.get("routed_expert_hidden_size") or 0
    if config.get("model_type") == "llama4_text":
        count = 1
    made = count * (width or expert_width(config)) if count else 0
    return int(_matrices(config) * hidden * made + 2 * hidden * latent)


def _moe_layers(config: dict[str, Any], layers: int, pattern: str, blocks: list[str]) -> int:
    if not count_experts(config):
        return 0
    if pattern or blocks:
        return pattern.count("E") + blocks.count("moe")
    if isinstance(listed := config.get("moe_layer_freq"), list):
        return sum(listed)
    if isinstance(listed := config.get("mlp_layer_types"), list):
        return sum(one == "sparse" for one in listed)
    step = config.get("interleave_moe_layer_step") or config.get("decoder_sparse_step") or 1
    return int((layers - int(config.get("first_k_dense_replace") or 0)) // step)


def _attention(name: str, config: dict[str, Any]) -> int:
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    if "compress_ratios" in config:
        return _compressed(config)
    if config.get("kv_lora_rank"):
        return _latent(config)
    kv_heads = config.get("num_key_value_heads") or heads
    width = config.get("head_dim") or config.get("attention_head_dim") or hidden // heads
    if name == "full" and config.get("global_head_dim"):
        width = config["global_head_dim"]
        kv_heads = config.get("num_global_key_value_heads") or kv_heads
    value = config.get("v_head_dim") or width
    asked = 2 if config.get("attn_output_gate") else 1
    keys = kv_heads * width * (1 if name == "full" and config.get("attention_k_eq_v") else 2)
    if value != width:
        keys = kv_heads * (width + value)
    return int(hidden * (asked * heads * width + keys + heads * value))


def _latent(config: dict[str, Any]) -> int:
    hidden, heads, rank = config["hidden_size"], config["num_attention_heads"], config["kv_lora_rank"]
    plain, turned, value = config["qk_nope_head_dim"], config["qk_rope_head_dim"], config["v_head_dim"]
    low = config.get("q_lora_rank")
    asked = heads * (plain + turned)
    query = low * (hidden + asked) if low else hidden * asked
    gate = hidden * heads * value if config.get("mla_use_output_gate") else 0
    index = config.get("index_head_dim")
    looked = low * config["index_n_heads"] * index + hidden * index if index and low else 0
    keys = hidden * (rank + turned) + rank * heads * (plain + value)
    return int(query + keys + heads * value * hidden + gate + looked)


def _compressed(config: dict[str, Any]) -> int:
    hidden, heads, width = config["hidden_size"], config["num_attention_heads"], config["head_dim"]
    query = config["q_lora_rank"] * (hidden + heads * width)
    out = config["o_lora_rank"] * (heads * width + config["o_groups"] * hidden)
    return int(query + hidden * width + out)


def _recurrent(name: str, config: dict[str, Any]) -> int:
    hidden = config["hidden_size"]
    if name == "mamba":
        inner = config["mamba_num_heads"] * config["mamba_head_dim"]
        groups = 2 * config.get("n_groups", 1) * config["ssm_state_size"]
        return int(hidden * (3 * inner + groups + config["mamba_num_heads"]))
    if linear := config.get("linear_attn_config"):
        inner = linear["num_heads"] * linear["head_dim"]
        gate = hidden * inner if linear.get("use_full_rank_gate") else linear["head_dim"] * (hidden + inner)
        return int(4 * hidden * inner + gate + linear["head_dim"] * (hidden + inner))
    keys = config["linear_num_key_heads"] * config["linear_key_head_dim"]
    values = config["linear_num_value_heads"] * config["linear_value_head_dim"]
    return int(hidden * (2 * keys + 3 * values + 2 * config["linear_num_value_heads"]))


def _tower(config: dict[str, Any]) -> int:
    hidden = config.get("hidden_size") or config.get("d_model") or config.get("embed_dim") or 0
    layers = config.get("num_hidden_layers") or config.get("depth") or config.get("encoder_layers") or 0
    wide = config.get("intermediate_size") or config.get("encoder_ffn_dim") or 4 * hidden
    merged = hidden * config.get("spatial_merge_size", 1) ** 2
    out = config.get("out_hidden_size") or 0
    mergers = 1 + len(config.get("deepstack_visual_indexes") or ())
    deep = _GATED if str(config.get("model_type", "")).startswith("qwen2_5") else _PLAIN
    return int(layers * (4 * hidden * hidden + deep * hidden * wide) + mergers * merged * (merged + out))
