"""The model of the scripted engine: a folder as vLLM serves it, made in a moment and thrown away.

Two layers of random weights by a seed: what it would say is noise, what it does say is scripted. Standard
library only, because it is made wherever the gate runs.
"""

from __future__ import annotations

import json
import random
import struct
from math import prod
from typing import TYPE_CHECKING, Any

from pytest_vllm.scripted.tokens import BEGIN_TURN, END_TURN, OWN, tokenizer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CONTEXT = 32_768
_HIDDEN, _INNER, _LAYERS, _HEADS, _HEAD = 64, 128, 2, 2, 32
_SPREAD = 0.02

#: Turns as ChatML; tools are listed as JSON; earlier calls stand in plain words: no marker of a parser is in
#: the prompt. With `enable_thinking` false the prompt closes the reasoning.
TEMPLATE = """\
{%- if tools %}{{ '@BEGIN@system\\nFunctions:\\n' }}
{%- for tool in tools %}{{ tool | tojson }}{{ '\\n' }}{% endfor %}{{ '@END@\\n' }}{% endif %}
{%- for message in messages %}
{{- '@BEGIN@' + message.role + '\\n' }}
{%- if message.content is string %}{{ message.content }}
{%- elif message.content %}
{%- for part in message.content %}{{ part.text if part.text else '' }}{% endfor %}{% endif %}
{%- for call in message.tool_calls or [] %}
{{- '\\ncalled ' + call.function.name + ' with ' }}{{ call.function.arguments | tojson }}
{%- endfor %}
{{- '@END@\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '@BEGIN@assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}{{ @CLOSED@ }}{% endif %}{% endif %}
"""


def build(
    folder: Path, *, markers: Sequence[str] = (), special: Sequence[str] = (), closed: str = "", seed: int = 0
) -> Path:
    """Write the model into a folder, the same bytes for the same arguments. Gives the folder.

    Args:
        folder: made when it is not there.
        markers: texts that a parser needs to be single tokens.
        special: those of them that decoding leaves out by default.
        closed: what the prompt ends with when a request switches thinking off.
        seed: of the weights.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokens = tokenizer(markers, special)
    ids = {one["content"]: one["id"] for one in tokens["added_tokens"]}
    size = len({*tokens["model"]["vocab"].values(), *ids.values()})
    end = ids[END_TURN]
    _json(folder / "tokenizer.json", tokens)
    _json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": END_TURN,
            "pad_token": OWN[0],
            "model_max_length": CONTEXT,
            "clean_up_tokenization_spaces": False,
            "additional_special_tokens": list(dict.fromkeys([*OWN, *special])),
        },
    )
    _json(folder / "config.json", _config(size, end))
    _json(folder / "generation_config.json", {"eos_token_id": end, "pad_token_id": ids[OWN[0]]})
    template = TEMPLATE.replace("@BEGIN@", BEGIN_TURN).replace("@END@", END_TURN)
    (folder / "chat_template.jinja").write_text(template.replace("@CLOSED@", json.dumps(closed)), "utf-8")
    write_weights(folder / "model.safetensors", shapes(size), random.Random(seed))  # noqa: S311 - no secret
    return folder


def shapes(vocabulary: int) -> dict[str, tuple[int, ...]]:
    """The weights by name: [out, in] for matrices."""
    found: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (vocabulary, _HIDDEN),
        "model.norm.weight": (_HIDDEN,),
    }
    wide = _HEADS * _HEAD
    for layer in range(_LAYERS):
        at = f"model.layers.{layer}"
        found |= {f"{at}.self_attn.{name}_proj.weight": (wide, _HIDDEN) for name in "qkv"}
        found |= {
            f"{at}.self_attn.o_proj.weight": (_HIDDEN, wide),
            f"{at}.mlp.gate_proj.weight": (_INNER, _HIDDEN),
            f"{at}.mlp.up_proj.weight": (_INNER, _HIDDEN),
            f"{at}.mlp.down_proj.weight": (_HIDDEN, _INNER),
            f"{at}.input_layernorm.weight": (_HIDDEN,),
            f"{at}.post_attention_layernorm.weight": (_HIDDEN,),
        }
    return found


def write_weights(path: Path, shapes: dict[str, tuple[int, ...]], rng: random.Random) -> None:
    """A safetensors file of bfloat16 numbers: norms are one, matrices normally distributed around zero.

    Format: 8 bytes length of the header, little endian; the header as JSON; the numbers.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = bytearray()
    for name, shape in shapes.items():
        begin = len(data)
        for _ in range(prod(shape)):
            value = 1.0 if len(shape) == 1 else rng.gauss(0, _SPREAD)
            data += struct.pack("<f", value)[2:]
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def _config(vocabulary: int, end: int) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": vocabulary,
        "hidden_size": _HIDDEN,
        "intermediate_size": _INNER,
        "num_hidden_layers": _LAYERS,
        "num_attention_heads": _HEADS,
        "num_key_value_heads": _HEADS,
        "head_dim": _HEAD,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10_000.0,
        "max_position_embeddings": CONTEXT,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "mlp_bias": False,
        "eos_token_id": end,
        "torch_dtype": "bfloat16",
    }


def _json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1), "utf-8")
