"""Model files: what a checkpoint weighs and how much of it a token touches.

One flat TOML file per checkpoint in fixtures/models, or in `vllm-profiles/models` of a project; README.md
there explains every key. A checkpoint's own config.json gives the same figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from pytest_vllm.profile.reference import file_names, files, read_file
from pytest_vllm.profile.table import Part, faults

if TYPE_CHECKING:
    from pathlib import Path

KIND = "models"

#: Bytes per weight of a linear layer, scales included: 128x128 blocks for FP8, groups of 128 for 4 bits, 16
#: for NVFP4, 32 for MXFP4, Q5_K_M's mean for GGUF.
BYTES_PER_WEIGHT = {
    "none": 2.0,
    "fp8": 1 + 4 / 16384,
    "awq": 0.5 + 2.5 / 128,
    "gptq": 0.5 + 2.5 / 128,
    "nvfp4": 0.5 + 1 / 16,
    "mxfp4": 0.5 + 1 / 32,
    "gguf-q5_k_m": 0.709,
}
#: Bytes of one element of the KV cache.
KV_BYTES = {"auto": 2, "bfloat16": 2, "float16": 2, "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1}

Quantization = Literal["none", "fp8", "awq", "gptq", "nvfp4", "mxfp4", "gguf-q5_k_m"]


class ModelFile(Part):
    """A checkpoint: shape, weight, and the defaults that its chat template sets."""

    title: str
    """What people call it."""
    repo: str = ""
    """Its repository id, by which a profile without `model` finds it."""
    architecture: str
    """vLLM's name of the architecture."""
    params: int = Field(gt=0)
    """All parameters."""
    layers: int = Field(gt=0)
    """All layers."""
    attention_layers: int = Field(default=0, ge=0)
    """Layers whose KV cache grows with the context; all unless told otherwise."""
    hidden: int = Field(gt=0)
    """Width of the residual stream."""
    intermediate: int = Field(gt=0)
    """Width of the feed-forward layer (of one expert)."""
    heads: int = Field(gt=0)
    """Query heads."""
    kv_heads: int = Field(gt=0)
    """Key and value heads."""
    head_dim: int = Field(gt=0)
    """Width of a head."""
    vocab: int = Field(gt=0)
    """Rows of the embedding."""
    tied_embeddings: bool = False
    """Whether embedding and output layer are one tensor."""
    context: int = Field(gt=0)
    """max_position_embeddings: what vLLM allows without RoPE scaling."""
    quantization: Quantization = "none"
    """How the linear layers are stored; `none` is 16 bits."""
    head_bytes: float = 2.0
    """Bytes per weight of the embedding and the output layer."""
    expert_params: int = 0
    """Parameters in routed experts, 0 for dense models."""
    experts: int = 0
    """Routed experts per layer."""
    experts_per_token: int = 0
    """Routed experts that a token uses."""
    weight_bytes: int = 0
    """All weights in memory; derived unless told."""
    read_bytes: int = 0
    """Weights that a decode step of one sequence reads; derived unless told."""
    active_params: int = 0
    """Parameters that take part in one token; derived unless told."""
    hybrid: bool = False
    """Whether some layers keep a recurrent state instead of a KV cache."""
    state_bytes: int = 0
    """Bytes of recurrent state per such layer and sequence; 0 where it is not known."""
    image_side: int = Field(default=0, ge=0)
    """Pixels that an image token is wide and high; 0 for models that see nothing."""
    image_pixels: tuple[int, int] | None = None
    """Least and most pixels to which an image is scaled."""
    tool_parsers: list[str] = Field(default_factory=list)
    """Tool parsers that fit its template, the best first."""
    reasoning_parser: str | None = None
    """The reasoning parser that fits its template."""
    thinking: Literal["on", "off", "none"] = "none"
    """What it does unless a request says otherwise: think, not think, or no such mode."""
    chat_template: bool = True
    """Whether the tokenizer brings a chat template; base models seldom have one."""
    labels: list[str] = Field(default_factory=list)
    """The classes of a classifier, in order; one for a reranker."""
    sampling: dict[str, float] = Field(default_factory=dict)
    """What the checkpoint's generation_config.json sets, by vLLM's names: temperature, top_p, top_k, …."""
    source: str
    """Where the figures come from."""
    note: str = ""
    """What else is worth knowing."""

    @model_validator(mode="after")
    def _consistent(self) -> ModelFile:
        if bool(self.experts) != bool(self.expert_params) or self.experts_per_token > self.experts:
            raise faults([(("experts",), "experts, experts-per-token and expert-params belong together")])
        if bool(self.image_side) != bool(self.image_pixels):
            raise faults([(("image-side",), "image-side and image-pixels belong together")])
        return self

    @property
    def embedding_params(self) -> int:
        """Parameters of one of the two embeddings."""
        return self.vocab * self.hidden

    @property
    def active(self) -> int:
        """Parameters that take part in one token; the input embedding is a look-up and does not count."""
        return self.active_params or self.counted_active()

    def counted_active(self) -> int:
        """The same, counted from the shape."""
        idle = 0 if self.tied_embeddings else self.embedding_params
        sleeping = self.expert_params * (1 - self.experts_per_token / self.experts) if self.experts else 0
        return round(self.params - idle - sleeping)

    @property
    def weights(self) -> float:
        """Bytes of all weights in memory."""
        return float(self.weight_bytes or self.counted_weights())

    def counted_weights(self) -> float:
        """The same, counted from the shape: perf.md C.3, formula 1."""
        embeddings = self.embedding_params * (1 if self.tied_embeddings else 2)
        return (self.params - embeddings) * BYTES_PER_WEIGHT[self.quantization] + embeddings * self.head_bytes

    def step_bytes(self, batch: int = 1) -> float:
        """Bytes of weights that one decode step of `batch` sequences reads.

        Everything but the input embedding, of which rows are looked up. With experts, those that at least one
        token of the step is routed to: E * (1 - (1 - k/E)**batch) of E.
        """
        if self.read_bytes and not self.experts:
            return float(self.read_bytes)
        per_weight = BYTES_PER_WEIGHT[self.quantization]
        embeddings = self.embedding_params * (1 if self.tied_embeddings else 2)
        always = (
            self.params - embeddings - self.expert_params
        ) * per_weight + self.embedding_params * self.head_bytes
        if not self.experts:
            return always
        touched = 1 - (1 - self.experts_per_token / self.experts) ** batch
        return always + self.expert_params * per_weight * touched

    def kv_bytes_per_token(self, cache_dtype: str = "auto") -> int:
        """Bytes of KV cache per token: 2 * layers with attention * KV heads * head width * bytes."""
        layers = self.attention_layers or self.layers
        return 2 * layers * self.kv_heads * self.head_dim * KV_BYTES.get(cache_dtype, 2)


def model_names(rootdir: Path) -> list[str]:
    """Every model file that can be named."""
    return file_names(KIND, rootdir)


def load_model(name: str, rootdir: Path) -> ModelFile:
    """A model file. Raises ProfileError."""
    return read_file(KIND, name, rootdir, ModelFile)


def model_of_repo(repo: str, rootdir: Path) -> str | None:
    """The model file whose `repo` is this; None when there is none."""
    for name in sorted(files(KIND, rootdir)):
        if repo and load_model(name, rootdir).repo == repo:
            return name
    return None
