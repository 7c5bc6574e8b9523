"""Models that are known without a file of the project: by repository, or taken for one by their name.

`fixtures/models/catalogue.json` holds config.json of each, made by `tools/models.py`. A name is compared
without owner, quantisation and date; whatever else differs makes it another model, so that nothing is judged
by the figures of a relative.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_vllm.locate import data_dir
from pytest_vllm.profile.checkpoint import described
from pytest_vllm.profile.errors import ProfileError

if TYPE_CHECKING:
    from pytest_vllm.profile.modelfile import ModelFile, Quantization

#: What a name says about how weights are stored, the surest first.
_STORED: tuple[tuple[str, Quantization], ...] = (
    (r"nvfp4(?:a16)?", "nvfp4"),
    (r"mxfp4", "mxfp4"),
    (r"awq(?:-(?:4bit|int4|w4a16|marlin))?", "awq"),
    (r"gptq-(?:8bit|int8)", "int8"),
    (r"gptq(?:-(?:4bit|int4|w4a16|marlin))?", "gptq"),
    (r"fp8(?:-(?:dynamic|block|static|kv|pertensor))*|w8a8-fp8", "fp8"),
    (r"w4a16(?:-g\d+)?|int4|4bit|bnb-4bit|auto-?round(?:-int4)?|int4-auto-?round", "int4"),
    (r"w8a8|w8a16|int8|8bit", "int8"),
)
_GGUF = re.compile(r"(?:^|[-_.:])((?:iq|q)\d(?:_[0-9a-z]+)*)(?=$|[-_.:])")
_NOISE = re.compile(r"-(?:quantized|unsloth|bnb|hf|bf16|fp16|gguf|marlin|dynamic|[012]\d[0-3]\d)(?=-|$)")
_KIND = re.compile(r"-(?:instruct|chat|it|base|thinking|preview)(?=-|$)")
_ACTIVE = re.compile(r"-a\d+(?:\.\d+)?b(?=-|$)")


@cache
def _rows() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(
        (data_dir("fixtures") / "models" / "catalogue.json").read_text("utf-8")
    )
    return found


def known_repos() -> list[str]:
    """Repositories that the catalogue holds."""
    return sorted(_rows())


@cache
def model_of(repo: str) -> ModelFile | None:
    """The model of a repository, exactly; None where the catalogue lacks it or its config says too little."""
    row = _rows().get(repo)
    if row is None:
        return None
    try:
        model = described(repo.rpartition("/")[2], row["config"])
    except ProfileError:
        return None
    update: dict[str, Any] = {"repo": repo, "source": row["source"]}
    if model.quantization == "none" and (told := stored_as(repo)):
        update["quantization"] = told
    return model.model_copy(update=update)


def alike(name: str) -> ModelFile | None:
    """The model that a path, a served name or another repository's id stands for by its words; or None.

    The most alike first: the same words, then without instruct or thinking, then without the active part
    (`-a3b`). Where several models of other shapes are as near, none is taken.
    """
    told = stored_as(name)
    for loose in (_same, _kindless, _activeless):
        wanted = loose(bare(name))
        near = [repo for repo in known_repos() if wanted and loose(bare(repo)) == wanted]
        models = [one for one in map(model_of, near) if one is not None]
        shapes = {(one.params, one.layers, one.hidden, one.kv_heads) for one in models}
        if len(shapes) == 1:
            return _taken(models, told, gguf="gguf" in name.lower())
        if models:
            return None
    return None


def _taken(models: list[ModelFile], told: Quantization | None, *, gguf: bool) -> ModelFile | None:
    if gguf and told is None:
        return None
    plain = [one for one in models if stored_as(one.repo) is None]
    same = [one for one in models if one.quantization == told]
    found = (same or plain or models)[0] if told else (plain or models)[0]
    relative = _relative(found) if told is None and not plain else None
    if told is None and not plain:
        told = relative.quantization if relative else "none"
    update: dict[str, Any] = {
        "certain": False,
        "title": f"{found.title} (taken for it by its name)",
        "context": max(one.context for one in models),
    }
    if told and found.quantization != told:
        update |= {"quantization": told, "weight_width": 0.0, "expert_quantization": None}
        update |= {"plain_params": 0, "weight_bytes": 0, "read_bytes": 0, "cache_dtype": "auto"}
    if relative:
        update |= {key: getattr(relative, key) for key in _STORAGE}
    return found.model_copy(update=update)


#: What of a model is said by how its weights are stored.
_STORAGE = (
    "quantization",
    "expert_quantization",
    "weight_width",
    "plain_params",
    "weight_bytes",
    "read_bytes",
    "cache_dtype",
)


def _relative(model: ModelFile) -> ModelFile | None:
    """A repository of the same architecture and shape whose name tells no quantisation; None for none.

    As it is stored, so is another of its family of which only quantised copies are known: the weights of
    Kimi K2.5 are published in four bits, and those of K2.6 too.
    """
    shape = (model.architecture, model.layers, model.hidden, model.experts)
    for repo in known_repos():
        one = model_of(repo) if stored_as(repo) is None else None
        if one is not None and (one.architecture, one.layers, one.hidden, one.experts) == shape:
            return one
    return None


def stored_as(name: str) -> Quantization | None:
    """The quantisation that a name tells; None when it tells none that is understood."""
    text = re.sub(r"\.(?=w\d)", "-", words(name))
    if re.search(r"(?:^|-)(?:bf16|fp16)(?=-|$)", text):
        return "none"
    if level := _GGUF.search(text.replace("-", "_") if "gguf" in text else text):
        return _level(level[1])
    for pattern, kind in _STORED:
        if re.search(rf"(?:^|-)(?:{pattern})(?=-|$)", text):
            return kind
    return None


def _level(text: str) -> Quantization | None:
    """The nearest of GGUF's levels that are known."""
    for start, kind in _LEVELS.items():
        if text.startswith(start):
            return kind
    return None


_LEVELS: dict[str, Quantization] = {
    "q2": "gguf-q2_k",
    "q3": "gguf-q3_k_m",
    "q4_0": "gguf-q4_0",
    "q4": "gguf-q4_k_m",
    "q5": "gguf-q5_k_m",
    "q6": "gguf-q6_k",
    "q8": "gguf-q8_0",
}


def words(name: str) -> str:
    """The last part of a path, a repository's id or a cache folder, in small letters, parted by `-`."""
    cached = re.search(r"models--[^/]+?--([^/]+)", name)
    last = cached[1] if cached else name.rstrip("/").rpartition("/")[2]
    text = last.lower().removesuffix(".gguf")
    return text if "gguf" in name.lower() else re.sub(r"[_\s:]+", "-", text)


def bare(name: str) -> str:
    """A name without owner, quantisation and date: `qwen3-32b` of `RedHatAI/Qwen3-32B-FP8-dynamic`."""
    text = re.sub(r"[_\s:]+", "-", _GGUF.sub("", words(name)))
    text = re.sub(r"\.(?=w\d|q\d|gguf)", "-", text)
    for pattern, _ in _STORED:
        text = re.sub(rf"-(?:{pattern})(?=-|$)", "", text)
    text = _NOISE.sub("", text)
    return re.sub(r"^(?:meta|nvidia)-", "", text).strip("-.")


def _same(name: str) -> str:
    return name


def _kindless(name: str) -> str:
    return _KIND.sub("", name)


def _activeless(name: str) -> str:
    return _ACTIVE.sub("", _kindless(name))
