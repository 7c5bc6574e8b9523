"""A model folder without weights, for `--load-format dummy` on a GPU.

`python -m tests.real.dummy TOKENIZER FOLDER`. The shape is Qwen3-8B's with a small vocabulary, so that speed,
cache and memory are those of an 8B model while the text is noise.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
SHAPE = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 1_000_000.0,
    "max_position_embeddings": 40_960,
    "vocab_size": 49_216,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "eos_token_id": 2,
    "torch_dtype": "bfloat16",
}


def build(tokenizer: Path, folder: Path) -> Path:
    """Write the folder; the tokenizer's files are copied from a model that has at most 49,216 tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copyfile(tokenizer / name, folder / name)
    (folder / "config.json").write_text(json.dumps(SHAPE, indent=1), "utf-8")
    return folder


if __name__ == "__main__":
    print(build(Path(sys.argv[1]), Path(sys.argv[2])))
