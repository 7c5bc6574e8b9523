"""A model's figures from its own config.json, for checkpoints that no model file describes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pytest_vllm.profile.census import Census, census, count_experts, expert_width, per_token
from pytest_vllm.profile.errors import ProfileError
from pytest_vllm.profile.layers import caches_of, layer_names
from pytest_vllm.profile.modelfile import ModelFile
from pytest_vllm.profile.stored import Stored, stored

if TYPE_CHECKING:
    from pathlib import Path

#: Where the text part of a model lies in the config of one that also sees or hears.
PARTS = ("text_config", "llm_config", "language_config", "thinker_config")
#: Larger files are not a config.json.
LARGEST = 4 << 20


def from_config(place: Path) -> ModelFile:
    """The figures of a checkpoint's folder or config.json. Raises ProfileError when it says too little."""
    file = place / "config.json" if place.is_dir() else place
    name = file.parent.name if file.name == "config.json" else file.stem
    try:
        if file.stat().st_size > LARGEST:
            raise ProfileError(f"{file}: larger than {LARGEST >> 20} MiB, which no config.json is")
        whole = json.loads(file.read_text("utf-8"))
        beside = file.with_name("hf_quant_config.json")
        if isinstance(whole, dict) and "quantization_config" not in whole and beside.is_file():
            whole["quantization_config"] = json.loads(beside.read_text("utf-8")).get("quantization")
    except OSError as error:
        raise ProfileError(f"{file}: cannot be read: {error.strerror}") from error
    except json.JSONDecodeError as error:
        raise ProfileError(f"{file}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise ProfileError(f"{file}: not JSON: {type(error).__name__}") from error
    try:
        return described(name, whole)
    except ProfileError as error:
        raise ProfileError(f"{file}: {error}") from error


def described(name: str, whole: Any) -> ModelFile:
    """The figures of a config's content. Raises ProfileError."""
    if not isinstance(whole, dict):
        raise ProfileError("not a table, so the model's size is unknown")
    try:
        return _counted(name, whole, text_part(whole))
    except KeyError as error:
        raise ProfileError(f"lacks {error.args[0]!r}, so the model's size is unknown") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ProfileError(f"{place}: {first['msg']}, so the model's size is unknown") from error
    except (TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        raise ProfileError(f"not understood ({error}), so the model's size is unknown") from error


def text_part(whole: dict[str, Any]) -> dict[str, Any]:
    """The config of the text model, with the keys that older families call otherwise."""
    config = next((whole[one] for one in PARTS if isinstance(whole.get(one), dict)), whole)
    if any(isinstance(config.get(one), dict) for one in PARTS):
        return text_part(config)
    config = {name: value for name, value in config.items() if value is not None}
    for name, other in _OTHER.items():
        if other in config:
            config.setdefault(name, config[other])
    for listed in ("layer_types", "layers_block_type", "block_configs"):
        if isinstance(config.get(listed), list):
            config.setdefault("num_hidden_layers", len(config[listed]))
    return config


_OTHER = {
    "hidden_size": "d_model",
    "num_hidden_layers": "decoder_layers",
    "num_attention_heads": "decoder_attention_heads",
    "intermediate_size": "decoder_ffn_dim",
    "max_position_embeddings": "max_target_positions",
}


def _counted(name: str, whole: dict[str, Any], config: dict[str, Any]) -> ModelFile:
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    caches, counted = caches_of(config), _whisper(config) or census(whole, config)
    tied = bool(config.get("tie_word_embeddings", whole.get("tie_word_embeddings", not caches)))
    kept: Stored = stored(whole, config, counted)
    experts, names = count_experts(config), layer_names(config)
    growing = sum(one.layers for one in caches if one.kind != "state") if caches else 0
    states = [one for one in caches if one.kind == "state"]
    return ModelFile(
        title=name,
        architecture=(whole.get("architectures") or ["unknown"])[0],
        params=counted.total(tied=tied),
        layers=len(names),
        attention_layers=min(growing, len(names)) if states else 0,
        hidden=hidden,
        intermediate=expert_width(config),
        heads=heads,
        kv_heads=config.get("num_key_value_heads") or heads,
        head_dim=config.get("head_dim") or hidden // heads,
        vocab=config["vocab_size"],
        tied_embeddings=tied,
        context=config["max_position_embeddings"],
        quantization=kept.quantization,
        expert_quantization=kept.experts,
        weight_width=kept.width,
        plain_params=kept.plain,
        cache_dtype=kept.cache,
        expert_params=counted.experts,
        experts=experts if counted.experts else 0,
        experts_per_token=per_token(config) if counted.experts else 0,
        hybrid=bool(states),
        state_bytes=max((one.state_bytes for one in states), default=0),
        caches=caches,
        keeps_cache=bool(caches),
        drafting_params=_drafting(config, counted, len(names)),
        source="config.json",
    )


def _drafting(config: dict[str, Any], counted: Census, layers: int) -> int:
    """Parameters of the layers that draft: each about as large as one of the model's own."""
    given = config.get("num_nextn_predict_layers") or config.get("mtp_num_hidden_layers") or 0
    deep = counted.attention + counted.recurrent + counted.feed + counted.shared + counted.experts
    return round(given * deep / layers)


def _whisper(config: dict[str, Any]) -> Census | None:
    """Encoder and decoder of Whisper: 4 and 8 square matrices of attention, 2 of feed-forward."""
    if config.get("model_type") != "whisper":
        return None
    hidden = config["d_model"]
    encoder = config["encoder_layers"] * hidden * (4 * hidden + 2 * config["encoder_ffn_dim"])
    decoder = config["decoder_layers"] * hidden * (8 * hidden + 2 * config["decoder_ffn_dim"])
    return Census(config["vocab_size"] * hidden, 0, decoder, 0, 0, 0, 0, encoder)
