"""Whose code raised an error: vLLM's, a library's beside it, or Python's own; the frames show it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

VLLM, PLUGIN, PYTHON = "vllm", "plugin", "python"

_PACKAGED = re.compile(r".*/(?=(?:site|dist)-packages/)")
_EGG = re.compile(r"(?<=-packages/)[^/]+\.egg/")
_RELATIVE = re.compile(r"^(?=(?:vllm|vllm_\w+|tpu_inference|tpu_commons)/)")
_SOURCES = re.compile(
    r".*/(?=vllm/(?:v1|engine|entrypoints|model_executor|worker|executor|config|platforms|distributed|lora"
    r"|multimodal|transformers_utils|compilation|spec_decode|attention|utils|plugins|tracing|reasoning|benchmarks"
    r"|tool_parsers|renderers|vllm_flash_attn|tokenizers|inputs|kernels|ir|parser|third_party|_\w+_ops|envs|sampling_params|outputs"
    r"|forward_context|sequence|scripts|logger|pooling_params|beam_search|logits_process|vllm)[/.])"
)
#: What torch.compile wrote.
_GENERATED = r"torchinductor_|inductor_cache/|torch_compile_cache/|/c[a-z2-7]{51}\.py"
_IS_GENERATED = re.compile(_GENERATED)
#: What passes an error of its caller on: PyTorch's dispatch, wrappers, generated code.
_PASSES = re.compile(
    rf"^<|\.(?:pyx|pxi|pxd)\b|{_GENERATED}|/tvm_ffi/|:__getattr(?:ibute)?__$"
    r"|-packages/(?:uvloop|pydantic|pydantic_core|numpy|einops|cloudpickle|tqdm|typing_extensions|cachetools)/"
    r"|/torch/(?!distributed/|_inductor/(?!output_code)|_dynamo/(?!eval_frame|aot_compile|decorators|external)|_functorch/(?!_aot))"
)
_OWN = re.compile(r"(?:-packages/|^/?)vllm/(?!flash_attn/)")
_PLUGIN = re.compile(
    r"(?:-packages/|^(?!.*-packages/).*/)(?:vllm_(?!flash_attn)\w+|tpu_inference|tpu_commons)/(?!(?:.*/)?vllm/)"
    r"|/transformers_modules/"
)
_PYTHON = re.compile(r"/python3(?:\.\d+)?/(?!.*-packages/)|\\[Ll]ib\\(?!site)")
_LIBRARY = re.compile(r"-packages/(\w[\w.-]*?)(?:\.py)?(?:/|:|$)")
_ABSOLUTE = re.compile(r"^(?:/|[A-Za-z]:/|~)")


def located(path: str) -> str:
    """A file's path without the folder of its environment, whose name may be anything (`/opt/vllm_env/…`).

    `/site-packages/vllm/v1/engine/core.py`, `/vllm/v1/engine/core.py` for sources; others stay as they are.
    """
    path = _RELATIVE.sub("/", path.replace("\\", "/"))
    if "-packages/" in path:
        return "/" + _EGG.sub("", _PACKAGED.sub("", path))
    return _SOURCES.sub("/", path)


def passes(frame: str) -> bool:
    """Whether a frame, `file:function`, only hands on what its caller asked for, or gave wrongly."""
    return bool(_PASSES.search(frame) or (_PYTHON.search(frame) and not _OWN.search(frame)))


def generated(frame: str) -> bool:
    """Whether a frame is of code that torch.compile wrote."""
    return bool(_IS_GENERATED.search(frame))


def library(frame: str) -> str:
    """The library that a frame is of, "" for vLLM's own code, Python's, and what cannot be told."""
    if passes(frame) or _OWN.search(frame) or _PLUGIN.search(frame):
        return ""
    if found := _LIBRARY.search(frame):
        return found[1]
    return frame.rpartition(":")[0] if _ABSOLUTE.search(frame) else ""


def raiser(frames: Sequence[str]) -> str:
    """Who raised: `VLLM`, `PLUGIN`, `PYTHON`, a library's name (or another program's path), "" unknown."""
    for frame in reversed(frames):
        if passes(frame):
            continue
        if _PLUGIN.search(frame):
            return PLUGIN
        return VLLM if _OWN.search(frame) else library(frame)
    return PYTHON if frames and _PYTHON.search(frames[-1]) else ""
