"""Hardware and model as data: the TOML files of `fixtures/`, with what the simulator needs of them."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pytest_vllm.locate import data_dir
from pytest_vllm.sim.vision import Vision

GIB = 1 << 30


@dataclass(frozen=True)
class Hardware:
    """One accelerator. Bytes, bytes/s and FLOP/s (dense)."""

    name: str
    title: str
    memory: float
    bandwidth: float
    flops: dict[str, float]
    family: str
    vendor: str
    unified: bool
    capability: str

    @property
    def is_cpu(self) -> bool:
        """Whether this is no accelerator at all."""
        return self.vendor == "cpu"

    def peak(self, dtype: str) -> float:
        """FLOP/s with weights of this kind: "fp8", "fp4" or "bf16"."""
        return self.flops.get(dtype) or self.flops.get("bf16") or 1e13


@dataclass(frozen=True)
class Model:
    """A model's shape. Sizes in bytes; `read` is what one token of one sequence reads.

    `known` is False for a stand-in: nothing is known of the model's own limits then. `labels` are a
    classifier's classes, `template` whether the tokenizer has a chat template, `sampling` what the
    checkpoint's generation_config.json sets.
    """

    name: str
    repo: str
    architecture: str
    weights: float
    read: float
    active: float
    kv_layers: int
    kv_heads: int
    head_dim: int
    heads: int
    hidden: int
    intermediate: int
    vocabulary: int
    context: int
    quantization: str
    experts: int
    experts_per_token: int
    expert_bytes: float
    hybrid: bool
    thinking: str
    tool_parsers: tuple[str, ...]
    known: bool = True
    vision: Vision | None = None
    labels: tuple[str, ...] = ()
    template: bool = True
    sampling: dict[str, Any] = field(default_factory=dict)

    def kv_bytes(self, element: float) -> float:
        """Bytes of KV cache per token, `element` bytes each."""
        return 2 * self.kv_layers * self.kv_heads * self.head_dim * element

    @property
    def dtype(self) -> str:
        """The arithmetic that its weights allow."""
        if self.quantization.startswith(("nvfp4", "mxfp4", "modelopt_fp4")):
            return "fp4"
        return "fp8" if "fp8" in self.quantization else "bf16"


def _tables(folder: str) -> dict[str, dict[str, Any]]:
    try:
        files = sorted((data_dir("fixtures") / folder).glob("*.toml"))
    except FileNotFoundError:
        return {}
    return {file.stem: tomllib.loads(file.read_text("utf-8")) for file in files}


@cache
def hardware(name: str) -> Hardware:
    """The hardware of that name; unknown or empty names give a fast made-up machine."""
    table = _tables("hardware").get(name or "sim", {})
    memory = table.get("memory-gib", table.get("memory-gb", 4) * 1e9 / GIB) * GIB
    return Hardware(
        name=name or "sim",
        title=table.get("title", name or "sim"),
        memory=memory,
        bandwidth=table.get("bandwidth-gb-s", 500) * 1e9,
        flops={
            key.removeprefix("tflops-"): value * 1e12
            for key, value in table.items()
            if key.startswith("tflops-")
        },
        family=table.get("family", "sim"),
        vendor=table.get("vendor", "none"),
        unified=bool(table.get("unified", False)),
        capability=str(table.get("compute-capability", "")),
    )


@cache
def model(name: str) -> Model:
    """The model that a served path or repository names; unknown ones are the simulator's own small model."""
    tables = _tables("models")
    wanted = _plain(name)
    found = next(
        (stem for stem, table in tables.items() if wanted in (_plain(table.get("repo", "")), _plain(stem))),
        "",
    )
    known, found = bool(found), found or "sim-model"
    table = tables.get(found, {})
    weights = float(table.get("weight-bytes", 33e6))
    params = float(table.get("params", 16.5e6))
    return Model(
        name=found,
        repo=table.get("repo", "sim-model"),
        architecture=table.get("architecture", "SimForCausalLM"),
        weights=weights,
        read=float(table.get("read-bytes", weights)),
        active=float(table.get("active-params", params)),
        kv_layers=table.get("attention-layers", table.get("layers", 4)),
        kv_heads=table.get("kv-heads", 2),
        head_dim=table.get("head-dim", 64),
        heads=table.get("heads", 4),
        hidden=table.get("hidden", 256),
        intermediate=table.get("intermediate", 1024),
        vocabulary=table.get("vocab", 4096),
        context=table.get("context", 32768),
        quantization=table.get("quantization", "none"),
        experts=table.get("experts", 0),
        experts_per_token=table.get("experts-per-token", 0),
        expert_bytes=float(table.get("expert-params", 0)) * weights / params,
        hybrid=bool(table.get("hybrid", False)),
        thinking=str(table.get("thinking", "")),
        tool_parsers=tuple(table.get("tool-parsers", ())),
        known=known,
        vision=Vision(side, *table["image-pixels"]) if (side := table.get("image-side", 0)) else None,
        labels=tuple(table.get("labels", ())),
        template=bool(table.get("chat-template", True)),
        sampling=dict(table.get("sampling", {})),
    )


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.rstrip("/").rsplit("/", 1)[-1].lower())
