"""A model's figures from its own config.json, for checkpoints that no model file describes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_vllm.profile.errors import ProfileError
from pytest_vllm.profile.modelfile import ModelFile

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_vllm.profile.modelfile import Quantization


def from_config(folder: Path) -> ModelFile:
    """The figures of a checkpoint's own config.json. Raises ProfileError when it says too little.

    The parameters are counted from the shapes (dense and mixture-of-experts decoders with gated
    feed-forwards); a recurrent layer counts like an attention layer, so hybrid models come out about right
    only.
    """
    file = folder / "config.json"
    try:
        whole: dict[str, Any] = json.loads(file.read_text("utf-8"))
        config = whole.get("text_config", whole)
        return _counted(folder.name, whole, config)
    except OSError as error:
        raise ProfileError(f"{file}: cannot be read: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise ProfileError(f"{file}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
    except KeyError as error:
        raise ProfileError(f"{file}: lacks {error.args[0]!r}, so the model's size is unknown") from error


def _counted(name: str, whole: dict[str, Any], config: dict[str, Any]) -> ModelFile:
    hidden, layers, heads = config["hidden_size"], config["num_hidden_layers"], config["num_attention_heads"]
    kv_heads = config.get("num_key_value_heads", heads)
    head_dim = config.get("head_dim") or hidden // heads
    experts = config.get("num_experts") or config.get("num_local_experts") or 0
    width = (
        config["moe_intermediate_size"]
        if experts and "moe_intermediate_size" in config
        else config["intermediate_size"]
    )
    attention = 2 * hidden * heads * head_dim + 2 * hidden * kv_heads * head_dim
    expert_params = 3 * hidden * width * experts * layers
    dense = 0 if experts else 3 * hidden * width
    tied = bool(config.get("tie_word_embeddings", whole.get("tie_word_embeddings", False)))
    embeddings = config["vocab_size"] * hidden * (1 if tied else 2)
    kinds = config.get("layer_types") or []
    full = sum(1 for kind in kinds if kind == "full_attention")
    recurrent = any("linear" in kind or "mamba" in kind for kind in kinds)
    return ModelFile(
        title=name,
        architecture=(whole.get("architectures") or ["unknown"])[0],
        params=(attention + dense + 2 * hidden) * layers + hidden + expert_params + embeddings,
        layers=layers,
        attention_layers=full if recurrent else layers,
        hidden=hidden,
        intermediate=width,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        vocab=config["vocab_size"],
        tied_embeddings=tied,
        context=config["max_position_embeddings"],
        quantization=_quantization(whole.get("quantization_config") or {}),
        expert_params=expert_params,
        experts=experts,
        experts_per_token=config.get("num_experts_per_tok") or 0,
        hybrid=recurrent,
        source="config.json",
    )


def _quantization(config: dict[str, Any]) -> Quantization:
    method = str(config.get("quant_method", "")).lower()
    if method in ("fp8", "fbgemm_fp8"):
        return "fp8"
    if method == "awq":
        return "awq"
    if method == "gptq":
        return "gptq"
    if "fp4" in json.dumps(config).lower():
        return "mxfp4" if method == "mxfp4" else "nvfp4"
    return "none"
