"""Makes the catalogue of models, `fixtures/models/catalogue.json`, from the config.json of each.

    python -m tools.models FOLDER

FOLDER holds files named `owner--name_config.json` as AIConfigurator ships them in `model_configs`. Models
that it lacks are in `models_written.json` beside this file, with the parameters that their repository
publishes. Only keys that `pytest_vllm.profile.checkpoint` reads are kept, and of long lists of modules one
name for each part.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pytest_vllm.profile.checkpoint import text_part
from pytest_vllm.profile.stored import left_out

HERE = Path(__file__).parent
TARGET = HERE.parent / "fixtures" / "models" / "catalogue.json"
_DROPPED = [
    "_name_or_path",
    "auto_map",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "initializer_range",
    "torch_dtype",
    "dtype",
    "transformers_version",
    "use_cache",
    "hidden_act",
    "rms_norm_eps",
    "rope_theta",
    "rope_scaling",
    "rope_parameters",
    "id2label",
    "label2id",
    "attention_dropout",
    "attention_bias",
    "norm_topk_prob",
    "router_aux_loss_coef",
    "scoring_func",
    "topk_method",
    "topk_group",
    "n_group",
    "routed_scaling_factor",
    "hidden_dropout",
    "architectures_of",
    "task_specific_params",
]
_SEEING = ["vision_config", "audio_config"]
_TOWER = [
    "hidden_size",
    "d_model",
    "embed_dim",
    "num_hidden_layers",
    "depth",
    "encoder_layers",
    "intermediate_size",
    "encoder_ffn_dim",
    "spatial_merge_size",
    "out_hidden_size",
    "deepstack_visual_indexes",
    "model_type",
]
_KEPT_OF_QUANTISATION = (
    "quant_method",
    "quant_algo",
    "moe_quant_algo",
    "format",
    "bits",
    "group_size",
    "kv_cache_quant_algo",
    "kv_cache_scheme",
)

_AS_THEY_ARE = (
    "architectures",
    "model_type",
    "hybrid_override_pattern",
    "mlp_hidden_act",
    "expert_dtype",
    "mamba_ssm_dtype",
    "mamba_ssm_cache_dtype",
    "tie_word_embeddings",
)


def reduced(config: dict[str, Any]) -> dict[str, Any]:
    """The keys that matter."""
    kept = {
        name: value
        for name, value in config.items()
        if name not in _DROPPED and value is not None and not isinstance(value, bool | str | dict | list)
    }
    kept |= {name: True for name, value in config.items() if value is True}
    kept |= {name: config[name] for name in _AS_THEY_ARE if name in config}
    kept |= _nested(config)
    if quantised := config.get("quantization_config"):
        kept["quantization_config"] = _quantised(quantised, config)
    return {name: value for name, value in kept.items() if name not in _DROPPED}


def _nested(config: dict[str, Any]) -> dict[str, Any]:
    """Lists, and the parts of a config that are configs of their own."""
    kept: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, list) and value and all(isinstance(one, str | int) for one in value):
            kept[name] = value
        if name in _SEEING and isinstance(value, dict):
            kept[name] = {key: value[key] for key in _TOWER if value.get(key) is not None}
        if name in ("text_config", "llm_config", "language_config"):
            kept[name] = reduced(value)
        if name == "linear_attn_config":
            kept[name] = value
        if name in ("block_configs", "sparse_attention_config"):
            kept[name] = ["left out"]
    return kept


def _quantised(config: dict[str, Any], model: dict[str, Any]) -> dict[str, Any]:
    kept = {name: config[name] for name in _KEPT_OF_QUANTISATION if config.get(name) is not None}
    if parts := left_out(config, text_part(model)["num_hidden_layers"]):
        kept["ignore"] = sorted(parts)
    if groups := config.get("config_groups"):
        weights = next(iter(groups.values())).get("weights") or {}
        kept["config_groups"] = {"group_0": {"weights": {one: weights.get(one) for one in _GROUPED}}}
    for algorithm in ("NVFP4", "MXFP4"):
        if algorithm in json.dumps(config.get("quantized_layers", {})):
            kept.setdefault("quant_algo", algorithm)
            kept["quant_algo"] = algorithm
    return kept


_GROUPED = ("num_bits", "type", "group_size")


_FROM_MEMORY = (
    "written down from memory, not read from the repository; "
    "its parameters agree with the number that it is known for"
)


#: What a checkpoint leaves in 16 bits where its config has no list of it, and where that was seen.
_LEFT_OUT = {
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4": (
        ["*mixer*", "*self_attn*", "*shared_expert*"],
        "left out as its 75.03 GiB in vLLM's log tell: github.com/djangodevreng/dgx-spark-benchmarks",
    ),
}


def rows(folder: Path) -> dict[str, dict[str, Any]]:
    """All models by repository."""
    found: dict[str, dict[str, Any]] = {}
    for written in json.loads((HERE / "models_written.json").read_text("utf-8")):
        source = _FROM_MEMORY
        found[written["repo"]] = {
            "source": source,
            "billions": written["billions"],
            "config": written["config"],
        }
    files = [one for one in folder.glob("*_config.json") if not one.name.endswith("_hf_quant_config.json")]
    for file in sorted(files):
        owner, _, name = file.name.removesuffix("_config.json").partition("--")
        source = f"config.json of the repository, as in aiconfigurator-core: model_configs/{file.name}"
        config = json.loads(file.read_text("utf-8"))
        beside = folder / f"{owner}--{name}_hf_quant_config.json"
        if "quantization_config" not in config and beside.is_file():
            config["quantization_config"] = json.loads(beside.read_text("utf-8"))["quantization"]
        kept = reduced(config)
        if (left := _LEFT_OUT.get(f"{owner}/{name}")) and "quantization_config" in kept:
            kept["quantization_config"]["exclude_modules"] = left[0]
            source += f"; {left[1]}"
        found[f"{owner}/{name}"] = {"source": source, "config": kept}
    return dict(sorted(found.items()))


def main(folder: Path) -> None:
    """Writes the catalogue, one model a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(row, sort_keys=True)}" for name, row in rows(folder).items()]
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
